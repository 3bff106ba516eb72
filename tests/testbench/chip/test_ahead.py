"""Inferences that are expected: made many at once, and the same as if each had been run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import CompiledModel, Executable
from darwinn_sim import chip
from darwinn_sim.lifting import kept
from darwinn_sim.lifting.program import LiftedProgram, lift
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.machine.examine import Tap
from darwinn_testbench.chip import ahead
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import bind_model, open_models
from darwinn_testbench.chip.preload import Preload
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
    assert session.accelerator.runs == plain.accelerator.runs
    assert plain.lifted is None
    one, other = session.infer(sets[0]), plain.infer(sets[0])
    assert one.result.statistics == other.result.statistics
    assert one.result.interrupts == other.result.interrupts


@pytest.mark.parametrize("expected", [0, 1, ahead.REPEATED - 1, ahead.REPEATED])
def test_inferences_that_are_repeated_are_made_on_the_lifted_program(
    dense: Callable[[int], Path], expected: int
) -> None:
    """After so many, or before, if it is said how many will follow: the first one is run."""
    (model,) = open_models(dense(0))
    few = max(1, ahead.REPEATED - expected)
    sets = random_inputs(model.ports, seed=3, runs=few + 3)
    plain, session = Session(model, strict=True), Session(model)
    if expected:
        session.expect(expected)
    assert outputs(session, sets[:few]) == outputs(plain, sets[:few])
    assert session.lifted is None
    assert outputs(session, sets[few:]) == outputs(plain, sets[few:])
    assert plain.lifted is None
    assert session.lifted is not None and session.lifted.inferences == 3
    assert session.accelerator.runs == plain.accelerator.runs


@pytest.mark.parametrize("known", [True, False])
def test_those_that_are_expected_later_count_too(dense: Callable[[int], Path], known: bool) -> None:
    """A task is a few of many inferences, whose inputs are known or not."""
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=16)
    plain, few, many = Session(model, lifts=False), Session(model), Session(model)
    for session, more in ((few, 10), (many, ahead.REPEATED - 8)):
        for part in (sets[:8], sets[8:]):
            session.expect(part if known else len(part), more)
            assert outputs(session, part) == outputs(plain, part)
    assert few.lifted is None
    assert many.lifted is not None and many.lifted.inferences == 15


@pytest.mark.usefixtures("keeps")
def test_what_was_kept_in_the_last_moment_is_used(
    dense: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever had it to lift until then."""
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    outputs_of_all = outputs(Session(model, lifts=False), sets)
    lifts = []

    def counted(*given: Any) -> LiftedProgram:
        lifts.append(given)
        return lift(*given)

    @contextmanager
    def late(executable: Executable) -> Iterator[bool]:
        other = Session(model, lifts=False)
        other.infer(sets[0])
        kept.keep(executable, lift(other.accelerator, executable))
        with kept.alone(executable) as is_alone:
            yield is_alone

    monkeypatch.setattr(ahead, "lift", counted)
    monkeypatch.setattr(ahead, "alone", late)
    session = Session(model)
    session.expect(sets)
    assert outputs(session, sets) == outputs_of_all
    assert not lifts and session.lifted is not None and session.lifted.inferences == MANY - 1


def test_what_another_process_lifts_is_run_meanwhile(dense: Callable[[int], Path]) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    plain, session = Session(model), Session(model)
    session.expect(sets)
    with kept.alone(model.compiled.inference):
        assert outputs(session, sets[:5]) == outputs(plain, sets[:5])
        assert session.lifted is None
    assert outputs(session, sets[5:]) == outputs(plain, sets[5:])
    assert session.lifted is not None and session.lifted.inferences == MANY - 5


def test_the_chip_is_as_all_inferences_have_left_it(dense: Callable[[int], Path]) -> None:
    """All memories hold the same, whoever looks at them, and in whatever way."""
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=5)
    plain, session = Session(model), Session(model)
    session.expect(100)
    outputs(plain, sets), outputs(session, sets)
    assert session.lifted is not None and session.lifted.inferences == 4
    one, other = plain.accelerator.chip.contents(), session.accelerator.chip.contents()
    for name in ("narrow", "narrow_written", "wide", "wide_written", "scale_bias", "flags"):
        assert np.array_equal(one.tiles[name], other.tiles[name])
    for name in ("memory", "memory_written", "registers", "flags"):
        assert np.array_equal(one.core[name], other.core[name])
    tap = Tap.parse("layer:0")
    for each in sets[:3]:
        inside = [every.infer(each, taps=[tap]).result.tapped for every in (plain, session)]
        assert [each.data.tobytes() for each in inside[0]] == [
            each.data.tobytes() for each in inside[1]
        ]
        outputs(plain, [each]), outputs(session, [each])
    assert session.accelerator.runs == plain.accelerator.runs


def test_two_models_that_take_turns_are_not_lifted(dense: Callable[[int], Path]) -> None:
    """Unless one has the chip to itself for long enough."""
    models = [open_models(dense(seed))[0] for seed in (0, 1)]
    device = Device()
    one, other = (Session(model, device=device) for model in models)
    sets = random_inputs(models[0].ports, seed=3, runs=ahead.REPEATED + 9)
    wanted = outputs(Session(models[0], strict=True), sets)
    beside = outputs(Session(models[1], strict=True), sets)
    assert [
        each
        for k in range(len(sets))
        for each in outputs(one, [sets[k]]) + outputs(other, [sets[k]])
    ] == [each for pair in zip(wanted, beside, strict=True) for each in pair]
    assert one.lifted is other.lifted is None
    assert outputs(one, sets) == wanted
    assert one.lifted is not None and not one.lifted.reason
    assert outputs(other, sets[:3]) == beside[:3]
    assert outputs(one, sets[:3]) == wanted[:3]


@pytest.mark.parametrize("options", [{"strict": True}, {"lifts": False}, {}])
def test_few_or_strict_ones_are_run(dense: Callable[[int], Path], options: dict[str, bool]) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY if options else ahead.LEAST_INPUTS - 1)
    session = Session(model, **options)  # type: ignore[arg-type]
    session.expect(sets)
    outputs(session, sets)
    assert session.lifted is None or (options and session.lifted.inferences == 0)
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


@pytest.mark.parametrize("known", [True, False])
def test_what_is_put_into_wide_memory_counts(dense: Callable[[int], Path], known: bool) -> None:
    """From the next inference on, whether its outputs have been made before or not."""
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    plain, session = Session(model, lifts=False), Session(model)
    session.expect(sets if known else 1000)
    before = outputs(session, sets[:5])
    assert before == outputs(plain, sets[:5])
    assert session.lifted is not None
    for each in (plain, session):
        for tile in range(chip.TILES):
            data = np.random.default_rng(tile).bytes(64 * chip.ROW_BYTES)
            each.accelerator.preload_wide(tile, 0, data)
    wanted = outputs(plain, sets[:5])
    assert wanted != before
    assert outputs(session, sets[:5]) == wanted


@pytest.mark.parametrize("known", [True, False])
def test_what_another_model_has_overwritten_counts(
    dense: Callable[[int], Path], known: bool
) -> None:
    """Parameters that no program caches are there once, until a program overwrites them."""
    model, other = (open_models(dense(seed))[0] for seed in (0, 1))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    first = Session(model)
    first.prepare()
    tiles = first.accelerator.chip.tiles
    preloads = [Preload(tile, 0, tiles[tile]["wide"].tobytes()) for tile in range(chip.TILES)]
    bare = bind_model(CompiledModel(model.compiled.inference, None, "bare"), {})
    found = []
    for lifts in (False, True):
        device = Device(preloads=preloads)
        session, beside = (Session(each, device=device, lifts=lifts) for each in (bare, other))
        session.expect(sets if known else 1000)
        made = outputs(session, sets[:5])
        outputs(beside, sets[:2])
        found.append([*made, *outputs(session, sets[:9])])
    assert found[0][:5] != found[0][5:10]
    assert found[1] == found[0]
    assert session.lifted is not None and not session.lifted.reason


def test_what_was_made_ahead_is_forgotten_also_where_a_tap_comes_between(
    dense: Callable[[int], Path],
) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    plain, session = Session(model, lifts=False), Session(model)
    session.expect(sets)
    assert outputs(session, sets[:5]) == outputs(plain, sets[:5])
    for each in (plain, session):
        for tile in range(chip.TILES):
            data = np.random.default_rng(tile).bytes(64 * chip.ROW_BYTES)
            each.accelerator.preload_wide(tile, 0, data)
    session.infer(sets[0], taps=[Tap.parse("layer:0")])
    assert outputs(session, sets[5:9]) == outputs(plain, sets[5:9])


def test_how_many_are_expected_is_a_whole_number_of_any_kind(
    dense: Callable[[int], Path],
) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=3)
    session = Session(model)
    session.expect(np.int64(1000))  # type: ignore[arg-type]
    outputs(session, sets)
    assert session.lifted is not None and session.lifted.inferences == 2


def test_a_result_is_the_callers(dense: Callable[[int], Path]) -> None:
    """Who writes into one changes neither what is compared nor what is given later."""
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=4)
    plain, session = Session(model, lifts=False), Session(model)
    session.expect(1000)
    for each in sets:
        found, wanted = session.infer(each).result, plain.infer(each).result
        assert found.outputs == wanted.outputs
        assert found.statistics == wanted.statistics
        assert len(found.transfers) == len(wanted.transfers)
        for part in (found.outputs, found.statistics, found.transfers, found.interrupts):
            part.clear()


def test_a_tap_is_no_other_program(dense: Callable[[int], Path]) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=9)
    plain, session = Session(model, lifts=False), Session(model)
    session.expect(1000)
    for each in sets:
        assert outputs(session, [each]) == outputs(plain, [each])
        session.infer(each, taps=[Tap.parse("layer:0")])
    assert session.lifted is not None and not session.lifted.reason
    assert session.lifted.inferences == len(sets) - 1


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


@pytest.fixture
def keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of any size are kept, where no others are."""
    monkeypatch.setattr(kept, "CACHES", tmp_path / "cache")
    monkeypatch.setattr(kept, "LEAST_PRODUCTS", 0)


@pytest.mark.usefixtures("keeps")
def test_what_another_session_has_lifted_is_used_from_the_second_inference_on(
    dense: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    wanted = outputs(Session(model), sets)
    first = Session(model)
    first.expect(sets)
    assert outputs(first, sets) == wanted
    monkeypatch.setattr(ahead, "lift", None)
    session = Session(model)
    assert outputs(session, sets) == wanted
    assert session.lifted is not None and session.lifted.inferences == MANY - 1
    for options in (
        {"strict": True},
        {"lifts": False},
        {"preloads": [Preload(3, 100, bytes([1]))]},
    ):
        another = Session(model, **options)
        assert outputs(another, sets[:5]) == wanted[:5]
        assert another.lifted is None


@pytest.mark.usefixtures("keeps")
def test_what_is_kept_and_gives_something_else_is_not_used(
    dense: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is lifted again, and kept in its place."""
    models = [open_models(dense(seed))[0] for seed in (0, 1)]
    sets = random_inputs(models[0].ports, seed=3, runs=MANY)
    others = [Session(each) for each in models]
    for each in others:
        each.expect(sets)
    wanted, _ = (outputs(each, sets) for each in others)
    wrong = kept.kept(others[1].accelerator, models[1].compiled.inference)
    with monkeypatch.context() as patched:
        patched.setattr(ahead, "kept", lambda *_: wrong)
        session = Session(models[0])
        assert outputs(session, sets) == wanted
        assert session.lifted is None
        session.expect(sets)
        assert outputs(session, sets) == wanted
        assert session.lifted is not None and not session.lifted.reason


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


def test_who_interrupts_lifting_has_not_changed_the_chip(
    dense: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often: it is lifted when nobody does."""
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    plain, session = Session(model, lifts=False), Session(model)
    wanted = outputs(plain, sets)
    session.expect(sets)
    assert outputs(session, sets[:1]) == wanted[:1]

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    for _ in range(5):
        with monkeypatch.context() as patched:
            patched.setattr(ahead, "lift", interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.infer(sets[1])
    assert outputs(session, sets[1:]) == wanted[1:]
    assert session.lifted is not None and not session.lifted.reason
    assert session.lifted.inferences == MANY - 1


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("place", ["lift", "run"])
def test_where_memory_does_not_suffice_inferences_are_run(
    dense: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch, place: str, known: bool
) -> None:
    """Whether for lifting, or for what is lifted."""
    (model,) = open_models(dense(0))
    sets = random_inputs(model.ports, seed=3, runs=MANY)
    plain, session = Session(model, lifts=False), Session(model)
    wanted = outputs(plain, sets)
    session.expect(sets if known else 1000)
    early = 1 if place == "lift" else 2
    assert outputs(session, sets[:early]) == wanted[:early]

    def refuse(*_: Any) -> None:
        raise MemoryError

    if place == "lift":
        monkeypatch.setattr(ahead, "lift", refuse)
    else:
        # The next sets are others than those that are made already.
        session.expect(sets[early:] if known else 1000)
        monkeypatch.setattr(LiftedProgram, "run", refuse)
    assert outputs(session, sets[early:]) == wanted[early:]
    assert session.lifted is not None
    assert session.lifted.reason == "the lifted program takes more memory than there is"
