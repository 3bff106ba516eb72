"""Programs that are not lifted, each with its reason, and the limits of what is noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import averaging_program as sample
import numpy as np
import pytest
from darwinn_formats.darwinn import Executable, Layer, OutputLayer
from darwinn_formats.limits import Limits, limited
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import IncompleteProgram
from darwinn_sim.isa.codes import StoreOperation
from darwinn_sim.kernel import state
from darwinn_sim.lifting import program as lifting
from darwinn_sim.lifting import runs
from darwinn_sim.lifting import walk as walking
from darwinn_sim.lifting.foundation import CONTROL
from darwinn_sim.lifting.program import MOST_INPUTS, lift
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.units import identities
from darwinn_testbench.compiler.assembler import Assembler, signal, walk
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.program import (
    barrier,
    begin,
    end,
    request_input,
    send_input,
    send_output,
)
from lifted_runs import assert_same, ready
from threadpoolctl import threadpool_info

TILES = 1
WORDS = chip.ROW_WORDS


def moved(more: Callable[[Assembler], None], words: int = WORDS) -> Executable:
    """A program that takes a row in, does ``more``, and gives ``words`` of narrow memory out."""
    program = Assembler()
    begin(program)
    request_input(program, "image", chip.ROW_BYTES)
    program.tile("RingConsumerA", TILES, {"wide_write_base": 5}, signal())
    send_input(program, 0, chip.ROW_BYTES, TILES)
    barrier(program)
    program.tile(
        "WideToNarrow",
        TILES,
        {"wide_read_base": 5},
        walk("WideToNarrow", "narrow_write", 0, [(WORDS, 1)]),
        row_loop=1,
    )
    barrier(program)
    more(program)
    send_output(program, "results", 0, {0: words})
    end(program)
    return Executable(
        instruction_bitstreams=(program.chunk(),),
        batch_size=1,
        input_layers=(Layer(name="image", size_bytes=chip.ROW_BYTES),),
        output_layers=(Layer(name="results", size_bytes=4 * words, any_layer=OutputLayer()),),
    )


def sums(**fields: Any) -> Callable[[Assembler], None]:
    """A sum of the bytes of each lane of the row, over narrow memory."""

    def more(program: Assembler) -> None:
        program.tile(
            "TensorSum",
            TILES,
            walk("TensorSum", "narrow_write", 0, [(chip.LANES // 4, 4)]),
            {"parameter_read_base": 4 * 5, "partial_sum_read": 3, "last_block_lanes": 63},
            {"output_scale": 0.25, "high_clip": 255.0, "low_clip": 0.0} | fields,
        )
        barrier(program)

    return more


def nothing(_: Assembler) -> None:
    """The input goes out as it is."""


def stores(program: Assembler) -> None:
    """To where a register says that nothing has written in this run."""
    store = {"store_op": StoreOperation.INDIRECT, "store_address": 7, "store_register": 3}
    program.emit("Scalar", store)


REASONS = {
    "its course may depend on data, or on what came before": moved(stores),
    "it computes nothing in its tiles": moved(nothing),
    "a function has no table of this program": moved(sums(function=1)),
    "elements of output 'results' are what memories held beforehand": moved(sums(), WORDS + 2),
}


def refusal(accelerator: Accelerator, executable: Executable) -> str:
    with pytest.raises(NotLifted) as error:
        lift(accelerator, executable)
    return str(error.value)


@pytest.mark.parametrize("reason", REASONS)
def test_what_is_not_lifted_says_why(reason: str) -> None:
    """The chip holds afterwards what it held before."""
    executable, accelerator = REASONS[reason], Accelerator()
    accelerator.run(executable, {"image": bytes(chip.ROW_BYTES)})
    before = accelerator.chip.contents()
    assert refusal(accelerator, executable) == reason
    assert np.array_equal(accelerator.chip.contents().tiles, before.tiles)


@pytest.mark.parametrize("octet", [0, 7, 255])
def test_what_the_chip_holds_is_stale_and_nothing_has_written_it(octet: int) -> None:
    """Down to a single bit of any shadow; words of wide memory only where a run changes them."""
    tiles, core = state.new_tiles(), state.new_core()
    tiles.view(np.uint8)[:] = core.view(np.uint8)[:] = 0x5A
    changed = np.zeros(tiles["wide"].shape, np.bool_)
    changed[:, ::3] = True
    walk_of: Any = SimpleNamespace(_stale=changed)
    walking._Walk._forget(walk_of, tiles, core, np.uint8(octet))
    rows = [tiles["units"]["row"], tiles["ring"]["rows"], core["ring"]["rows"]]
    stale = [
        *(tiles["narrow"], tiles["scale_bias"], tiles["wide"][changed], tiles["mesh"]["data"]),
        *(core["memory"], core["registers"], core["activations"], core["parameters"]),
        core["units"]["row"]["data"],
        *(row["data"] for row in rows),
    ]
    unwritten = [
        *(tiles["narrow_written"], tiles["scale_bias_written"], core["memory_written"]),
        *(core["activations_written"], core["parameters_written"]),
        *(core["registers_written"], core["predicates_written"]),
        *(row["written"] for row in rows),
    ]
    assert [set(each.tobytes()) for each in stale] == [{octet}] * len(stale)
    assert [set(each.tobytes()) for each in unwritten] == [{0}] * len(unwritten)
    assert set(tiles["wide"][~changed].tobytes()) == {0x5A}
    assert (tiles["wide_written"] == walking._UNTOUCHED).all()


def test_a_chip_that_has_run_nothing_has_other_flags() -> None:
    found = refusal(Accelerator(), moved(sums()))
    assert found == "it leaves flags otherwise than it found them"


def test_sums_of_a_row_are_lifted() -> None:
    """What the programs above are without their faults; it has as many slots as it takes."""
    executable, accelerator = moved(sums()), Accelerator()
    accelerator.run(executable, {"image": bytes(chip.ROW_BYTES)})
    lifted = lift(accelerator, executable)
    assert_same(accelerator, executable, lifted, 0)
    assert lifted.operations == 1
    assert lifted.slots == 256 + chip.ROW_BYTES + chip.LANES
    room = lifted.slots
    assert [lifted.inputs_at_once(3), lifted.inputs_at_once(1000)] == [3, MOST_INPUTS]
    assert [lifted.inputs_at_once(9, memory) for memory in (0, room, 2 * room - 1, 2 * room)] == [
        *(1, 1, 1, 2)
    ]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_thread_takes_as_many_inputs(threads: int) -> None:
    executable, accelerator = moved(sums()), Accelerator()
    accelerator.run(executable, {"image": bytes(chip.ROW_BYTES)})
    lifted = lift(accelerator, executable)
    found = [lifted.inputs_at_once(count, threads=threads) for count in (1, 64, 65, 10_000)]
    assert found == [1, 64, min(65, MOST_INPUTS * threads), MOST_INPUTS * threads]


def test_what_is_noted_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    executable, accelerator = moved(sums()), Accelerator()
    accelerator.run(executable, {"image": bytes(chip.ROW_BYTES)})
    buffers = 1 << 12
    monkeypatch.setattr(walking, "BYTES_OF_AN_ITERATION", buffers)
    with limited(Limits(memory=buffers)):
        lift(accelerator, executable)
    with limited(Limits(memory=buffers - 1)):
        said = refusal(accelerator, executable)
    assert said == "1 tensor iterations take more than the limit of memory"
    # 256 bytes of input behind a first block, and 64 results.
    monkeypatch.setattr(walking, "MAX_IDENTITIES", 4 + 256 + 64)
    lift(accelerator, executable)
    monkeypatch.setattr(walking, "MAX_IDENTITIES", 4 + 256 + 64 - 1)
    assert refusal(accelerator, executable) == "it makes more bytes than have an identity"


def test_sums_and_their_weights_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of 1,000 products of a dense layer goes through several segments."""
    accelerator, executable = ready(random_dense([1000, 64], 5), stands_alone=False)
    lifted = lift(accelerator, executable)
    iterations, lanes = 250, 64
    with limited(Limits(memory=1 << 30)):
        monkeypatch.setattr(runs, "_BYTES_OF_A_WORD", (1 << 30) // (iterations * lanes))
        assert lift(accelerator, executable).operations == lifted.operations
        monkeypatch.setattr(runs, "_BYTES_OF_A_WORD", (1 << 30) // (iterations * lanes) + 1)
        said = refusal(accelerator, executable)
    assert said == "64,000 weights take more than the limit of memory"
    most = int(accelerator.load(executable).tables.tensor_plan.segment["count"].max())
    monkeypatch.setattr(walking, "MAX_SUM", iterations)
    lift(accelerator, executable)
    for found in (iterations, most):
        monkeypatch.setattr(walking, "MAX_SUM", found - 1)
        said = refusal(accelerator, executable)
        assert said == f"a sum has {found:,} iterations, more than {found - 1:,}"


def test_little_room_for_notes_is_emptied_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator, executable = ready(random_dense([60, 1000], 5), stands_alone=False)
    monkeypatch.setattr(walking, "_ROOM", 1)
    monkeypatch.setattr(identities, "MAX_DISTINCT", 1)
    assert_same(accelerator, executable, lift(accelerator, executable), 5)


def checked(**differs: object) -> str | None:
    """Why a run is not lifted that left a chip which had other words of such names."""
    names = CONTROL
    before = {name: np.arange(4) for name in names}
    after = {name: np.arange(4) + (name == differs.get("tiles")) for name in names}
    core = {"uninitialised": 0, "flags": np.arange(3)}
    flags = np.arange(3)[None] + (differs.get("core") == "flags")
    if "counts" in differs:
        core[str(differs["counts"])] = 1
    made: Any = SimpleNamespace(
        _accelerator=SimpleNamespace(chip=SimpleNamespace(tiles=after)),
        _before=SimpleNamespace(tiles=before, core={"flags": flags}),
    )
    core_of: Any = core
    try:
        walking._Walk._check(made, core_of)
    except NotLifted as error:
        return str(error)
    return None


def test_a_run_leaves_what_controls_the_next_as_it_was() -> None:
    assert checked() is None
    for name, text in {
        "flags": "flags",
        "wide_write_second": "wide write second",
        "ring_read_second": "ring read second",
        "fence_count": "fence count",
    }.items():
        assert checked(tiles=name) == f"it leaves {text} otherwise than it found them"
    assert checked(core="flags") == "it leaves flags otherwise than it found them"
    course = "its course may depend on data, or on what came before"
    assert checked(counts="uninitialised") == course


def test_inputs_as_many_as_before_have_the_same_room() -> None:
    executable, accelerator = moved(sums()), Accelerator()
    accelerator.run(executable, {"image": bytes(chip.ROW_BYTES)})
    lifted = lift(accelerator, executable)
    given = [{"image": bytes([k]) * chip.ROW_BYTES} for k in range(3)]
    first = lifted.run(given)
    (room,) = lifted._rooms
    assert lifted.run(given) == first
    assert lifted._rooms[0] is room
    assert lifted.run(given[:2]) == first[:2]
    assert lifted._rooms[0] is not room


def test_a_program_that_goes_on_in_another_chunk_is_not_walked() -> None:
    """The chip is powered up anew."""
    whole = sample.executable(split=20)
    begins = replace(whole, instruction_bitstreams=whole.instruction_bitstreams[:1])
    accelerator = Accelerator()
    with pytest.raises(IncompleteProgram):
        lift(accelerator, begins)
    assert accelerator.power_ups == 2
    image = sample.images()()
    assert accelerator.run(whole, {"image": image}).outputs == {"averages": sample.expected(image)}


@pytest.mark.parametrize(("work", "threads"), [(-1, 2), (0, 2), (1, 1), (1 << 40, 1)])
def test_threads_are_as_many_as_have_enough_to_do(
    work: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many products each, beside the first one."""
    executable, accelerator = moved(sums()), Accelerator()
    accelerator.run(executable, {"image": bytes(chip.ROW_BYTES)})
    lifted = lift(accelerator, executable)
    given = [{"image": bytes([k]) * chip.ROW_BYTES} for k in range(4)]
    monkeypatch.setattr(lifting, "_SHARED", 4 * lifted.products + work)
    assert len(lifted.run(given, 3)) == 4
    assert [room.values.shape[1] for room in lifted._rooms] == [4 // threads] * threads


@pytest.mark.parametrize("threads", [1, 2])
def test_products_of_matrices_have_no_threads_of_their_own(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would wait for each other, and on a machine with something else to do take long."""
    executable, accelerator = moved(sums()), Accelerator()
    accelerator.run(executable, {"image": bytes(chip.ROW_BYTES)})
    lifted = lift(accelerator, executable)
    run = lifting.LiftedProgram._run
    used: set[int] = set()

    def noted(*arguments: Any) -> Any:
        used.update(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return run(*arguments)

    monkeypatch.setattr(lifting.LiftedProgram, "_run", noted)
    monkeypatch.setattr(lifting, "_SHARED", 1)
    lifted.run([{"image": bytes(chip.ROW_BYTES)}] * threads, threads)
    assert used == {1}
