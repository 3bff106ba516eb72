"""Networks by chance on every engine, and what becomes of those that fail."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import tflite
from darwinn_formats.darwinn import load
from darwinn_sim.lifting.program import LiftedProgram
from darwinn_testbench.chip.cycles import CyclesRow
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compilation import engines
from darwinn_testbench.compilation.bins import WELL_MIXED, Bin, Held, compared, declared, held_by
from darwinn_testbench.compilation.generate import GenerateOptions, generate
from darwinn_testbench.compiler.random_networks import OPERATORS, RandomNetwork
from darwinn_testbench.compiler.recipes import Recipe, network_of, recipe, reduced
from darwinn_testbench.compiler.stages import pools
from darwinn_testbench.compiler.stages.rows import identity
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict
from harness_runs import require_toolchain

from tests.nightly.deadline import is_over

SMALL = GenerateOptions(seed=3, size=2, operators=("AVERAGE_POOL_2D",), check=True)


def networks(bins: Sequence[Bin], name: str) -> int:
    return next(each.networks for each in bins if each.bin == name)


def test_all_engines_agree_on_some_networks() -> None:
    report = generate(GenerateOptions(seed=41, count=8, size=5, check=True))
    failed = [(row.repeat, row.message) for row in report.rows if row.verdict.failed]
    assert not failed
    assert all(row.cycles for row in report.rows)
    assert len(report.rows) == 8


UNSEEN = "no input found that shows it"
"""What is said of outputs that are right on all inputs, and another function to the proof.

Three of the first 160 networks have such sums. Two are of bytes that cancel, equal pixels with
opposite weights: the network's side of the proof takes them for a constant, the chip's does not.
The third is an average over pixels of which some are equal.
"""


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_all_engines_agree_on_a_thousand_networks(first: int) -> None:
    if is_over():
        pytest.skip("the night is over")
    report = generate(GenerateOptions(seed=first, count=100, check=True))
    failed = [row for row in report.rows if row.verdict.failed]
    wrong = [(row.repeat, row.message) for row in failed if UNSEEN not in row.message]
    assert not wrong
    assert len(failed) <= 6, [row.repeat for row in failed]
    assert networks(report.figures["bins"], WELL_MIXED) >= 45
    never = [each for each in report.figures["bins"] if not each.networks]
    assert {each.group for each in never} <= {"kinds of operators", "operators", "inputs"}


@pytest.mark.nightly
def test_the_rtl_agrees_on_a_hundred_networks() -> None:
    require_toolchain()
    for seed in range(5000, 5100):
        if is_over():
            break
        asked = GenerateOptions(seed=seed, size=5, check=True, engine=Engine.RTL)
        (row,) = generate(asked).rows
        if UNSEEN in row.message:
            continue
        assert not row.verdict.failed, (row.repeat, row.message)
        assert row.rtl_cycles or not row.on_chip


def test_a_seed_gives_the_same_network_and_most_are_well_mixed() -> None:
    assert recipe(5) == recipe(5)
    assert recipe(5) != recipe(6)
    first, second = (network_of(recipe(5)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.finish() == second.finish()
    report = generate(GenerateOptions(seed=9, size=3, operators=("MEAN",)))
    assert networks(report.figures["bins"], "MEAN") == 1
    assert networks(report.figures["bins"], "CONV_2D") == 0


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_each_operator_is_drawn(name: str) -> None:
    assert name in _drawn()


@cache
def _drawn() -> set[str]:
    return {step.operator for seed in range(100) for step in recipe(seed).steps}


LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"


def test_lstms_are_drawn_in_all_forms_and_the_unusual_ones_are_refused_by_name() -> None:
    report = generate(GenerateOptions(seed=1, count=40, size=1, operators=(LSTM,)))
    assert all(LSTM in row.operators for row in report.rows)
    assert sum(row.on_chip > 0 for row in report.rows) > 20
    refused = " ".join(row.message for row in report.rows if not row.on_chip)
    for reason in ("activation RELU", "several sequences", "several zero points", "too far from 1"):
        assert reason in refused
    assert {row.message for row in report.rows if row.on_chip} == {"not verified (--check does)"}
    forms = [_lstm(seed) for seed in range(1, 41)]
    for values in (
        {options.cell_clip for options, *_ in forms},
        {options.time_major for options, *_ in forms},
        {steps for _, steps, _ in forms},
        {units for *_, units in forms},
    ):
        assert len(values) > 1
    assert min(steps for _, steps, _ in forms) == 1


def _lstm(seed: int) -> tuple[Any, int, int]:
    """The options of a seed's LSTM, its steps and its units."""
    network = network_of(recipe(seed, 1, [LSTM]))
    assert network is not None
    model = tflite.load(network.finish())
    graph = model.subgraphs[0]
    (operator,) = (each for each in graph.operators if len(each.inputs) == 24)
    shape, options = graph.tensors[operator.outputs[0]].shape, operator.builtin_options
    return options, shape[0 if options.time_major else 1], shape[2]


def test_an_lstm_of_a_network_by_chance_agrees_on_all_engines() -> None:
    """Its states go from one inference to the next, in the lifted program, too."""
    (row,) = generate(GenerateOptions(seed=4, size=1, operators=(LSTM,), check=True)).rows
    assert row.on_chip
    assert row.verdict is Verdict.PASS, row.message


@pytest.mark.parametrize("name", ["MAXIMUM of a number", "SOFTMAX of pixels", "ADD of a constant"])
def test_the_bin_of_an_operator_that_is_drawn_is_hit(name: str) -> None:
    """By the name that ``--operators`` has for it, if that is no kind of operator."""
    asked = GenerateOptions(seed=9, count=2, size=1, operators=(name,))
    assert networks(generate(asked).figures["bins"], name) == 2


def test_a_step_that_is_left_out_changes_nothing_in_those_it_does_not_feed() -> None:
    whole = recipe(0, 6)
    last = whole.steps[-1].number
    network, less = network_of(whole), network_of(whole.without(frozenset((last,))))
    assert network is not None
    assert less is not None
    assert less.kinds == network.kinds[:-1]
    assert [v.scale for v in less.values] == [v.scale for v in network.values[:-1]]


def test_a_failing_network_is_reduced_to_what_fails() -> None:
    """A stand-in for a fault: it needs a pool of an image of more than two rows."""

    def fails(made: Recipe) -> bool:
        network = network_of(made)
        assert network is not None
        rows = {-1 - k: shape[0] for k, shape in enumerate(made.inputs)}
        return any(
            step.operator == "MAX_POOL_2D" and rows.get(step.source, 0) > 2 for step in made.steps
        )

    whole = next(made for made in map(recipe, range(100)) if len(made.steps) > 9 and fails(made))
    least = reduced(whole, fails)
    assert [step.operator for step in least.steps] == ["MAX_POOL_2D"]
    read = least.inputs[-1 - least.steps[0].source]
    assert read == (3, 1, 1)


def test_a_fault_of_the_compiler_is_found_and_its_command_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(*given: Any) -> object:
        row = identity(*given)
        row[0, 0] = 2
        return row

    monkeypatch.setattr(pools, "identity", broken)
    (row,) = generate(SMALL).rows
    assert row.verdict is Verdict.MISMATCH
    assert row.smallest == 1
    words = shlex.split(row.repeat)
    assert words[:2] == ["darwinn", "generate"]
    assert run_command_line([*words[1:], "--json", "--out", str(tmp_path)]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["rows"][0]["operators"] == ["AVERAGE_POOL_2D"]
    # What is wrong is not written; the network is.
    assert [path.name for path in tmp_path.iterdir()] == ["network_3.tflite"]


def test_other_bytes_of_the_lifted_program_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = LiftedProgram.run

    def wrong(self: LiftedProgram, inputs: Any, threads: int = 1) -> Any:
        found = run(self, inputs, threads)
        return [
            {name: bytes((data[0] ^ 1,)) + data[1:] for name, data in each.items()}
            for each in found
        ]

    monkeypatch.setattr(LiftedProgram, "run", wrong)
    (row,) = generate(SMALL).rows
    assert row.verdict is Verdict.MISMATCH
    assert "lifted program gives other bytes" in row.message


def test_cycles_that_do_not_repeat_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter(range(1, 1000))

    def timed(executable: Any, name: str, *rest: Any, **more: Any) -> CyclesRow:
        return CyclesRow(name=name, verdict=Verdict.PASS, type="", cycles=next(counts))

    monkeypatch.setattr(engines, "time_executable", timed)
    (row,) = generate(SMALL).rows
    assert row.verdict is Verdict.MISMATCH
    assert "1 and then 2 cycles" in row.message


def test_a_compiler_that_breaks_off_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*arguments: object) -> Iterator[object]:
        raise ZeroDivisionError("no rows")

    monkeypatch.setattr(pools, "identity", breaks)
    (row,) = generate(SMALL).rows
    assert row.verdict is Verdict.FAULT
    assert "ZeroDivisionError: no rows" in row.message
    assert row.smallest == 1


def test_models_are_written_and_programs_are_counted_against_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["generate", "--seed", "3", "--size", "2", "--operators", "CONV_2D"]
    assert run_command_line([*words, "--out", str(tmp_path)]) == 0
    assert "nothing was checked" in capsys.readouterr().out
    compiled = tmp_path / "network_3_edgetpu.tflite"
    assert load(compiled).executables
    assert (tmp_path / "network_3.tflite").exists()
    assert run_command_line([*words, "--against", str(compiled), "--json"]) == 0
    for each in json.loads(capsys.readouterr().out)["programs"]:
        assert each["generated"] == each["others"] == each["both"] > 0
        assert each["missed"] == []


def test_what_programs_hold_is_told_from_what_they_do_not() -> None:
    one, other = Held(frozenset("ab"), frozenset("x")), Held(frozenset("bc"), frozenset("x"))
    values, crosses = compared(one, other)
    assert (values.generated, values.others, values.both, values.missed) == (2, 2, 1, ("c",))
    assert (crosses.both, crosses.missed) == (1, ())
    assert compared(one, None)[0].others is None
    assert held_by(()) == Held()
    assert len(set(declared())) == len(tuple(declared()))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--operators", "NOTHING"], "no NOTHING is drawn"),
        (["--keep", "99"], "no step 99"),
        (["--keep", "one"], "is no number"),
        (["--shapes", "8x8"], "HEIGHTxWIDTHxCHANNELS"),
        (["--shapes", "1x1x1,1x1x1,1x1x1,1x1x1"], "has 1 inputs"),
        (["--count", "2", "--keep", "0"], "for one network"),
        (["--engine", "rtl"], "--check"),
        (["--engine", "original"], "not one of 'model', 'rtl'"),
        (["--seed", "3", "--operators", "SOFTMAX", "--size", "1"], "none of --operators fits"),
        (["--against", "missing.tflite"], "missing.tflite"),
    ],
)
def test_wrong_options_are_one_clear_error(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["generate", "--seed", "1", *words]) == 2
    assert text in capsys.readouterr().err


def test_what_does_not_fit_is_no_network() -> None:
    with pytest.raises(InputError, match="do not fit"):
        generate(GenerateOptions(seed=2, size=1, operators=("MEAN",), inputs=((1, 1, 1),), keep=()))


def test_nothing_but_its_neighbours_reads_the_bytes_of_an_lstm() -> None:
    """In a network of uint8, others would take int8 for uint8, with a zero point that is none."""
    network = RandomNetwork(1, (1, 1, 3, 1), signed=False)
    network.lstm(network.values[0])
    read = tflite.load(network.finish())
    kinds = {read.subgraphs[0].tensors[each.index].type for each in network.values}
    assert kinds == {tflite.TensorType.UINT8}
