"""The accelerator: whole runs of a small program, and what is left after errors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import averaging_program as sample
import numpy as np
import pytest
from averaging_program import Operation
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Executable, InstructionBitstream
from darwinn_formats.errors import FormatError
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator, RunResult
from darwinn_sim.errors import (
    ChipFault,
    Deadlock,
    NotEnded,
    SimulationError,
    UninitialisedRead,
    UnsupportedInstruction,
)
from darwinn_sim.host.buffers import DriverError, Request
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.isa.codes import StoreOperation
from darwinn_sim.machine.examine import StopPoint, Tap

IMAGE = sample.images()()
SPIN: Operation = ("Branch", {"relative": 1, "offset": 0})


def run(accelerator: Accelerator, program: list[Operation] | None = None) -> RunResult:
    return accelerator.run(sample.executable(program), {"image": IMAGE})


def assert_works(accelerator: Accelerator) -> None:
    assert run(accelerator).outputs == {"averages": sample.expected(IMAGE)}


def test_a_run_gives_outputs_interrupts_trace_and_statistics() -> None:
    result = run(Accelerator())
    assert result.outputs == {"averages": sample.expected(IMAGE)}
    assert result.interrupts == [0]
    kinds = [transfer.kind for transfer in result.transfers]
    assert kinds[0] == TransferKind.INSTRUCTION and len(kinds) == 4
    assert [t.size for t in result.transfers[1:3]] == [sample.INPUT_BYTES, sample.OUTPUT_BYTES]
    assert result.statistics["ring_rows"] == 2
    assert result.statistics["tensor_iterations"] == 1
    assert not result.stopped and not result.tapped and not result.warnings


@pytest.mark.parametrize("strict", [False, True])
def test_inferences_do_not_depend_on_those_before(strict: bool) -> None:
    """Each input gives its own output, in any order, on one chip or on several."""
    accelerator = Accelerator(strict=strict)
    image = sample.images()
    inputs = [image() for _ in range(3)]
    program = sample.executable()
    for data in [*inputs, *reversed(inputs)]:
        result = accelerator.run(program, {"image": data})
        assert result.outputs["averages"] == sample.expected(data)
    assert result.statistics == Accelerator().run(program, {"image": inputs[0]}).statistics


def test_runs_that_are_deferred_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the last of them, when somebody looks at the chip or runs another program."""
    plain, deferring = Accelerator(), Accelerator()
    image, program = sample.images(), sample.executable()
    inputs = [{"image": image()} for _ in range(3)]
    for each in inputs:
        plain.run(program, each)
        deferring.defer(program, each)
    assert deferring.runs == plain.runs == 3
    assert np.array_equal(deferring.chip.tiles["narrow"], plain.chip.tiles["narrow"])
    assert plain.chip.tiles["narrow"].any()
    for run_it in (deferring.defer, deferring.run):
        run_it(program, inputs[0])
    deferring.defer(program, inputs[1])
    assert deferring.runs == 6
    deferring.power_up()
    assert not deferring.chip.tiles["narrow"].any()
    # It is run before anything else is.
    made: list[bytes] = []
    prepare = deferring._driver.prepare

    def noted(executable: Executable, given: Mapping[str, bytes]) -> Request:
        made.append(given["image"])
        return prepare(executable, given)

    monkeypatch.setattr(deferring._driver, "prepare", noted)
    deferring.defer(program, inputs[2])
    deferring.run(program, inputs[0])
    assert made == [inputs[2]["image"], inputs[0]["image"]]
    assert (deferring.runs, deferring.power_ups) == (8, 2)


@pytest.mark.parametrize("split", [4, 6, 14, 17, 20, 30])
def test_chunks_go_on_where_the_last_one_ended(split: int) -> None:
    """Units work on across the end of a chunk, and flags and registers keep their values."""
    accelerator = Accelerator(strict=True)
    for _ in range(2):
        result = accelerator.run(sample.executable(split=split), {"image": IMAGE})
        assert result.outputs["averages"] == sample.expected(IMAGE)
        fetches = [t for t in result.transfers if t.kind == TransferKind.INSTRUCTION]
        assert len(fetches) == 2


def test_programs_alternate_on_one_chip() -> None:
    """Tile memories persist, and so does nothing else that would change a result."""
    accelerator = Accelerator()
    brighter = sample.changed("TensorSum", output_zero_point=100)
    for _ in range(2):
        assert_works(accelerator)
        values = np.frombuffer(run(accelerator, brighter).outputs["averages"], np.uint8)
        plain = np.frombuffer(sample.expected(IMAGE), np.uint8).astype(int)
        assert values.tolist() == np.minimum(plain + 100, 255).tolist()


SHORT = sample.changed("RingOutfeed", **sample.line("buffer", 3, 7, 0))
LATE = sample.changed("TensorSum", **sample.watch(6, 14, 2, None))

FAILURES: dict[str, tuple[list[Operation], type[SimulationError]]] = {
    "a flag that never comes": (LATE, Deadlock),
    "output that is short": (SHORT, SimulationError),
    "an endless loop": ([*sample.operations()[:8], SPIN], NotEnded),
    "a row outside the memory": (sample.changed("RingConsumerA", wide_write_base=4000), ChipFault),
    "a value that is refused": ([("Branch", {"reserved_32": 1})], UnsupportedInstruction),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("strict", [False, True])
def test_the_chip_is_usable_after_an_error(name: str, strict: bool) -> None:
    program, error = FAILURES[name]
    accelerator = Accelerator(strict=strict, work_limit=1 << 22)
    assert_works(accelerator)
    for _ in range(2):
        with pytest.raises(error):
            run(accelerator, program)
        assert_works(accelerator)


def test_errors_of_the_caller_leave_the_chip_usable() -> None:
    accelerator = Accelerator()
    with pytest.raises(SimulationError):
        accelerator.run(sample.executable(), {})
    assert_works(accelerator)
    for until in (StopPoint(layer=9), StopPoint(chunk=3, pc=1), StopPoint(pc=10_000)):
        with pytest.raises(ValueError, match=r"there is no|no instruction"):
            accelerator.run(sample.executable(), {"image": IMAGE}, until=until)
        assert_works(accelerator)
    with pytest.raises(ValueError, match="there is no layer 1"):
        accelerator.run(sample.executable(), {"image": IMAGE}, taps=[Tap(layer=1)])
    assert_works(accelerator)


def test_a_refused_program_reaches_nothing() -> None:
    """No transfer is made, and the first refused instruction is named, also in a later chunk."""
    accelerator = Accelerator()
    program = sample.changed("RingProducer", register_sources=1)
    whole = sample.executable(program, split=12)
    with pytest.raises(UnsupportedInstruction) as caught:
        accelerator.run(whole, {"image": IMAGE})
    assert (caught.value.chunk, caught.value.field, caught.value.value) == (
        1,
        "register_sources",
        1,
    )
    assert accelerator.host.transfers == []


@pytest.mark.parametrize(
    "body",
    [
        [SPIN],
        [("Scalar", {}), ("Branch", {"relative": 1, "offset": -1})],
        [("Loop", {"count": 65535, "body": 4 - k}) for k in range(3)] + [("Scalar", {})] * 2,
    ],
    ids=["branch to itself", "branch back", "nested loops"],
)
def test_an_endless_program_is_ended(body: list[Operation]) -> None:
    accelerator = Accelerator(work_limit=3_000_000)
    reports = []
    with pytest.raises(NotEnded, match="3000000"):
        accelerator.run(
            sample.executable([*sample.operations()[:4], *body]),
            {"image": IMAGE},
            progress=lambda steps, iterations: reports.append((steps, iterations)),
        )
    assert reports == sorted(reports) and reports[-1][0] >= 2_000_000


def test_descriptors_without_end_are_ended_before_their_trace_grows_without_bound() -> None:
    program = sample.operations()
    issue = program.index(("Scalar", {"store_op": 6}))
    again: Operation = ("Branch", {"relative": 1, "offset": -1})
    reports = []
    with pytest.raises(NotEnded, match="has not ended"):
        Accelerator(work_limit=1 << 21).run(
            sample.executable([*program[: issue + 1], again]),
            {"image": IMAGE},
            progress=lambda steps, _: reports.append(steps),
        )
    assert reports[-1] < 2000


def test_seeds_of_any_length_are_used() -> None:
    assert_works(Accelerator(seed=1 << 70))


def test_an_executable_without_instructions_is_no_executable() -> None:
    for bitstreams in ((), (InstructionBitstream(b""),)):
        empty = replace(sample.executable(), instruction_bitstreams=bitstreams)
        with pytest.raises(FormatError, match="instruction_bitstreams"):
            Accelerator().run(empty, {"image": IMAGE})


def test_a_fault_names_unit_chunk_bundle_and_tile() -> None:
    program = sample.changed("NarrowToWide", wide_write_base=chip.WIDE_ROWS)
    names = [name for name, _ in program]
    split = names.index("PopInput")
    with pytest.raises(ChipFault) as caught:
        Accelerator().run(sample.executable(program, split=split), {"image": IMAGE})
    error = caught.value
    assert (error.unit, error.chunk, error.tile) == ("wide memory", 1, sample.TILE)
    # LoadProgram 1, PopInput 2, RingConsumerA 4, RingInfeed 4, TensorSum 17 bundles.
    assert error.pc == 28
    assert error.address == chip.WIDE_ROWS


def test_output_that_is_short_is_an_error() -> None:
    """The descriptor asks for 64 bytes, the outfeed gives 56: the host would wait for ever."""
    with pytest.raises(SimulationError, match="8 bytes not delivered"):
        run(Accelerator(), SHORT)


def test_output_that_no_descriptor_asks_for_is_an_error() -> None:
    """A word that is pushed behind the output: the next run would have it in its own."""
    program: list[Operation] = [
        *sample.operations(),
        ("Scalar", {"store_op": StoreOperation.PUSH}),
    ]
    with pytest.raises(Deadlock, match="output stream: 4 bytes wait for a descriptor"):
        run(Accelerator(), program)


@pytest.mark.parametrize("missing", ["PopInput", "RingConsumerA", "RingInfeed", "RingProducer"])
def test_a_missing_instruction_is_a_deadlock(missing: str) -> None:
    with pytest.raises(Deadlock) as caught:
        run(Accelerator(), sample.without(missing))
    assert caught.value.waiting


@pytest.mark.parametrize(
    ("name", "fields", "place"),
    [
        ("TensorSum", {"parameter_read_base": 4 * 77}, "tile {tile}, chunk 0, pc 26, 0x4d00"),
        (
            "NarrowToWide",
            sample.line("narrow_read", 6, 16, 9000),
            "scalar core, chunk 0, pc 58, 0x0",
        ),
        ("RingProducer", {"wide_read_base": 1234}, "scalar core, chunk 0, pc 58, 0x0"),
    ],
    ids=["wide memory", "narrow memory", "row to the host"],
)
@pytest.mark.parametrize("tile", [0, 5])
def test_strict_mode_names_a_use_of_memory_that_nothing_has_written(
    name: str, fields: dict[str, Any], place: str, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The use is where bytes leave the chip; without strict mode it is a warning."""
    monkeypatch.setattr(sample, "TILE", tile)
    program = sample.changed(name, **fields)
    with pytest.raises(UninitialisedRead) as caught:
        run(Accelerator(strict=True), program)
    assert str(caught.value) == (
        f"elements of output 'averages' (first unwritten operand: {place.format(tile=tile)}): "
        "read of 64 bytes at 0x0 that nothing has written"
    )
    result = run(Accelerator(), program)
    assert len(result.outputs["averages"]) == sample.OUTPUT_BYTES


def test_strict_mode_follows_scalar_memory() -> None:
    """A word of scalar memory that nothing has written may be moved, but is no descriptor."""
    load: Operation = ("Scalar", {"load_op": 1, "load_register": 9, "load_address": 40})
    describe: Operation = ("Scalar", {"store_op": 5, "store_register": 9, "store_address": 2})
    store: Operation = ("Scalar", {"store_op": 1, "store_register": 9, "store_address": 41})
    moves = sample.operations()[:4]
    rest = sample.operations()[4:]
    moved = [*moves, load, ("Scalar", {}), store, *rest]
    assert run(Accelerator(strict=True), moved).outputs["averages"] == sample.expected(IMAGE)
    with pytest.raises(UninitialisedRead, match="scalar core, chunk 0, pc"):
        run(Accelerator(strict=True), [*moves, load, ("Scalar", {}), describe, *rest])


def test_what_cannot_reach_an_output_is_a_warning() -> None:
    """Sums of unwritten rows times 0 are 0, whatever the rows hold; the chip goes on as it was."""
    accelerator = Accelerator(strict=True)
    program = sample.changed("TensorSum", parameter_read_base=4 * 77, output_scale=0.0)
    first, again = (run(accelerator, program) for _ in range(2))
    (warning,) = first.warnings
    assert "output 'averages'" in warning
    assert "first unwritten operand: tile 5, chunk 0, pc" in warning
    assert again.outputs == first.outputs
    moved = [[(each.kind, each.size) for each in result.transfers] for result in (first, again)]
    assert moved[0] == moved[1]
    assert_works(accelerator)


def test_power_ups_are_counted() -> None:
    """Who has put parameters into the chip knows by them that they are gone."""
    accelerator = Accelerator()
    assert (accelerator.power_ups, accelerator.runs) == (1, 0)
    run(accelerator, sample.operations())
    assert (accelerator.power_ups, accelerator.runs) == (1, 1)
    accelerator.power_up()
    assert (accelerator.power_ups, accelerator.runs) == (2, 1)


def test_a_chip_holds_again_what_it_held() -> None:
    """In its tiles and in its scalar core: another program makes both other ones."""
    accelerator = Accelerator()
    run(accelerator, sample.operations())
    chip = accelerator.chip
    held = chip.contents()
    before = chip.tiles.tobytes(), chip.core_array.tobytes()
    run(accelerator, [*sample.operations()[:4], alu(15, 9, 0, 77), *sample.operations()[4:]])
    assert chip.core_array.tobytes() != before[1]
    chip.tiles["narrow"] += np.uint32(1)
    chip.restore(held)
    assert (chip.tiles.tobytes(), chip.core_array.tobytes()) == before


def test_output_that_is_owed_at_the_end_is_what_the_driver_finds() -> None:
    """The chip stands still without a deadlock: more of it might come, as far as it knows."""
    program = sample.operations()
    (place,) = (
        number
        for number, (_, fields) in enumerate(program)
        if (fields.get("alu_destination"), fields.get("alu_b")) == (5, sample.OUTPUT_BYTES)
    )
    program[place] = ("Scalar", {**program[place][1], "alu_b": sample.OUTPUT_BYTES + 8})
    with pytest.raises(DriverError, match=r"completion of the request: output .* 8 bytes not de"):
        run(Accelerator(), program)


def test_a_function_whose_table_nothing_has_written_is_found() -> None:
    with pytest.raises(UninitialisedRead, match="elements of output 'averages'"):
        run(Accelerator(strict=True), sample.changed("TensorSum", function=1))


def test_unwritten_elements_of_an_output_are_counted_where_nothing_stops_at_them() -> None:
    result = run(Accelerator(), sample.changed("RingProducer", wide_read_base=99))
    assert result.statistics["uninitialised_reads"] == sample.OUTPUT_BYTES
    assert result.warnings == (
        "64 uses of memory that nothing has written (--strict stops at the first)",
    )


LOAD_UNWRITTEN: Operation = ("Scalar", {"load_op": 1, "load_register": 9, "load_address": 40})


def alu(operation: int, destination: int, a: int, b: int) -> Operation:
    """An ALU operation with an immediate."""
    fields = {"alu_op": operation, "alu_destination": destination, "alu_a": a, "alu_b": b}
    return "Scalar", fields | {"alu_immediate": 1}


COMPARE = alu(9, 1, 9, 5)
BRANCH: Operation = (
    "Branch",
    {"conditional": 1, "branch_predicate": 1, "branch_polarity": 1, "offset": 1, "relative": 1},
)
GATED: Operation = ("Scalar", {"gate": 1, "predicate": 1, "polarity": 1})
POINTED: Operation = ("Scalar", {"load_op": 2, "load_register": 8, "load_address": 9})


@pytest.mark.parametrize(
    ("decides", "pc", "register"),
    [([COMPARE, BRANCH], 7, 1), ([COMPARE, GATED], 7, 1), ([POINTED], 6, 9)],
    ids=["branch", "gate", "address"],
)
def test_what_nothing_has_written_decides_nothing(
    decides: list[Operation], pc: int, register: int
) -> None:
    """It may be loaded and compared; masked out, its place in a word is like any other."""
    head, rest = sample.operations()[:4], sample.operations()[4:]
    masked = alu(3, 9, 9, 0)
    for before, stops in (([], True), ([masked], False)):
        program = [*head, LOAD_UNWRITTEN, *before, *decides, *rest]
        if not stops:
            assert run(Accelerator(strict=True), program).outputs["averages"] == sample.expected(
                IMAGE
            )
            continue
        with pytest.raises(UninitialisedRead) as caught:
            run(Accelerator(strict=True), program)
        assert str(caught.value) == (
            f"scalar core, chunk 0, pc {pc}: read of 1 bytes at {register:#x} that nothing has "
            "written"
        )
    compared = [*head, LOAD_UNWRITTEN, COMPARE, *rest]
    assert run(Accelerator(strict=True), compared).outputs["averages"] == sample.expected(IMAGE)


def test_tile_memory_of_a_caching_run_counts_as_written() -> None:
    """Strict mode: what one run has written, the next may read."""
    accelerator = Accelerator(strict=True)
    assert_works(accelerator)
    again = sample.changed(
        "TensorSum", parameter_read_base=4 * sample.RESULT_ROW, last_block_lanes=15
    )
    short = sample.line("narrow_write", 8, 4, sample.RESULT_BYTE, 4)
    place = [name for name, _ in again].index("TensorSum")
    again[place] = ("TensorSum", again[place][1] | short)
    outputs = run(accelerator, again).outputs["averages"]
    first = np.frombuffer(sample.expected(IMAGE), np.uint8)
    sums = first.reshape(-1, 4).sum(axis=1, dtype=np.float32) * np.float32(0.25)
    assert list(outputs[:16]) == np.rint(sums).astype(int).tolist()
    assert outputs[16:] == sample.expected(IMAGE)[16:]


def test_dma_only_gives_the_same_descriptors() -> None:
    whole, alone = run(Accelerator(seed=1)), run(Accelerator(seed=1, dma_only=True))
    shape = [(t.kind, t.size) for t in whole.transfers]
    assert shape == [(t.kind, t.size) for t in alone.transfers]
    assert len(alone.outputs["averages"]) == sample.OUTPUT_BYTES


def test_dma_only_runs_programs_whose_tiles_are_refused() -> None:
    program = sample.changed("TensorSum", alternate_base=1)
    assert run(Accelerator(dma_only=True), program).interrupts == [0]
    with pytest.raises(UnsupportedInstruction):
        run(Accelerator(), program)


@pytest.mark.parametrize("name", ["dense_256", "bright_16x16", "gabor_64x64_7k_4o_2s"])
def test_real_inferences_repeat_byte_for_byte(name: str, corpus: Path) -> None:
    """Parameters once, then inferences: equal inputs give equal bytes, in strict mode as well."""
    (model,) = darwinn.load(corpus / "darwinn" / f"{name}_edgetpu.tflite").models
    random = np.random.default_rng(3)
    layers = model.inference.input_layers
    inputs = {layer.name or "": random.bytes(layer.size_bytes) for layer in layers}
    others = {layer.name or "": random.bytes(layer.size_bytes) for layer in layers}
    found = []
    for strict in (False, True):
        accelerator = Accelerator(strict=strict)
        if model.caching:
            accelerator.run(model.caching, {})
        for data in (inputs, others, inputs):
            found.append(accelerator.run(model.inference, data).outputs)
    assert found[:3] == found[3:]
    assert found[0] == found[2] != found[1]
    assert all(first.keys() == second.keys() for first, second in itertools.pairwise(found))


def test_wide_memory_is_filled_from_a_row_on() -> None:
    """And not a byte beyond it."""
    accelerator = Accelerator()
    data = bytes(range(1, 200))
    last = chip.TILES - 1
    accelerator.preload_wide(last, 0, data)
    accelerator.preload_wide(0, 7, data)
    accelerator.preload_wide(1, chip.WIDE_ROWS - 1, bytes([9]) * chip.ROW_BYTES)
    tiles = accelerator.chip.tiles
    for tile, first, expected in (
        (last, 0, data),
        (0, 7 * chip.ROW_BYTES, data),
        (1, (chip.WIDE_ROWS - 1) * chip.ROW_BYTES, bytes([9]) * chip.ROW_BYTES),
    ):
        held = np.zeros(chip.WIDE_ROWS * chip.ROW_BYTES, np.uint8)
        held[first : first + len(expected)] = np.frombuffer(expected, np.uint8)
        assert np.array_equal(tiles[tile]["wide"].view(np.uint8), held)
        assert np.array_equal(tiles[tile]["wide_written"].view(np.uint8), held != 0)


@pytest.mark.parametrize(
    ("tile", "row", "size"),
    [
        (-1, 0, 1),
        (chip.TILES, 0, 1),
        (0, -1, 1),
        (0, 0, 0),
        (0, chip.WIDE_ROWS - 1, chip.ROW_BYTES + 1),
    ],
)
def test_what_does_not_fit_wide_memory_is_refused(tile: int, row: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"{size} bytes from row {row} on do not fit"):
        Accelerator().preload_wide(tile, row, bytes(size))


@pytest.mark.parametrize(
    "options", [{"strict": True}, {"dma_only": True}, {"hazards": True}, {"schedule": 0}]
)
def test_a_chip_that_is_looked_at_is_not_lifted(options: dict[str, Any]) -> None:
    assert Accelerator().liftable
    assert not Accelerator(**options).liftable
