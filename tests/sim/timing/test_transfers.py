"""What the link moves follows from the descriptors, in the order of the trace, up to a fault."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from darwinn_sim.errors import ChipFault, PageFault
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codes import AluOperation, DescriptorTag, LoadOperation, StoreOperation
from darwinn_sim.kernel.state import Handover
from darwinn_sim.machine.lowering import LoweredProgram, lower
from darwinn_sim.timing import state as parts
from darwinn_sim.timing import trace, transfers
from darwinn_sim.timing.host_buffers import HostBuffers
from hypothesis import given
from hypothesis import strategies as st
from stimulus import Walk

IN, PARAMETERS, OUT = DescriptorTag.INPUT, DescriptorTag.PARAMETERS, DescriptorTag.OUTPUT
INTERRUPT_0 = DescriptorTag.INTERRUPT_0

Rows = list[tuple[int, int, int]]
Wanted = Sequence[tuple[int, int]]
"""Tags and sizes of descriptors."""


def descriptor(tag: int, size: int, low: int = 0) -> list[tuple[str, dict[str, int]]]:
    operations: list[tuple[str, dict[str, int]]] = []
    for word, value in enumerate((low, 0, size, tag)):
        move = {"alu_op": AluOperation.MOVE, "alu_immediate": 1, "alu_b": value}
        store = {"store_op": StoreOperation.DESCRIPTOR, "store_address": word}
        operations += [("Scalar", move), ("Scalar", store)]
    return [*operations, ("Scalar", {"store_op": StoreOperation.ISSUE})]


def program_of(*chunks: Wanted) -> tuple[LoweredProgram, list[int]]:
    framed = tuple(
        frame(build([each for tag, size in chunk for each in descriptor(tag, size)]))
        for chunk in chunks
    )
    return lower(framed), [len(chunk) for chunk in framed]


def rows(table: np.ndarray) -> Rows:
    return [(int(row["kind"]), int(row["size"]), int(row["number"])) for row in table]


def test_each_chunk_is_fetched_before_what_it_asks_for() -> None:
    program, sizes = program_of([(PARAMETERS, 640)], [(IN, 64), (PARAMETERS, 8), (OUT, 24)])
    assert sizes[0] != sizes[1]
    plan = transfers.plan(program, sizes, None)
    assert rows(plan.inbound) == [
        (parts.INSTRUCTIONS, sizes[0], 0),
        (parts.PARAMETERS, 640, 0),
        (parts.INSTRUCTIONS, sizes[1], 1),
        (parts.ACTIVATIONS, 64, 0),
        (parts.PARAMETERS, 8, 0),
    ]
    assert rows(plan.outbound) == [(parts.OUTPUT, 24, 0)]
    assert plan.unreachable == {}
    for table in (plan.inbound, plan.outbound):
        assert all((table[name] == -1).all() for name in ("issued", "start", "end"))
    assert plan.outbound["reachable"].tolist() == [24]


def test_an_interrupt_says_its_number_and_moves_nothing() -> None:
    program, sizes = program_of([(INTERRUPT_0 + k, 0) for k in (2, 0, 1, 3)])
    outbound = transfers.plan(program, sizes, None).outbound
    assert rows(outbound) == [(parts.INTERRUPT, 0, k) for k in (2, 0, 1, 3)]


def test_what_tiles_would_send_to_the_scalar_core_is_drawn() -> None:
    """It is never 0 for ever, for which a program may wait; the same in each look."""
    words, base = 4, 50
    units = Walk((words, 1, 1), (1, 0, 0), base=base).fields("RingOutfeed", "buffer")
    operations = [("RingOutfeed", units | {"row_words": 63})]
    for word in range(words):
        asked = descriptor(IN, 1)
        size = [
            ("Scalar", {"load_op": LoadOperation.DIRECT, "load_address": base + word}),
            ("Scalar", {"store_op": StoreOperation.DESCRIPTOR, "store_address": 2}),
        ]
        operations += [*asked[:-1], *size, asked[-1]]
    program = lower((frame(build(operations)),))
    expected, value = [], 1
    for _ in range(words):  # xorshift64
        value ^= value << 13 & (1 << 64) - 1
        value ^= value >> 7
        value ^= value << 17 & (1 << 64) - 1
        expected.append(value & 0xFFFF_FFFF)
    for _ in range(2):
        steps = np.concatenate(list(trace.blocks(program)))
        assert steps["size"][steps["kind"] == Handover.DESCRIPTOR].tolist() == expected


@given(
    st.lists(
        st.tuples(st.sampled_from((IN, PARAMETERS, OUT, INTERRUPT_0)), st.integers(1, 99)),
        max_size=8,
    )
)
def test_inputs_behind_outputs_wait_for_all_bytes_promised_so_far(wanted: Wanted) -> None:
    """Once for each run of inputs; an interrupt counts as an output that has no bytes."""
    asked = [(tag, 0 if tag == INTERRUPT_0 else size) for tag, size in wanted]
    program, sizes = program_of(asked)
    expected: Rows = [(parts.INSTRUCTIONS, sizes[0], 0)]
    for at, (tag, size) in enumerate(asked):
        before = asked[:at]
        outward = [each for each in before if each[0] in (OUT, INTERRUPT_0)]
        if tag in (OUT, INTERRUPT_0):
            continue
        fences = sum(kind == parts.HOST_FENCE for kind, _, _ in expected)
        if outward and (not fences or expected[-1][0] != parts.HOST_FENCE):
            expected.append((parts.HOST_FENCE, 0, sum(size for _, size in outward)))
        expected.append((parts.ACTIVATIONS if tag == IN else parts.PARAMETERS, size, 0))
    assert rows(transfers.plan(program, sizes, None).inbound) == expected


@pytest.mark.parametrize("kept", [0, 3, 1 << 16])
@pytest.mark.parametrize("block", [2, 3, 4096])
@pytest.mark.parametrize("good", [0, 1, 5])
def test_steps_come_up_to_a_fault(
    good: int, block: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they were kept or are made anew; whatever ends a block."""
    program, sizes = program_of([*[(IN, 8)] * good, (IN, 0), (OUT, 16)])
    whole = np.concatenate(list(trace.blocks(program)))
    monkeypatch.setattr(trace, "BLOCK", block)
    monkeypatch.setattr(transfers, "_KEPT_STEPS", kept)
    plan = transfers.plan(program, sizes, None)
    assert [kind for kind, _, _ in rows(plan.inbound)] == [
        parts.INSTRUCTIONS,
        *[parts.ACTIVATIONS] * good,
    ]
    assert not len(plan.outbound)
    steps = []
    with pytest.raises(ChipFault, match=r"length 0 of descriptor tag 1 .*chunk 0, pc") as caught:
        for each in plan.steps:
            steps.append(each)
    assert (caught.value.chunk, caught.value.pc) == (0, 9 * good + 9)
    found = np.concatenate(steps)
    # The chunk, then the descriptors that there are before the one that cannot be.
    assert len(found) == good + 1
    assert found["kind"].tolist() == whole["kind"][: good + 1].tolist()
    assert found["size"].tolist() == whole["size"][: good + 1].tolist()


@pytest.mark.parametrize("kept", [0, 1 << 16])
@pytest.mark.parametrize("block", [2, 4096])
def test_without_a_fault_all_steps_come(
    block: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, sizes = program_of([(IN, 8)] * 4, [(OUT, 8)])
    whole = np.concatenate(list(trace.blocks(program)))
    monkeypatch.setattr(trace, "BLOCK", block)
    monkeypatch.setattr(transfers, "_KEPT_STEPS", kept)
    found = np.concatenate(list(transfers.plan(program, sizes, None).steps))
    assert found["kind"].tolist() == whole["kind"].tolist()
    assert found["gap"].tolist() == whole["gap"].tolist()


class Buffers(HostBuffers):
    """Device addresses below ``END`` are mapped, others not."""

    END = 1000

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []

    def transfer(self, tag: int, address: int, size: int) -> None:
        self.asked.append((tag, address, size))
        beyond = address + size - max(address, self.END)
        if beyond > 0:
            raise PageFault(max(address, self.END), beyond)


def planned(*wanted: tuple[int, int, int]) -> tuple[transfers.Plan, Buffers]:
    """The plan of descriptors of these tags, addresses and sizes."""
    chunk = frame(build([each for tag, low, size in wanted for each in descriptor(tag, size, low)]))
    buffers = Buffers()
    return transfers.plan(lower((chunk,)), [len(chunk)], buffers), buffers


def test_output_that_no_buffer_is_for_is_known_by_its_place() -> None:
    wanted = [(OUT, 0, 64), (INTERRUPT_0, 0, 0), (OUT, 990, 30), (OUT, 4096, 32), (OUT, 936, 64)]
    plan, buffers = planned(*wanted)
    assert buffers.asked == [each for each in wanted if each[0] == OUT]
    assert {number: error.size for number, error in plan.unreachable.items()} == {2: 20, 3: 32}
    assert plan.outbound["size"].tolist() == [64, 0, 30, 32, 64]
    assert plan.outbound["reachable"].tolist() == [64, 0, 10, 0, 64]


@pytest.mark.parametrize("tag", [IN, PARAMETERS])
def test_input_from_nowhere_is_a_fault_of_its_descriptor(tag: int) -> None:
    plan, _ = planned((OUT, 0, 8), (tag, 999, 1), (tag, 999, 2), (OUT, 0, 8))
    assert plan.inbound["size"][1:].tolist() == [0, 1]
    assert plan.outbound["size"].tolist() == [8]
    found = []
    with pytest.raises(PageFault) as caught:
        for each in plan.steps:
            found += each["size"].tolist()
    assert (caught.value.address, caught.value.size) == (1000, 1)
    assert found == [0, 8, 1]
