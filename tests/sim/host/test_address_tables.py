"""Device addresses of buffers: where they are placed, whose they are, and what a run needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import averaging_program as sample
import pytest
from darwinn_formats.darwinn import (
    Buffer,
    Description,
    DmaDescriptorHint,
    DmaHint,
    DmaHints,
    Executable,
    Layer,
    Meta,
)
from darwinn_formats.errors import FormatError
from darwinn_formats.limits import Limits, limited
from darwinn_sim.errors import PageFault
from darwinn_sim.host import buffers
from darwinn_sim.host.buffers import (
    AddressSpace,
    DriverError,
    batches_of,
    buffer_sizes,
    layer_bytes,
)
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.interface import AddressMapping, HostInterface, MappingTable
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.host.registers import PAGE_TABLE_ENTRIES, register
from hypothesis import given, settings
from hypothesis import strategies as st

PAGE = 4096
INPUT, OUTPUT = (
    Description.BASE_ADDRESS_INPUT_ACTIVATION,
    Description.BASE_ADDRESS_OUTPUT_ACTIVATION,
)

# --- placing --------------------------------------------------------------------------------------

LIMIT = 16 * PAGE
SIZES = st.sampled_from([1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 1, 4 * PAGE, 9 * PAGE])
PLACING = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), SIZES),
        st.tuples(st.just("reserve"), st.tuples(st.integers(0, LIMIT), SIZES)),
        st.tuples(st.just("release"), st.integers(0, 5)),
    ),
    max_size=14,
)


@settings(max_examples=200)
@given(PLACING)
def test_blocks_of_device_addresses(operations: list[tuple[str, Any]]) -> None:
    """Against a list of pages: the lowest aligned run of free ones is given."""
    space, taken, starts = AddressSpace(LIMIT), [0] * 16, list[int]()
    number = 0
    for name, value in operations:
        number += 1
        if name == "allocate":
            pages = 1
            while pages * PAGE < value:
                pages *= 2
            places = range(0, 17 - pages, pages)
            free = [k for k in places if not any(taken[k : k + pages])]
            if not free:
                with pytest.raises(DriverError, match=f"no {pages * PAGE} bytes of device address"):
                    space.allocate(value)
                continue
            assert space.allocate(value) == free[0] * PAGE
            taken[free[0] : free[0] + pages] = [number] * pages
            starts.append(free[0] * PAGE)
        elif name == "reserve":
            start, size = value
            first, end = start // PAGE, (start + size + PAGE - 1) // PAGE
            if end > 16 or any(taken[first:end]):
                with pytest.raises(DriverError, match="are not free"):
                    space.reserve(start, size)
                continue
            space.reserve(start, size)
            taken[first:end] = [number] * (end - first)
            starts.append(first * PAGE)
        elif value < len(starts):
            start = starts.pop(value)
            space.release(start)
            owner = taken[start // PAGE]
            taken = [0 if each == owner else each for each in taken]


# --- whose an address is --------------------------------------------------------------------------

MAPPINGS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=8)


@given(MAPPINGS, st.lists(st.integers(0, 7), max_size=6))
def test_an_address_is_of_the_mapping_that_holds_it(
    drawn: list[tuple[int, int]], removed: list[int]
) -> None:
    table, slow = MappingTable(), dict[int, AddressMapping]()
    for place, size in drawn:
        mapping = AddressMapping(10 * place, size, TransferKind.INPUT)
        if 10 * place not in slow:
            table.add(mapping)
            slow[10 * place] = mapping
    for number in removed:
        if number < len(slow):
            mapping = slow.pop(sorted(slow)[number])
            table.remove(mapping)
            with pytest.raises(ValueError, match="not in"):
                table.remove(mapping)
    assert list(table) == [slow[address] for address in sorted(slow)]
    for address in range(-1, 110):
        base = address // 10 * 10
        held = base in slow and address < base + slow[base].size
        assert table.find(address) == (slow[base] if held else None)


def test_of_two_mappings_at_an_address_the_one_that_is_meant_is_removed() -> None:
    table = MappingTable()
    both = [AddressMapping(8, 4, TransferKind.INPUT), AddressMapping(8, 4, TransferKind.OUTPUT)]
    for each in both:
        table.add(each)
    table.remove(both[0])
    assert list(table) == both[1:]
    assert table.find(8) is both[1]


def test_nothing_is_mapped_when_a_request_is_over() -> None:
    """Neither in the driver's record, nor in the page table; all of its memory is given back."""
    memory = HostMemory()
    host = HostInterface(memory)
    driver = Driver(host, memory)
    table = register("page_table").offset

    def entries() -> list[int]:
        return [host.registers.read(table + 8 * k) for k in range(PAGE_TABLE_ENTRIES)]

    driver.open()
    regions = len(memory._regions)
    opened = entries()
    assert [entry & 1 for entry in opened[4096:4098]] == [1, 1]
    assert sum(map(bool, opened)) == 2
    request = driver.prepare(sample.executable(), {"image": bytes(sample.INPUT_BYTES)})
    kinds = sorted(mapping.kind.value for mapping in host.mappings)
    assert kinds == ["input", "instruction", "output"]
    mapped = [each.address for each in (*request.buffers.values(), *request.chunks)]
    for address in mapped:
        assert host.mmu.translate(address, 1)
    driver._unmap_all(request)
    assert list(host.mappings) == []
    for address in mapped:
        with pytest.raises(PageFault):
            host.mmu.translate(address, 1)
    driver.close()
    assert entries() == [0] * PAGE_TABLE_ENTRIES
    assert regions > len(memory._regions)
    assert not memory._regions


# --- what a run needs -----------------------------------------------------------------------------


@st.composite
def executables(draw: st.DrawFn) -> Executable:
    names = st.sampled_from(["a", "b"])
    layers = st.lists(
        st.builds(
            Layer,
            names,
            st.integers(0, 20),
            execution_count_per_inference=st.integers(-1, 3),
        ),
        max_size=2,
        unique_by=lambda layer: layer.name,
    )
    inputs, outputs = tuple(draw(layers)), tuple(draw(layers))
    hints = []
    known = [(INPUT, each.name) for each in inputs] + [(OUTPUT, each.name) for each in outputs]
    known += [(Description.BASE_ADDRESS_PARAMETER, ""), (Description.BASE_ADDRESS_SCRATCH, "")]
    for description, name in draw(st.lists(st.sampled_from(known), max_size=3)):
        reach = draw(st.integers(0, 30)), draw(st.integers(0, 30))
        hints.append(DmaHint(DmaDescriptorHint(Meta(description, 0, name), *reach)))
    return Executable(
        batch_size=draw(st.integers(0, 2)),
        scratch_size_bytes=draw(st.integers(-1, 9)),
        parameters=bytes(draw(st.integers(0, 9))),
        input_layers=inputs,
        output_layers=outputs,
        dma_hints=DmaHints(tuple(hints)),
    )


def slow_sizes(executable: Executable) -> dict[Buffer, int]:
    found: dict[Buffer, int] = {}

    def need(buffer: Buffer, size: int) -> None:
        found[buffer] = max(found.get(buffer, 0), size)

    need(Buffer(Description.BASE_ADDRESS_PARAMETER, "", 0), len(executable.parameters))
    need(Buffer(Description.BASE_ADDRESS_SCRATCH, "", 0), executable.scratch_size_bytes)
    for batch in range(executable.batch_size or 1):
        for description, layers in (
            (INPUT, executable.input_layers),
            (OUTPUT, executable.output_layers),
        ):
            for layer in layers:
                times = max(layer.execution_count_per_inference, 1)
                need(Buffer(description, layer.name, batch), layer.size_bytes * times)
    for hint in executable.dma_hints.hints:
        assert isinstance(hint.any_hint, DmaDescriptorHint)
        meta = hint.any_hint.meta
        end = hint.any_hint.offset_in_bytes + hint.any_hint.size_in_bytes
        need(Buffer(meta.desc, meta.name or "", 0), end)
    return found


@given(executables())
def test_bytes_of_the_buffers_of_a_run(executable: Executable) -> None:
    if executable.scratch_size_bytes < 0:
        with pytest.raises(FormatError, match="buffer '' has -1 bytes"):
            buffer_sizes(executable)
        return
    expected = slow_sizes(executable)
    assert buffer_sizes(executable) == expected
    assert batches_of(executable) == max(executable.batch_size, 1)
    for layer in executable.input_layers:
        assert (
            layer_bytes(layer) == expected[Buffer(INPUT, layer.name, 0)]
            or executable.dma_hints.hints
        )
    total = sum(expected.values())
    with limited(Limits(memory=total)):
        assert buffer_sizes(executable) == expected
    if total:
        largest = max(expected.values())
        text = rf"has {largest} bytes; all buffers of a run together may have {total - 1} \(--max"
        with limited(Limits(memory=total - 1)), pytest.raises(FormatError, match=text):
            buffer_sizes(executable)


def test_buffers_of_a_run_are_bounded() -> None:
    most = buffers.MAX_BUFFER_BYTES
    whole = Executable(output_layers=(Layer("a", most // 2), Layer("b", most // 2)))
    assert sum(buffer_sizes(whole).values()) == most == 1 << 28
    with pytest.raises(FormatError, match=f"together may have {most}$"):
        buffer_sizes(replace(whole, parameters=b"x"))
    layers = (Layer("a", 1), Layer("b", 1))
    many = Executable(batch_size=PAGE_TABLE_ENTRIES // 2, output_layers=layers)
    assert batches_of(many) == PAGE_TABLE_ENTRIES // 2
    with pytest.raises(FormatError, match=r"4097 inferences of 2 layers in a run need more than"):
        batches_of(replace(many, batch_size=4097))
    assert batches_of(Executable(batch_size=PAGE_TABLE_ENTRIES)) == PAGE_TABLE_ENTRIES
    with pytest.raises(FormatError, match="8193 inferences of 0 layers"):
        batches_of(Executable(batch_size=PAGE_TABLE_ENTRIES + 1))
