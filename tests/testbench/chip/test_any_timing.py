"""What every legal timing gives with every input: judged once for a program, and kept."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import averaging_program as sample
import numpy as np
import pytest
from averaging_program import RESULT_BYTE, ROW, TILE, Operation, line, watch
from darwinn_formats.darwinn import Package, dump, load
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.kernel.private_files import write_whole
from darwinn_testbench.chip import any_timing, hazards
from darwinn_testbench.chip.any_timing import Judged, judge
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.hazards import Hazards, Judgement
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, random_convolution
from darwinn_testbench.report import Verdict
from program_faults import Change, Kind, Mutation, mutated_model, programs_of

ZEROS = {"image": np.zeros((1, sample.INPUT_BYTES), np.uint8)}


pytestmark = pytest.mark.usefixtures("nothing_judged")


def pipeline_of(file: bytes) -> Pipeline:
    return Pipeline([Session(open_models(file)[0])])


def judged(file: bytes) -> Judged:
    return judge(pipeline_of(file))


def before(name: str, *more: Operation) -> bytes:
    """The program with further instructions before one."""
    program = sample.operations()
    place = [each for each, _ in program].index(name)
    return sample.package([*program[:place], *more, *program[place:]])


def told(file: bytes) -> Hazards:
    """What `run` says, which has to be that of `verify` on other inputs, and more of them."""
    ran = run(file).figures["hazards"]
    assert isinstance(ran, Hazards)
    verified = verify(file, runs=3, seed=5).figures["hazards"]
    assert (verified.found, verified.redundant, verified.only, verified.every_input) == (
        *(ran.found, ran.redundant, ran.only),
        ran.every_input,
    )
    return ran


def written_twice(value: int, *, constant: bool) -> bytes:
    """A unit of the mesh writes ``value`` where results go, or beside them where the program has
    written the constant 7 already, while nothing orders the two."""
    at = RESULT_BYTE // 4 + (100 if constant else 0)
    fill = {"tiles": 1 << TILE, "immediate_valid": 1} | line("narrow_write", 4, 1, at)
    earlier: list[Operation] = [("MeshNorth", fill | {"immediate": 7})] if constant else []
    return before("NarrowToWide", *earlier, ("MeshWest", fill | {"immediate": value}))


def test_what_is_the_same_by_chance_is_a_hazard_with_any_input() -> None:
    """Averages of zeros are 0, as is what the mesh writes over the first four."""
    report = run(written_twice(0, constant=False), [ZEROS])
    assert report.verdict is Verdict.HAZARD
    found = report.figures["hazards"]
    assert {each.kind for each in found.found} >= {"write after write"} and found.every_input
    assert found.redundant == ()


@pytest.mark.parametrize("value", [7, 8])
def test_constants_are_the_same_with_every_input(value: int) -> None:
    found = told(written_twice(value, constant=True))
    assert bool(found.found) is (value != 7)
    assert bool(found.redundant) is (value == 7)


def test_a_read_of_what_nothing_has_written_names_the_reader() -> None:
    program = sample.changed("TensorSum", parameter_read_base=4 * (ROW + 1))
    (found,) = told(sample.package(program)).found
    assert found.kind == "read of unwritten"
    assert found.second.instruction == "TensorSum" and found.second.tile == TILE
    assert found.memory == f"wide memory of tile {TILE}"
    assert str(found).startswith(f"TensorSum at pc {found.second.pc} of executable 0 (tensor unit")


def test_unwritten_memory_that_reaches_no_output_is_none() -> None:
    """A second sum of unwritten rows, whose results nobody reads."""
    (instruction,) = [each for each in sample.operations() if each[0] == "TensorSum"]
    more = instruction[1] | {
        "parameter_read_base": 4 * (ROW + 1),
        "narrow_write_base": RESULT_BYTE + 1024,
    }
    found = told(before("NarrowToWide", ("TensorSum", more)))
    assert (found.found, found.only, found.every_input) == ((), (), True)


def test_unwritten_memory_under_a_clip_is_named() -> None:
    """Every sum is clipped to 0: which bytes there are changes nothing, by the clip."""
    fields = {"parameter_read_base": 4 * (ROW + 1), "high_clip": 0.0}
    found = told(sample.package(sample.changed("TensorSum", **fields)))
    assert found.found == () and not found.every_input
    (text,) = found.only
    assert "memory that nothing has written" in text and "'averages'" in text
    assert str(found) == f"no hazards; judged for this input only: {text}"


def _halves(model: bytes) -> Sequence[Mutation]:
    """Each instruction of the tensor unit that counts blocks of scales, with one block less."""
    (compiled,) = load(model).models
    found = []
    chunk = programs_of(compiled)[0][0]
    for operation in (chunk[k] for k in range(len(chunk))):
        if not operation.instruction.name.startswith("Tensor"):
            continue
        names = ("watcher_valid", "watcher_flag", "watcher_expected")
        columns = (operation.many(each) for each in names)
        for slot, (valid, flag, count) in enumerate(zip(*columns, strict=True)):
            if valid and flag == TileFlag.WIDE_TO_SCALING:
                change = Change("watcher_expected", slot, count, count - 1)
                name = operation.instruction.name
                found.append(Mutation(0, 0, operation.pc, name, (change,), Kind.WATCHER_WEAKENED))
    return found


def test_a_half_of_the_scales_that_nothing_has_written() -> None:
    """The parity of the awaited count picks the half: an inference reads the other one."""
    model = dump(compile_network(random_convolution(16, 64, 8, 20, 0)))
    mutations = _halves(model)
    assert mutations
    for mutation in mutations:
        mutated = mutated_model(load(model).models[0], mutation)
        assert mutated.caching is not None
        found = told(dump(Package.of(mutated.inference, mutated.caching))).found
        assert any("scale/bias buffer" in each.memory for each in found), str(mutation)


def by_its_input() -> bytes:
    """A program that executes something if the first average is 0."""
    fields = {"row_words": 63, "to_host": 0} | line("buffer", 3, 16, 0)
    send = {"tiles": 1 << TILE, "wide_read_base": sample.RESULT_ROW, "targets": 1 << 16}
    wait = watch(3, TileFlag.NARROW_TO_WIDE_WRITE, 1)
    return before(
        "RingOutfeed",
        ("RingOutfeed", fields),
        ("RingProducer", send | {"token_producer_increment": 1} | wait),
        ("ScalarFence", {"wait_idle": 31}),
        ("Scalar", {"load_op": 1, "load_address": 0, "load_register": 9}),
        ("Scalar", {"alu_op": 9, "alu_immediate": 1, "alu_a": 9, "alu_destination": 1}),
        ("Scalar", {"gate": 1, "predicate": 1, "polarity": 1, "alu_op": 0}),
    )


def test_where_data_decide_the_inputs_are_judged(nothing_judged: Path) -> None:
    found = run(by_its_input(), runs=2).figures["hazards"]
    assert (found.inferences, found.every_input, found.fault) == (2, False, "")
    (text,) = found.only
    assert text.startswith("Scalar at pc ") and "follow from the input" in text
    assert not list(nothing_judged.rglob("order.*"))


def test_what_was_judged_is_kept(nothing_judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = sample.package(sample.changed("RingInfeed", watcher_stride=[0, 0]))
    first = run(file).figures["hazards"]
    assert first.judged is Judgement.JUDGED and len(first.found) == 1
    (path,) = nothing_judged.rglob("order.*")
    assert path.stat().st_mode & 0o77 == 0 and path.parent.stat().st_mode & 0o77 == 0

    def judged_again(*arguments: object) -> Judged:
        raise AssertionError("judged again")

    monkeypatch.setattr(hazards, "judge", judged_again)
    again = verify(file, runs=2, seed=9).figures["hazards"]
    assert again.judged is Judgement.KEPT and again.found == first.found
    with pytest.raises(AssertionError, match="judged again"):
        run(sample.package())


@pytest.mark.parametrize("damage", ["bytes", "writable", "pickle"])
def test_what_cannot_be_trusted_is_judged_again(
    damage: str, nothing_judged: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(sample.package())
    (path,) = nothing_judged.rglob("order.*")
    if damage == "writable":
        path.chmod(0o666)
    elif damage == "bytes":
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    else:
        write_whole(path, b"no pickle")
    with caplog.at_level(logging.WARNING):
        found = run(sample.package()).figures["hazards"]
    assert found.judged is Judgement.JUDGED and "judged again" in caplog.text
    assert run(sample.package()).figures["hazards"].judged is Judgement.KEPT


def test_the_chip_is_as_after_power_up() -> None:
    pipeline = pipeline_of(sample.package())
    accelerator = pipeline.sessions[0].accelerator
    accelerator.strict = True
    assert judge(pipeline) == Judged(judge(pipeline).found)
    assert (accelerator.strict, accelerator.hazards, accelerator.any_input) == (True, False, None)
    image = sample.images()()
    given = {"image": np.frombuffer(image, np.uint8).reshape(1, -1)}
    (result,) = pipeline.infer(given)[0].outputs.values()
    assert result.tobytes() == sample.expected(image)


def test_clocks_that_are_used_up_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_timing, "ENOUGH", 0.0)
    assert judged(sample.package()).found[0].used > 0
