"""The event model with the harness's description, against cycles of the whole chip in RTL."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from averaging_program import watch
from chip_programs import ALL_TILES, FROM_RESET, Operation, counted_turns, programs
from chip_runs import rtl_chip
from darwinn_formats.files import Content, Source
from darwinn_rtl.chip.host import WINDOW_BASE
from darwinn_sim import timing
from darwinn_sim.errors import ChipFault, Deadlock
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codes import AluOperation, DescriptorTag, StoreOperation, TileFlag
from darwinn_sim.machine.lowering import lower
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Device, Session
from darwinn_testbench.compilation.compile import compile_model
from darwinn_testbench.compiler.network import Sample, random_convolution, random_dense
from darwinn_testbench.compiler.package import compile_network, edgetpu_model
from darwinn_testbench.compiler.recipes import network_of, recipe
from harness_runs import require_toolchain
from hypothesis import assume, note
from hypothesis import strategies as st
from nightly import check_cases, nightly_too
from scalar_programs import alu
from stimulus import line

from tests.nightly.deadline import is_over

LIMIT = 30_000
SEEN = 1
"""Cycle in which the player sees that everything is idle."""
CLOSE_BURSTS = (5, 41)
"""Seeds of networks whose output leaves in bursts close together, once and twice."""


def predicted(operations: list[Operation]) -> int:
    """Cycles from the first instruction on; raises ``Deadlock``."""
    chunk = frame(build(operations))
    harness = timing.chip_description("harness")
    link = timing.host_link("harness")
    result = timing.simulate_program(lower((chunk,)), (len(chunk),), harness, link, limit=LIMIT)
    # One cycle after the last byte of the chunk the first instruction is there.
    return result.cycles - result.transfers[0].end - 1


@nightly_too
def test_programs_of_the_chip_take_the_predicted_cycles(nightly: bool) -> None:
    """Every unit alone and with others: ring, mesh, fences, scalar side, tiles."""
    check_cases("cycles of chip programs", programs(), check_program, 60, nightly=nightly)


@nightly_too
def test_fences_that_count_turns_take_the_predicted_cycles(nightly: bool) -> None:
    """A fence passes in the cycle in which the turns are as many as it says, on both."""
    cases = counted_turns().map(lambda operations: [*FROM_RESET, *operations])
    check_cases("cycles of counting fences", cases, check_program, 60, nightly=nightly)


_READS, _WRITES = (line("MeshSouth", side, 3) for side in ("narrow_read", "narrow_write"))


@pytest.mark.parametrize("sides", [{}, _READS | _WRITES, _WRITES | {"immediate_valid": 1}])
def test_an_instruction_of_the_mesh_takes_the_predicted_cycles(sides: dict[str, Any]) -> None:
    """Also where one of its sides is off, or both."""
    check_program([*FROM_RESET, *[("MeshSouth", sides | {"tiles": ALL_TILES})] * 3])


@pytest.mark.parametrize("words", [*range(97, 105), *range(193, 201)])
def test_room_that_comes_as_the_ring_gets_free_is_for_who_is_first(words: int) -> None:
    """Tile 0 waits for room at tile 4, which takes the row before once ``words`` words were
    written; meanwhile tile 1 has the ring. What waits for tile 0's row shows whose turn it was."""
    immediates = line("MeshSouth", "narrow_write", 300) | {"immediate_valid": 1}
    two, three = (line("RingConsumerA", "wide_write", rows) for rows in (2, 3))
    from_0, from_1 = (line("RingProducer", "wide_read", rows) for rows in (2, 3))
    held = two | watch(3, TileFlag.MESH_INBOUND_FROM_NORTH, words, None)
    check_program(
        [
            *FROM_RESET,
            ("MeshSouth", immediates | {"tiles": 1 << 4, "write_producer_increment": 1}),
            ("RingConsumerA", held | {"tiles": 1 << 4, "producer_increment": 1}),
            ("MeshWest", immediates | watch(6, TileFlag.RING_BUS_READ_A, 2, 1) | {"tiles": 1 << 4}),
            ("RingConsumerA", three | {"tiles": 1 << 5}),
            ("RingProducer", from_0 | {"tiles": 1 << 0, "targets": 1 << 4}),
            ("RingProducer", from_1 | {"tiles": 1 << 1, "targets": 1 << 5}),
        ]
    )


def check_program(operations: list[Operation]) -> None:
    """Cycles are as predicted."""
    try:
        cycles = predicted(operations)
    except (ChipFault, Deadlock) as error:
        # Parts that are drawn one by one: where a double buffer stands is left by the part before.
        note(str(error))
        assume(False)
    chip = rtl_chip()
    chip.reset()
    begin = chip.cycle
    for name, fields in operations:
        chip.hand_over(name, build([(name, fields)]), fields.get("tiles", 0))
    chip.settle()
    taken = chip.cycle - begin - SEEN
    assert taken == cycles


class Sent(NamedTuple):
    """Output from the scalar core: where it goes, and how many of its words (of 4 bytes) are pushed
    before its descriptor and behind it."""

    address: int
    before: int
    behind: int


outputs = st.lists(
    st.builds(Sent, st.integers(0, 8191), st.integers(0, 40), st.integers(1, 120)),
    min_size=1,
    max_size=4,
)


@nightly_too
def test_outputs_anywhere_take_the_predicted_cycles(nightly: bool) -> None:
    """Bursts of any length, from any byte of a word on, and up to a multiple of 4 KiB."""
    check_cases("cycles of outputs", outputs, check_outputs, 60, nightly=nightly)


def check_outputs(sent: list[Sent]) -> None:
    """Outputs and the interrupt behind them take the predicted cycles."""
    operations: list[Operation] = list(FROM_RESET)
    for each in sent:
        operations += each.before * [_PUSH]
        operations += _descriptor(DescriptorTag.OUTPUT, each)
        operations += each.behind * [_PUSH]
    operations += _descriptor(DescriptorTag.INTERRUPT_0, None)
    cycles = predicted(operations)
    chip = rtl_chip()
    chip.reset()
    chip.unmap_all()
    memory = np.zeros(4 * 4096, np.uint8)
    chip.map(0, memory.ctypes.data, memory.size)
    begin = chip.cycle
    for name, fields in FROM_RESET:
        chip.hand_over(name, build([(name, fields)]), fields.get("tiles", 0))
    for each in sent:
        for _ in range(each.before):
            chip.push(0)
        chip.descriptor(
            DescriptorTag.OUTPUT, WINDOW_BASE + each.address, 4 * (each.before + each.behind)
        )
        for _ in range(each.behind):
            chip.push(0)
    chip.descriptor(DescriptorTag.INTERRUPT_0, 0, 0)
    chip.settle()
    # The player sees the interrupt in the cycle in which it leaves.
    assert chip.cycle - begin == cycles


_PUSH: Operation = ("Scalar", {"store_op": StoreOperation.PUSH})


def _descriptor(tag: DescriptorTag, sent: Sent | None) -> list[Operation]:
    """Fill in and issue a descriptor, in bundles that take the core of the harness no cycle."""
    size = 4 * (sent.before + sent.behind) if sent else 0
    words: list[Operation] = []
    for word, value in enumerate((sent.address if sent else 0, 0, size, tag)):
        stored = {"store_op": StoreOperation.DESCRIPTOR, "store_address": word, "store_register": 1}
        words += [
            ("Scalar", alu(AluOperation.MOVE, 1, 0, value, immediate=True)),
            ("Scalar", stored),
        ]
    return [*words, ("Scalar", {"store_op": StoreOperation.ISSUE})]


def cycles_of(source: Source) -> list[tuple[str, int, int]]:
    """Name, cycles of the RTL, and predicted ones, of the executables of a compiled model."""
    from darwinn_rtl.chip.engine import RtlAccelerator

    (model,) = open_models(source)
    session = Session(model, device=Device(accelerator=RtlAccelerator()))
    (tensors,) = random_inputs([item.port for item in model.inputs], 0, 1)
    loaded = session.load_parameters()
    inferred = session.infer(tensors).result
    description, link = timing.chip_description("harness"), timing.host_link("harness")
    runs = (
        ("parameters", model.compiled.caching, loaded),
        ("inference", model.compiled.inference, inferred),
    )
    return [
        (
            name,
            result.statistics["rtl_cycles"],
            timing.simulate(executable, description, link).cycles,
        )
        for name, executable, result in runs
        if executable is not None and result is not None
    ]


networks: st.SearchStrategy[Sample] = st.one_of(
    st.builds(
        random_dense,
        st.lists(st.sampled_from([16, 48, 64, 80]), min_size=2, max_size=3),
        st.integers(0, 99),
    ),
    st.builds(
        random_convolution,
        st.sampled_from([4, 8]),
        st.sampled_from([4, 8]),
        st.just(4),
        st.sampled_from([4, 8]),
        st.integers(0, 99),
    ),
)


@nightly_too
def test_networks_take_the_predicted_cycles(nightly: bool) -> None:
    """From the request to the interrupt: fetched instructions, DMA, scalar side, ring, tiles."""
    check_cases(
        "cycles of networks", networks, check_network, 6, nightly=nightly, nightly_examples=40
    )


def check_network(network: Sample) -> None:
    require_toolchain()
    check_cycles(edgetpu_model(network, compile_network(network)))


def check_cycles(compiled: bytes) -> None:
    """Each executable takes the predicted cycles."""
    for name, taken, cycles in cycles_of(Content(compiled, "network_edgetpu.tflite")):
        assert taken == cycles, name


@pytest.mark.parametrize("seed", CLOSE_BURSTS)
def test_outputs_close_together_take_the_predicted_cycles(seed: int) -> None:
    """A burst of output follows the one before while that awaits its answer."""
    check_drawn(seed)


@pytest.mark.nightly
def test_drawn_networks_take_the_predicted_cycles() -> None:
    for seed in range(7000, 7200):
        if is_over():
            break
        check_drawn(seed)


def check_drawn(seed: int) -> None:
    """The network of a seed, as ``darwinn generate`` compiles it, takes the predicted cycles."""
    require_toolchain()
    network = network_of(recipe(seed))
    assert network is not None
    compiled = compile_model(Content(network.finish(), "network.tflite"))
    assert compiled.data
    check_cycles(compiled.data)
