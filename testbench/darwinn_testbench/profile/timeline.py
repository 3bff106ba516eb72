"""A timed inference as a trace for the Perfetto UI (https://ui.perfetto.dev).

A process for each tile with a track for each of its units; one for the scalar core and what stands
around it, with the layers and the interrupts; one for the DMA queues with the descriptors. Arrows
(``flows``) lead from who gives to who takes: from descriptors to transfers, pops, the ring, tiles,
the outfeed and the transfers of outputs. Where the taker was there first, and waited, the arrow
ends at an instant in its slice. Slices have arguments: the instruction's address and layer, bytes,
the cycles of work, and those of waiting by cause. Counters tell how many bytes each queue has
moved, and how many bytes of each tile's narrow memory hold values that are still needed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_sim.machine import layers
from darwinn_sim.timing import CHIP_STATION_NAMES, TILE_STATION_NAMES, Cause, Timing
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
from darwinn_testbench.profile.flows import End, flows, moved_bytes
from darwinn_testbench.profile.memory_in_use import narrow_bytes_in_use
from darwinn_testbench.profile.profile import queue_name

_SEQUENCE = 1
_NANOSECONDS = 1e9

# Process numbers: an order that the UI keeps.
_CHIP, _DMA, _FIRST_TILE = 1, 2, 10

Arguments = Mapping[str, int | str | Mapping[str, int]]
"""Of a slice, by name; a mapping within is a group of arguments."""


def to_perfetto(timing: Timing, names: Mapping[int, LayerName] | None = None) -> bytes:
    """The trace of ``timing``, which was simulated with spans, as Perfetto's protobuf.

    ``names`` are the network's operators, by layer.

    Timestamps are nanoseconds of the chip's clock, from the host's request on.
    """
    writer = _Writer(_NANOSECONDS / timing.chip.clock.value)
    arrows = _Arrows(timing, writer)
    _write_layers(writer, timing, names or {})
    _write_spans(writer, timing, arrows)
    _write_transfers(writer, timing, arrows)
    _write_memory(writer, timing)
    return writer.serialised()


class _Arrows:
    """The numbers of the arrows that begin and end at a slice.

    Arrows lead forward in time: one whose giver begins behind its taker ends later in that.
    """

    def __init__(self, timing: Timing, writer: _Writer) -> None:
        self.timing = timing
        self.writer = writer
        self.begin: dict[End, list[int]] = defaultdict(list)
        self.late: dict[End, list[tuple[int, int]]] = defaultdict(list)
        for number, flow in enumerate(flows(timing), 1):
            given, (start, end) = self._cycles(flow.source)[0], self._cycles(flow.target)
            if given < start:
                self.begin[flow.target].append(number)
            elif given <= end:
                self.late[flow.target].append((number, given))
            else:
                # The host has sent it before it was asked to.
                continue
            self.begin[flow.source].append(number)

    def _cycles(self, each: End) -> tuple[int, int]:
        kind, number = each
        if kind == "span":
            span = self.timing.spans[number]
            return int(span["start"]), int(span["end"])
        transfer = self.timing.transfers[number]
        if kind == "descriptor":
            return transfer.issued, transfer.issued
        return transfer.start, transfer.end

    def slice(self, each: End, track: int, name: str, arguments: Arguments) -> None:
        """Write the slice with its arrows, those that end within it by an instant each."""
        start, end = self._cycles(each)
        self.writer.slice(track, name, start, end, self.begin.get(each, ()), arguments)
        for number, cycle in self.late.get(each, ()):
            self.writer.instant(track, "given", cycle, [number])


def _write_layers(writer: _Writer, timing: Timing, names: Mapping[int, LayerName]) -> None:
    if timing.layers:
        track = writer.track("layers", writer.process(_CHIP, "chip"))
        for layer in timing.layers:
            name = f" {names[layer.number]}" if layer.number in names else ""
            arguments: Arguments = {
                "layer": layer.number,
                "products": layer.products,
                "tensor_units": _causes(layer.cycles),
            }
            title = f"layer {layer.number}{name}"
            writer.slice(track, title, layer.start, layer.end, (), arguments)


def _write_spans(writer: _Writer, timing: Timing, arrows: _Arrows) -> None:
    named, about = _instructions(timing)
    tracks: dict[tuple[int, int], int] = {}
    spans = timing.spans
    columns = (spans[name].tolist() for name in ("tile", "station", "instruction"))
    for number, (tile, station, instruction) in enumerate(zip(*columns, strict=True)):
        track = tracks.get((tile, station))
        if track is None:
            track = tracks[tile, station] = _station_track(writer, tile, station)
        spent = _causes(spans["spent"][number])
        arguments = {**about[instruction], "busy": spent.pop(Cause.BUSY.name.lower(), 0)}
        arrows.slice(("span", number), track, named[instruction], {**arguments, "waited": spent})


def _causes(cycles: NDArray[np.int64]) -> dict[str, int]:
    """Cycles by cause, without zeros, under names that a query can write."""
    return {cause.name.lower(): int(cycles[cause]) for cause in Cause if cycles[cause]}


def _station_track(writer: _Writer, tile: int, station: int) -> int:
    if tile < 0:
        return writer.track(CHIP_STATION_NAMES[station], writer.process(_CHIP, "chip"), station)
    process = writer.process(_FIRST_TILE + tile, f"tile {tile}")
    return writer.track(TILE_STATION_NAMES[station], process, station)


def _instructions(timing: Timing) -> tuple[list[str], list[Arguments]]:
    """What each instruction is called, and what is said of it wherever it is executed."""
    tables = timing.program.tables
    layer_of = {
        instruction: layer.number
        for layer in layers.find(timing.program.chunks)
        for instruction in layer.instructions
    }
    sizes = moved_bytes(timing.program).tolist()
    names: list[str] = []
    about: list[Arguments] = []
    columns = zip(tables.opcode.tolist(), tables.pc.tolist(), sizes, strict=True)
    for number, (opcode, pc, size) in enumerate(columns):
        of_layer: Arguments = {"layer": layer_of[number]} if number in layer_of else {}
        names.append(
            f"{INSTRUCTIONS[opcode].name} {pc:#x}"
            + (f" layer {layer_of[number]}" if of_layer else "")
        )
        about.append({"pc": f"{pc:#x}", **of_layer, **({"bytes": size} if size else {})})
    return names, about


def _write_transfers(writer: _Writer, timing: Timing, arrows: _Arrows) -> None:
    if not timing.transfers:
        return
    process = writer.process(_DMA, "DMA")
    crossed: Counter[str] = Counter()
    for number, transfer in enumerate(timing.transfers):
        name = queue_name(transfer)
        track = writer.track(name, process, 1)
        if transfer.kind is TransferKind.INTERRUPT:
            writer.instant(track, f"interrupt {transfer.number}", transfer.end)
            continue
        text = f"{name} {transfer.number}: {transfer.size} bytes"
        arguments: Arguments = {"bytes": transfer.size, "queue": name}
        if transfer.issued >= 0:
            descriptors = writer.track("descriptors", process)
            arrows.slice(("descriptor", number), descriptors, text, arguments)
            waited = max(transfer.start - transfer.issued, 0)
            arguments = {**arguments, "waited": {"since_descriptor": waited}}
        arrows.slice(("transfer", number), track, text, arguments)
        crossed[name] += transfer.size
        counter = writer.counter(f"{name} bytes", process)
        writer.value(counter, transfer.end, crossed[name])


def _write_memory(writer: _Writer, timing: Timing) -> None:
    for tile, (cycles, sizes) in narrow_bytes_in_use(timing).items():
        process = writer.process(_FIRST_TILE + tile, f"tile {tile}")
        counter = writer.counter("narrow memory in use", process)
        for cycle, size in zip(cycles.tolist(), sizes.tolist(), strict=True):
            writer.value(counter, cycle, size)


@dataclass
class _Event:
    """What happens on a track at a cycle; ``rank`` orders what happens at the same time."""

    cycle: int
    rank: int
    kind: TrackEvent.Type.ValueType
    track: int
    name: int = 0
    flows: Sequence[int] = ()
    value: int = 0
    arguments: Arguments = field(default_factory=dict)


# At one time a slice ends before the next begins, and one without length ends after its begin.
_ENDS, _BEGINS, _WITHIN, _ENDS_AT_ONCE = range(4)


@dataclass
class _Writer:
    """Tracks, names and events, and at the end the packets of a trace.

    ``period`` is the length of a cycle in nanoseconds.
    """

    period: float
    descriptors: list[TrackDescriptor] = field(default_factory=list)
    tracks: dict[tuple[str, int], int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
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

    def slice(
        self,
        track: int,
        name: str,
        start: int,
        end: int,
        flows: Sequence[int],
        arguments: Arguments,
    ) -> None:
        """Something that takes the cycles from ``start`` to ``end``."""
        number = _numbered(self.names, name)
        begin, finish = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END
        event = _Event(start, _BEGINS, begin, track, number, flows, arguments=arguments)
        self.events.append(event)
        self.events.append(_Event(end, _ENDS if end > start else _ENDS_AT_ONCE, finish, track))

    def instant(self, track: int, name: str, cycle: int, flows: Sequence[int] = ()) -> None:
        """Something that takes no time."""
        kind = TrackEvent.TYPE_INSTANT
        rank = _WITHIN if flows else _BEGINS
        self.events.append(_Event(cycle, rank, kind, track, _numbered(self.names, name), flows))

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
        for event in sorted(self.events, key=lambda each: (each.cycle, each.rank)):
            self._fill(trace.packet.add(), event)
        interned = first.interned_data
        for name, number in self.names.items():
            interned.event_names.add(iid=number, name=name)
        for name, number in self.keys.items():
            interned.debug_annotation_names.add(iid=number, name=name)
        for name, number in self.texts.items():
            interned.debug_annotation_string_values.add(iid=number, str=name.encode())
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
        content.flow_ids.extend(event.flows)
        self._annotate(content.debug_annotations, event.arguments)
        if event.kind == TrackEvent.TYPE_COUNTER:
            content.counter_value = event.value

    def _annotate(self, annotations: Any, arguments: Arguments) -> None:
        for name, value in arguments.items():
            annotation = annotations.add(name_iid=_numbered(self.keys, name))
            if isinstance(value, Mapping):
                self._annotate(annotation.dict_entries, value)
            elif isinstance(value, str):
                annotation.string_value_iid = _numbered(self.texts, value)
            else:
                annotation.int_value = value

    def _described(self, key: str, parent: int, **told: Any) -> int:
        uuid = self.tracks.get((key, parent))
        if uuid is None:
            uuid = self.tracks[key, parent] = len(self.tracks) + 1
            self.descriptors.append(TrackDescriptor(uuid=uuid, **told))
        return uuid


def _numbered(known: dict[str, int], text: str) -> int:
    return known.setdefault(text, len(known) + 1)
