"""A timed inference as a trace for the Perfetto UI (https://ui.perfetto.dev).

A process for each tile with a track for each of its units; one for the scalar core and what stands
around it, with the layers and the interrupts; one for the DMA queues. An arrow leads from a
transfer to the instruction that takes its first bytes. Counters tell how many bytes each queue has
moved, and how many bytes of each tile's narrow memory hold values that are still needed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from darwinn_sim import chip
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_sim.machine import layers
from darwinn_sim.timing import CHIP_STATION_NAMES, TILE_STATION_NAMES, Timing
from numpy.typing import NDArray
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    CounterDescriptor,
    ProcessDescriptor,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

from darwinn_testbench.comparison.layer_names import LayerName
from darwinn_testbench.profile.memory_in_use import narrow_bytes_in_use
from darwinn_testbench.profile.profile import queue_name

_SEQUENCE = 1
_NANOSECONDS = 1e9
_NO_FLOW = 0

# Process numbers: an order that the UI keeps.
_CHIP, _DMA, _FIRST_TILE = 1, 2, 10

_CONSUMERS = {
    "activation pop": (chip.ACTIVATION_UNIT_BYTES, (TransferKind.INPUT, TransferKind.SCRATCH)),
    "parameter pop": (chip.PARAMETER_UNIT_BYTES, (TransferKind.PARAMETER,)),
}
"""Stations that take bytes from the host: the bytes of one element, and what the transfers move."""


def to_perfetto(timing: Timing, names: Mapping[int, LayerName] | None = None) -> bytes:
    """The trace of ``timing``, which was simulated with spans, as Perfetto's protobuf.

    ``names`` are the network's operators, by layer.

    Timestamps are nanoseconds of the chip's clock, from the host's request on.
    """
    writer = _Writer(_NANOSECONDS / timing.chip.clock.value)
    transfer_flows, span_flows = _flows(timing)
    _write_layers(writer, timing, names or {})
    _write_spans(writer, timing, span_flows)
    _write_transfers(writer, timing, transfer_flows)
    _write_memory(writer, timing)
    return writer.serialised()


def _write_layers(writer: _Writer, timing: Timing, names: Mapping[int, LayerName]) -> None:
    if timing.layers:
        track = writer.track("layers", writer.process(_CHIP, "chip"))
        for layer in timing.layers:
            name = f" {names[layer.number]}" if layer.number in names else ""
            writer.slice(track, f"layer {layer.number}{name}", layer.start, layer.end)


def _write_spans(writer: _Writer, timing: Timing, flows: Mapping[int, int]) -> None:
    names = _instruction_names(timing)
    tracks: dict[tuple[int, int], int] = {}
    spans = timing.spans
    columns = (spans[name].tolist() for name in ("tile", "station", "instruction", "start", "end"))
    for number, (tile, station, instruction, start, end) in enumerate(zip(*columns, strict=True)):
        track = tracks.get((tile, station))
        if track is None:
            track = tracks[tile, station] = _station_track(writer, tile, station)
        writer.slice(track, names[instruction], start, end, flows.get(number, _NO_FLOW))


def _station_track(writer: _Writer, tile: int, station: int) -> int:
    if tile < 0:
        return writer.track(CHIP_STATION_NAMES[station], writer.process(_CHIP, "chip"), station)
    process = writer.process(_FIRST_TILE + tile, f"tile {tile}")
    return writer.track(TILE_STATION_NAMES[station], process, station)


def _instruction_names(timing: Timing) -> list[str]:
    tables = timing.program.tables
    layer_of = {
        instruction: layer.number
        for layer in layers.find(timing.program.chunks)
        for instruction in layer.instructions
    }
    return [
        f"{INSTRUCTIONS[opcode].name} {pc:#x}"
        + (f" layer {layer_of[number]}" if number in layer_of else "")
        for number, (opcode, pc) in enumerate(
            zip(tables.opcode.tolist(), tables.pc.tolist(), strict=True)
        )
    ]


def _write_transfers(writer: _Writer, timing: Timing, flows: Mapping[int, int]) -> None:
    if not timing.transfers:
        return
    process = writer.process(_DMA, "DMA")
    crossed: Counter[str] = Counter()
    for number, transfer in enumerate(timing.transfers):
        name = queue_name(transfer)
        track = writer.track(name, process)
        if transfer.kind is TransferKind.INTERRUPT:
            writer.instant(track, f"interrupt {transfer.number}", transfer.end)
            continue
        text = f"{name} {transfer.number}: {transfer.size} bytes"
        writer.slice(track, text, transfer.start, transfer.end, flows.get(number, _NO_FLOW))
        crossed[name] += transfer.size
        counter = writer.counter(f"{name} bytes", process)
        writer.value(counter, transfer.end, crossed[name])


def _write_memory(writer: _Writer, timing: Timing) -> None:
    for tile, (cycles, sizes) in narrow_bytes_in_use(timing).items():
        process = writer.process(_FIRST_TILE + tile, f"tile {tile}")
        counter = writer.counter("narrow memory in use", process)
        for cycle, size in zip(cycles.tolist(), sizes.tolist(), strict=True):
            writer.value(counter, cycle, size)


def _flows(timing: Timing) -> tuple[dict[int, int], dict[int, int]]:
    """Numbers of the arrows, by transfer and by span: from bytes to who takes the first of them."""
    by_transfer: dict[int, int] = {}
    by_span: dict[int, int] = {}
    numbers = itertools.count(1)
    for station, (unit_bytes, kinds) in _CONSUMERS.items():
        transfers = [
            number
            for number, each in enumerate(timing.transfers)
            if each.kind in kinds and each.direction is TransferDirection.INFEED
        ]
        spans, ends = _taken(timing, CHIP_STATION_NAMES.index(station), unit_bytes)
        offset = 0
        for transfer in transfers:
            place = int(np.searchsorted(ends, offset, side="right"))
            offset += timing.transfers[transfer].size
            if place < len(spans):
                # An instruction can take several transfers: it then has one arrow from the first.
                span = int(spans[place])
                if span not in by_span:
                    by_span[span] = by_transfer[transfer] = next(numbers)
    return by_transfer, by_span


def _taken(
    timing: Timing, station: int, unit_bytes: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The spans of a pop station, in order, and how many bytes are taken when each has ended."""
    spans = np.flatnonzero((timing.spans["tile"] < 0) & (timing.spans["station"] == station))
    tables = timing.program.tables
    walks = tables.pop[tables.row[timing.spans["instruction"][spans]]]["buffer"]
    used = np.arange(walks["limit"].shape[-1]) < walks["loops"][:, None]
    elements = np.where(used, walks["limit"] + 1, 1).prod(axis=-1)
    return spans, np.cumsum(elements * unit_bytes)


@dataclass
class _Event:
    """What happens on a track at a cycle; ``rank`` orders what happens at the same time."""

    cycle: int
    rank: int
    kind: TrackEvent.Type.ValueType
    track: int
    name: int = 0
    flow: int = _NO_FLOW
    value: int = 0


# At one time a slice ends before the next begins, and one without length ends after its begin.
_ENDS, _BEGINS, _ENDS_AT_ONCE = range(3)


@dataclass
class _Writer:
    """Tracks, names and events, and at the end the packets of a trace.

    ``period`` is the length of a cycle in nanoseconds.
    """

    period: float
    descriptors: list[TrackDescriptor] = field(default_factory=list)
    tracks: dict[tuple[str, int], int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    events: list[_Event] = field(default_factory=list)

    def process(self, number: int, name: str) -> int:
        """The track of a group of tracks."""
        return self._described(
            name,
            -number,
            process=ProcessDescriptor(pid=number, process_name=name),
            child_ordering=TrackDescriptor.EXPLICIT,
        )

    def track(self, name: str, process: int, rank: int = 0) -> int:
        """A track for slices and instants in a process; a lower ``rank`` stands above."""
        return self._described(
            name, process, parent_uuid=process, name=name, sibling_order_rank=rank
        )

    def counter(self, name: str, process: int) -> int:
        """A track for values, in bytes."""
        counter = CounterDescriptor(unit=CounterDescriptor.UNIT_SIZE_BYTES)
        return self._described(name, process, parent_uuid=process, name=name, counter=counter)

    def slice(self, track: int, name: str, start: int, end: int, flow: int = _NO_FLOW) -> None:
        """Something that takes the cycles from ``start`` to ``end``."""
        number = self._named(name)
        begin, finish = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END
        self.events.append(_Event(start, _BEGINS, begin, track, number, flow))
        self.events.append(_Event(end, _ENDS if end > start else _ENDS_AT_ONCE, finish, track))

    def instant(self, track: int, name: str, cycle: int) -> None:
        """Something that takes no time."""
        kind = TrackEvent.TYPE_INSTANT
        self.events.append(_Event(cycle, _BEGINS, kind, track, self._named(name)))

    def value(self, track: int, cycle: int, value: int) -> None:
        """A new value of a counter."""
        kind = TrackEvent.TYPE_COUNTER
        self.events.append(_Event(cycle, _BEGINS, kind, track, value=value))

    def serialised(self) -> bytes:
        """The trace."""
        trace = Trace()
        for descriptor in self.descriptors:
            trace.packet.add().track_descriptor.CopyFrom(descriptor)
        first = trace.packet.add()
        first.trusted_packet_sequence_id = _SEQUENCE
        first.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        for name, number in self.names.items():
            first.interned_data.event_names.add(iid=number, name=name)
        for event in sorted(self.events, key=lambda each: (each.cycle, each.rank)):
            self._fill(trace.packet.add(), event)
        data: bytes = trace.SerializeToString()
        return data

    def _fill(self, packet: TracePacket, event: _Event) -> None:
        packet.timestamp = round(event.cycle * self.period)
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        content = packet.track_event
        content.type = event.kind
        content.track_uuid = event.track
        if event.name:
            content.name_iid = event.name
        if event.flow:
            content.flow_ids.append(event.flow)
        if event.kind == TrackEvent.TYPE_COUNTER:
            content.counter_value = event.value

    def _named(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names) + 1)

    def _described(self, key: str, parent: int, **told: Any) -> int:
        uuid = self.tracks.get((key, parent))
        if uuid is None:
            uuid = self.tracks[key, parent] = len(self.tracks) + 1
            self.descriptors.append(TrackDescriptor(uuid=uuid, **told))
        return uuid
