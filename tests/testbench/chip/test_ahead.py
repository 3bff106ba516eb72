"""Inferences that are expected: made many at once, and the same as if each had been run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_sim.lifting.walk import NotLifted
from darwinn_testbench.chip import ahead
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Device, Session
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.package import compile_network
from darwinn_testbench.report import Verdict

MANY = 40


@pytest.fixture
def dense(tmp_path: Path) -> Callable[[int], Path]:
    """Writes a network of a seed."""

    def write(seed: int) -> Path:
        path = tmp_path / f"{seed}.package"
        path.write_bytes(darwinn.dump(compile_network(random_dense([20, 30, 10], seed))))
        return path

    return write


def outputs(session: Session, sets: Any) -> list[bytes]:
    return [
        b"".join(each.tobytes() for each in session.infer(one).outputs.values()) for one in sets
    ]


def test_many_inferences_are_made_at_once(dense: Callable[[int], Path]) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    plain, session = Session(model), Session(model)
    session.expect(sets)
    assert outputs(session, sets) == outputs(plain, sets)
    assert session.lifted is not None and not session.lifted.reason
    assert session.lifted.inferences == MANY - 1
    assert session.accelerator.runs < plain.accelerator.runs
    assert plain.lifted is None
    one, other = session.infer(sets[0]), plain.infer(sets[0])
    assert one.result.statistics == other.result.statistics
    assert one.result.interrupts == other.result.interrupts


@pytest.mark.parametrize("options", [{"strict": True}, {}])
def test_few_or_strict_ones_are_run(dense: Callable[[int], Path], options: dict[str, bool]) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY if options else ahead.LEAST_INPUTS - 1)
    session = Session(model, **options)  # type: ignore[arg-type]
    session.expect(sets)
    outputs(session, sets)
    assert session.lifted is None
    assert session.accelerator.runs == len(sets) + 1


def test_others_than_those_expected_are_run(dense: Callable[[int], Path]) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    others = random_inputs(model.ports, seed=1000, runs=MANY)
    mixed = [each for pair in zip(sets, others, strict=True) for each in pair]
    plain, session = Session(model), Session(model)
    session.expect(sets)
    assert outputs(session, mixed) == outputs(plain, mixed)


def test_another_model_on_the_chip_changes_nothing(dense: Callable[[int], Path]) -> None:
    models = [open_models(dense(seed))[0] for seed in (0, 1)]
    device = Device()
    sessions = [Session(model, device=device) for model in models]
    alone = [Session(model) for model in models]
    sets = random_inputs(models[0].ports, seed=3, runs=MANY)
    for session in sessions:
        session.expect(sets)
    for each in sets:
        for one, other in zip(sessions, alone, strict=True):
            found, wanted = one.infer(each).outputs, other.infer(each).outputs
            assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_reports_are_the_same_but_for_seconds(
    dense: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dense(0)
    found, checked = run(path, runs=MANY), verify(path, runs=MANY)
    assert found.figures["lifted"].inferences == MANY - 1
    assert checked.figures["lifted"].inferences == MANY - 1
    monkeypatch.setattr(ahead, "LEAST_INPUTS", 10 * MANY)
    plain, judged = run(path, runs=MANY), verify(path, runs=MANY)
    assert "lifted" not in plain.figures
    assert [row.sha256 for row in found.rows] == [row.sha256 for row in plain.rows]
    assert [row.sha256 for row in checked.rows] == [row.sha256 for row in judged.rows]
    assert checked.verdict is judged.verdict is Verdict.RAN


def test_what_is_not_lifted_is_run_and_says_why(
    dense: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)

    def refuse(*_: Any) -> None:
        raise NotLifted("a reason")

    monkeypatch.setattr(ahead, "lift", refuse)
    plain, session = Session(model), Session(model)
    session.expect(sets)
    assert outputs(session, sets) == outputs(plain, sets)
    assert session.lifted is not None and session.lifted.reason == "a reason"
    assert str(session.lifted) == "each inference by itself: a reason"
