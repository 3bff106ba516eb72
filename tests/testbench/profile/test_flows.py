"""Arrows of the timeline, and the queries of docs/timing.md that follow them."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_sim import chip
from darwinn_sim.analysis.provenance import trace as trace_of
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.kernel import traversal
from darwinn_sim.timing import CHIP_STATION_NAMES, TILE_STATION_NAMES
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense
from darwinn_testbench.compiler.network import Sample
from darwinn_testbench.profile.flows import End, counted, flows
from darwinn_testbench.profile.profile import ProfileFigures, ProfileRow, profile
from darwinn_testbench.profile.timeline import to_perfetto
from darwinn_testbench.profile.touched import NARROW_WORDS, PLACES, Touched
from darwinn_testbench.report import Report
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

NETWORKS: dict[str, Sample] = {
    "dense": random_dense([40, 200, 72], 0),
    "convolution": random_convolution(16, 64, 8, 20, 0),
}
MEMORIES = (range(NARROW_WORDS), range(NARROW_WORDS, PLACES - 1), range(PLACES - 1, PLACES))
TENSOR_STATION = TILE_STATION_NAMES.index("tensor unit")


@pytest.fixture(scope="module", params=NETWORKS)
def profiled(request: pytest.FixtureRequest) -> Report[ProfileRow]:
    return profile(darwinn.dump(compile_network(NETWORKS[request.param])), operations=True)


@pytest.fixture(scope="module")
def trace(profiled: Report[ProfileRow]) -> Trace:
    return Trace.FromString(to_perfetto(figures_of(profiled).profiled.timing))


def figures_of(report: Report[ProfileRow]) -> ProfileFigures:
    found: ProfileFigures = report.figures["profile"]
    return found


def events(trace: Trace) -> Iterator[tuple[int, TrackEvent]]:
    for packet in trace.packet:
        if packet.HasField("track_event"):
            yield packet.timestamp, packet.track_event


def track_names(trace: Trace) -> dict[int, str]:
    found = (packet.track_descriptor for packet in trace.packet)
    return {track.uuid: track.name for track in found if track.uuid}


def test_arrows_lead_forward_from_giver_to_taker(trace: Trace) -> None:
    """From descriptors over transfers, pops, infeed, tiles and outfeed to the outputs."""
    names = track_names(trace)
    ends: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for timestamp, event in events(trace):
        for flow in event.flow_ids:
            ends[flow].append((timestamp, names[event.track_uuid]))
    assert all(len(each) == 2 and each[0][0] <= each[1][0] for each in ends.values())
    found = {(giver, taker) for (_, giver), (_, taker) in ends.values()}
    tiles = set(TILE_STATION_NAMES)
    between_tiles = {each for each in found if tiles.issuperset(each)}
    # Into a tile, within it, out of it: none of its units is the end of the way.
    assert {
        ("ring consumer A", "wide-to-narrow"),
        ("wide-to-narrow", "tensor unit"),
    } < between_tiles
    assert found - between_tiles == {
        ("descriptors", "input"),
        ("descriptors", "output"),
        ("input", "activation pop"),
        ("activation pop", "ring infeed"),
        ("ring infeed", "ring consumer A"),
        ("ring producer", "ring outfeed"),
        ("ring outfeed", "output"),
    }


def test_every_row_has_an_arrow(profiled: Report[ProfileRow]) -> None:
    """What the instructions give and take adds up: of each taker it is known who gave."""
    timing = figures_of(profiled).profiled.timing
    targets = {flow.target for flow in flows(timing)}
    takers = (("ring consumer A", TILE_STATION_NAMES, 0), ("ring outfeed", CHIP_STATION_NAMES, -1))
    for name, stations, tile in takers:
        station = timing.spans["station"] == stations.index(name)
        spans = np.flatnonzero(station & ((timing.spans["tile"] >= 0) == (tile >= 0)))
        assert len(spans), name
        assert {("span", each) for each in spans.tolist()} <= targets, name


def test_an_output_leads_back_to_the_input(profiled: Report[ProfileRow]) -> None:
    """From arrow to arrow, through the tiles: as who follows a wait goes."""
    timing = figures_of(profiled).profiled.timing
    givers: dict[End, list[End]] = defaultdict(list)
    for flow in flows(timing):
        givers[flow.target].append(flow.source)
    for number, transfer in enumerate(timing.transfers):
        if transfer.kind is TransferKind.OUTPUT:
            reached: set[End] = set()
            ways: list[End] = [("transfer", number)]
            while ways:
                here = ways.pop()
                if here not in reached:
                    reached.add(here)
                    ways += givers[here]
            assert any(
                kind == "transfer" and timing.transfers[each].kind is TransferKind.INPUT
                for kind, each in reached
            )


def test_arrows_within_a_tile_are_those_of_a_plain_search(profiled: Report[ProfileRow]) -> None:
    """Every reader looks through all spans of its tile for the latest that wrote what it reads."""
    timing = figures_of(profiled).profiled.timing
    touched, spans = Touched(timing.program), timing.spans
    found = {
        (flow.source[1], flow.target[1])
        for flow in flows(timing)
        if flow.source[0] == flow.target[0] == "span"
        and spans["tile"][flow.source[1]] == spans["tile"][flow.target[1]] >= 0
    }
    expected = set()
    for tile in range(chip.TILES):
        mine = np.flatnonzero(spans["tile"] == tile).tolist()
        mine.sort(key=lambda span: int(spans["start"][span]))
        places = [
            [set(each.tolist()) for each in touched.by(int(spans["instruction"][span]))]
            for span in mine
        ]
        for taker, (reads, _) in enumerate(places):
            for memory in MEMORIES:
                mine_of = reads.intersection(memory)
                writers = (each for each in reversed(range(taker)) if places[each][1] & mine_of)
                expected |= {(mine[giver], mine[taker]) for giver in islice(writers, 1)}
    assert expected <= found
    # The ring may lead from a tile to itself besides.
    producers = {TILE_STATION_NAMES.index("ring producer")}
    others = found - expected
    assert {int(spans["station"][giver]) for giver, _ in others} <= producers


@pytest.mark.parametrize("name", ["mobilenet_v1_0.25_128_quant", "keras_lstm_mnist_ptq"])
def test_arrows_between_layers_are_those_of_the_data(corpus: Path, name: str) -> None:
    """Data that carry their maker's mark were made by the layers that arrows come from."""
    report = profile(corpus / "darwinn" / f"{name}_edgetpu.tflite")
    profiled = figures_of(report).profiled
    timing = profiled.timing
    made = trace_of(profiled.caching, profiled.executable)
    layer_of = {each: layer.number for layer in made.layers for each in layer.instructions}
    checked = 0
    for flow in flows(timing):
        if flow.source[0] == flow.target[0] == "span":
            giver, taker = (timing.spans[each[1]] for each in (flow.source, flow.target))
            reads = made.reads.get((int(taker["instruction"]), int(taker["tile"])))
            layer = layer_of.get(int(giver["instruction"]))
            tensor = {int(giver["station"]), int(taker["station"])} == {TENSOR_STATION}
            if tensor and giver["tile"] >= 0 and reads is not None and layer is not None:
                assert layer in reads.activations.layers
                checked += 1
    assert checked > 10


@given(
    limits=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    alternate=st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4)),
    prologue=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_elements_are_counted_as_a_walk_steps(
    limits: list[int], alternate: tuple[int, int, int], prologue: tuple[int, int]
) -> None:
    walk = traversal.Parameters.zeros(1)
    loops = len(limits)
    walk["loops"], walk["limit"][0, :loops] = loops, limits
    loop, target, limit = alternate
    if target < loop < loops:
        walk["alternate_loop"], walk["alternate_target"] = loop, target
        walk["alternate_limit"] = min(limit, limits[target])
    length, of_loop = prologue
    if of_loop < loops:
        walk["prologue_length"], walk["prologue_loop"] = length, of_loop
    state = traversal.State.zeros(1)
    traversal.start(state[0], walk[0])
    steps = 0
    while not state["done"][0]:
        traversal.step(state[0], walk[0])
        steps += 1
    assert counted(walk).tolist() == [steps]


# Queries


def documented_queries() -> list[str]:
    document = Path(__file__).parents[3] / "docs" / "timing.md"
    queries = re.findall(r"```sql\n(.*?)```", document.read_text(), re.DOTALL)
    assert len(queries) >= 4
    return queries


class Tables:
    """A trace in tables of the names and columns that Perfetto's SQL has."""

    def __init__(self, trace: Trace) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.create_function("extract_arg", 2, self._extract_arg)
        self.connection.executescript(
            "create table track (id, name, parent_id);"
            "create table slice (id, ts, dur, track_id, name, parent_id, arg_set_id);"
            "create table args (arg_set_id, flat_key, key, int_value, string_value);"
            "create table flow (id, slice_out, slice_in);"
        )
        self.arguments: dict[tuple[int, str], Any] = {}
        self._fill(trace)

    def _extract_arg(self, arguments: int, key: str) -> Any:
        return self.arguments.get((arguments, key))

    def _fill(self, trace: Trace) -> None:
        execute = self.connection.execute
        interned = next(
            each.interned_data for each in trace.packet if each.interned_data.event_names
        )
        self.keys = {each.iid: each.name for each in interned.debug_annotation_names}
        self.texts = {each.iid: each.str for each in interned.debug_annotation_string_values}
        names = {each.iid: each.name for each in interned.event_names}
        for packet in trace.packet:
            track = packet.track_descriptor
            if track.uuid:
                execute("insert into track values (?, ?, ?)", (track.uuid, track.name, None))
        open_slices: dict[int, list[tuple[int, int]]] = defaultdict(list)
        arrows: dict[int, list[int]] = defaultdict(list)
        number = 0
        for timestamp, event in events(trace):
            within = open_slices[event.track_uuid]
            if event.type == TrackEvent.TYPE_SLICE_END:
                begun, start = within.pop()
                execute("update slice set dur = ? where id = ?", (timestamp - start, begun))
            elif event.type in (TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_INSTANT):
                number += 1
                parent = within[-1][0] if within else None
                row = number, timestamp, 0, event.track_uuid, names[event.name_iid], parent, number
                execute("insert into slice values (?, ?, ?, ?, ?, ?, ?)", row)
                self._argue(number, "debug", event.debug_annotations)
                if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                    within.append((number, timestamp))
                for arrow in event.flow_ids:
                    arrows[arrow].append(number)
        for arrow, (giver, taker) in arrows.items():
            execute("insert into flow values (?, ?, ?)", (arrow, giver, taker))

    def _argue(self, number: int, path: str, annotations: Any) -> None:
        for each in annotations:
            key = f"{path}.{self.keys[each.name_iid]}"
            if each.dict_entries:
                self._argue(number, key, each.dict_entries)
                continue
            text = self.texts[each.string_value_iid].decode() if each.string_value_iid else None
            value = None if text is not None else each.int_value
            self.arguments[number, key] = value if text is None else text
            self.connection.execute(
                "insert into args values (?, ?, ?, ?, ?)", (number, key, key, value, text)
            )


def test_documented_queries_tell_something(trace: Trace, profiled: Report[ProfileRow]) -> None:
    """In SQLite, whose dialect Perfetto's is: names of columns are right, and rows are found."""
    tables = Tables(trace)
    for query in documented_queries():
        assert tables.connection.execute(query).fetchall(), query
    queues = documented_queries()[2]
    moved = {name: size for name, _, size, _ in tables.connection.execute(queues)}
    bytes_of_queues = figures_of(profiled).transfer_bytes
    assert moved == {name: size for name, size in bytes_of_queues.items() if size}


def test_perfetto_s_own_reader_accepts_it(profiled: Report[ProfileRow], tmp_path: Path) -> None:
    import shutil

    binary = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if binary is None:
        pytest.skip("Perfetto's trace_processor_shell is not on the path")
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    path = tmp_path / "trace.pftrace"
    timing = figures_of(profiled).profiled.timing
    path.write_bytes(to_perfetto(timing))
    config = TraceProcessorConfig(bin_path=binary)
    with TraceProcessor(trace=str(path), config=config) as reader:
        (row,) = reader.query("select count(*) as slices from slice")
        assert row.slices > len(timing.spans)
        for query in documented_queries():
            assert list(reader.query(query)), query
