"""Profiles of the project's own models: tables, CSV, timelines and the page."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_sim import chip
from darwinn_sim.timing import (
    CHIP_STATION_NAMES,
    TILE_STATION_NAMES,
    Cause,
    chip_description,
    host_link,
    simulate,
)
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense
from darwinn_testbench.compiler.network import Sample
from darwinn_testbench.pages.charts import compiled
from darwinn_testbench.profile import figures, memory_in_use
from darwinn_testbench.profile.beside import beside
from darwinn_testbench.profile.colours import CAUSE_COLOURS
from darwinn_testbench.profile.figures import Point
from darwinn_testbench.profile.memory import Region
from darwinn_testbench.profile.profile import NO_LAYER, ProfileFigures, ProfileRow, profile
from darwinn_testbench.profile.timeline import to_perfetto
from darwinn_testbench.profile.touched import NARROW_WORDS, Touched
from darwinn_testbench.report import Report, Verdict
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

NETWORKS: dict[str, Sample] = {
    "dense": random_dense([40, 200, 72], 0),
    "convolution": random_convolution(16, 64, 8, 20, 0),
}


@pytest.fixture(scope="module", params=NETWORKS)
def profiled(request: pytest.FixtureRequest) -> Report[ProfileRow]:
    return profile(darwinn.dump(compile_network(NETWORKS[request.param])), operations=True)


BINS = 1000


def figures_of(report: Report[ProfileRow]) -> ProfileFigures:
    found: ProfileFigures = report.figures["profile"]
    return found


def test_every_cycle_of_every_unit_is_busy_or_has_a_cause(profiled: Report[ProfileRow]) -> None:
    timing = figures_of(profiled).profiled.timing
    assert (timing.chip_usage.sum(axis=-1) == timing.cycles).all()
    assert (timing.tile_usage.sum(axis=-1) == timing.cycles).all()
    assert sum(figures_of(profiled).waiting.values()) == pytest.approx(1)


def test_layers_are_what_the_network_computes(profiled: Report[ProfileRow]) -> None:
    layers = [row for row in profiled.rows if row.number is not None]
    assert [row.kind for row in layers] in (["dense", "dense"], ["conv"])
    for row in layers:
        assert 0 <= row.start < row.end <= figures_of(profiled).cycles
        assert row.cycles == row.end - row.start
        assert 0 < row.utilisation <= 1
        assert row.bytes
        assert row.busy <= row.cycles * chip.TILES


def test_every_cycle_lies_in_a_layer_or_in_a_row_without_one(profiled: Report[ProfileRow]) -> None:
    """Counted cycle by cycle."""
    rows = np.zeros(figures_of(profiled).cycles, np.int64)
    layers = rows.copy()
    for row in profiled.rows:
        rows[row.start : row.end] += 1
        layers[row.start : row.end] += row.number is not None
    assert rows.min() == 1
    assert (rows == np.maximum(layers, 1)).all()
    names = [row.name for row in profiled.rows if row.number is None]
    assert names[0] == "before layer 0"
    assert names[-1] == "after the last layer"
    assert profiled.rows[0].message.startswith("DMA ")


def test_bytes_are_those_of_the_file(profiled: Report[ProfileRow]) -> None:
    found = figures_of(profiled)
    executable = found.profiled.executable
    inputs = sum(found.transfer_bytes[name] for name in ("instruction", "input"))
    sizes = sum(len(chunk.bitstream) for chunk in executable.instruction_bitstreams)
    sizes += sum(layer.size_bytes for layer in executable.input_layers)
    # Descriptors move whole units of eight bytes.
    assert sizes <= inputs <= sizes + 8
    assert found.streamed_parameter_bytes == 0
    assert found.cached_parameter_bytes > 0


def test_csv_has_a_line_for_each_layer_and_a_column_for_each_cause(
    profiled: Report[ProfileRow],
) -> None:
    lines = list(csv.DictReader(io.StringIO(profiled.to_csv().decode())))
    assert [int(line["cycles"]) for line in lines] == [row.cycles for row in profiled.rows]
    for line, row in zip(lines, profiled.rows, strict=True):
        waits = {
            cause.label: float(line[f"waiting for {cause.label}"])
            for cause in Cause
            if cause not in (Cause.BUSY, Cause.FINISHED)
        }
        assert {name: cycles for name, cycles in waits.items() if cycles} == row.waiting


def test_it_is_the_same_every_time(profiled: Report[ProfileRow]) -> None:
    found = figures_of(profiled).profiled
    assert to_perfetto(found.timing) == to_perfetto(found.timing)
    assert figures.timeline(found.timing) == figures.timeline(found.timing)


# Timeline


def events(trace: Trace) -> Iterator[tuple[int, TrackEvent]]:
    for packet in trace.packet:
        if packet.HasField("track_event"):
            assert packet.sequence_flags == TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
            yield packet.timestamp, packet.track_event


@pytest.fixture
def trace(profiled: Report[ProfileRow]) -> Trace:
    return Trace.FromString(to_perfetto(figures_of(profiled).profiled.timing))


def test_slices_of_a_track_follow_each_other(trace: Trace) -> None:
    open_slices: dict[int, int] = Counter()
    last: dict[int, int] = defaultdict(int)
    for timestamp, event in events(trace):
        assert timestamp >= last[event.track_uuid]
        last[event.track_uuid] = timestamp
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid] += 1
        elif event.type == TrackEvent.TYPE_SLICE_END:
            open_slices[event.track_uuid] -= 1
            assert open_slices[event.track_uuid] >= 0
    assert not any(open_slices.values())


def test_tracks_are_declared_and_named_before_they_are_used(trace: Trace) -> None:
    declared: dict[int, str] = {}
    parents: dict[int, int] = {}
    names: set[int] = set()
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            declared[track.uuid] = track.name or track.process.process_name
            if track.parent_uuid:
                assert track.parent_uuid in declared
                parents[track.uuid] = track.parent_uuid
        for name in packet.interned_data.event_names:
            names.add(name.iid)
        if packet.HasField("track_event"):
            assert packet.track_event.track_uuid in parents
            assert not packet.track_event.name_iid or packet.track_event.name_iid in names
    processes = {name for uuid, name in declared.items() if uuid not in parents}
    assert {"chip", "DMA"} <= processes
    assert any(name.startswith("tile ") for name in processes)
    assert {declared[uuid] for uuid in parents} & {*CHIP_STATION_NAMES}
    assert {declared[uuid] for uuid in parents} & {*TILE_STATION_NAMES}


def test_spans_of_the_timing_are_slices(trace: Trace, profiled: Report[ProfileRow]) -> None:
    timing = figures_of(profiled).profiled.timing
    begins = sum(event.type == TrackEvent.TYPE_SLICE_BEGIN for _, event in events(trace))
    transfers = [each for each in timing.transfers if each.kind.value != "interrupt"]
    descriptors = [each for each in transfers if each.issued >= 0]
    expected = len(timing.spans) + len(timing.layers) + len(transfers) + len(descriptors)
    assert begins == expected
    instants = [event for _, event in events(trace) if event.type == TrackEvent.TYPE_INSTANT]
    interrupts = [event for event in instants if not event.flow_ids]
    assert len(interrupts) == len(timing.transfers) - len(transfers)


def track_names(trace: Trace) -> dict[int, str]:
    found = (packet.track_descriptor for packet in trace.packet)
    return {track.uuid: track.name for track in found if track.uuid}


def test_arguments_say_where_cycles_went(trace: Trace, profiled: Report[ProfileRow]) -> None:
    """Of every station the cycles of all slices, by cause, are those of the profile."""
    timing = figures_of(profiled).profiled.timing
    (interned,) = (each.interned_data for each in trace.packet if each.interned_data.event_names)
    keys = {each.iid: each.name for each in interned.debug_annotation_names}
    texts = {each.iid: each.str.decode() for each in interned.debug_annotation_string_values}
    names = track_names(trace)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    layers: set[int] = set()
    for _, event in events(trace):
        told = {keys[each.name_iid]: each for each in event.debug_annotations}
        name = names[event.track_uuid]
        if "pc" in told:
            assert texts[told["pc"].string_value_iid].startswith("0x")
            found[name]["busy"] += told["busy"].int_value
            for entry in told["waited"].dict_entries:
                found[name][keys[entry.name_iid]] += entry.int_value
            layers |= {told["layer"].int_value} if "layer" in told else set()
        if name == "output" and told:
            assert told["bytes"].int_value == figures_of(profiled).transfer_bytes["output"]
    assert layers == {row.number for row in profiled.rows if row.number is not None}
    usage = {
        **dict(zip(TILE_STATION_NAMES, timing.tile_usage.sum(axis=0), strict=True)),
        **dict(zip(CHIP_STATION_NAMES, timing.chip_usage, strict=True)),
    }
    for name, causes in found.items():
        # Behind a station's last instruction it waits for another.
        for cause in set(Cause) - {
            Cause.FINISHED,
            Cause.DISPATCH,
            Cause.FENCE,
            Cause.INSTRUCTION_FETCH,
        }:
            assert causes[cause.name.lower()] == usage[name][cause], (name, cause)


def test_counters_end_at_the_bytes_that_were_moved(
    trace: Trace, profiled: Report[ProfileRow]
) -> None:
    names = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }
    last: dict[str, int] = {}
    for _, event in events(trace):
        name = names[event.track_uuid]
        if event.type == TrackEvent.TYPE_COUNTER and name != "narrow memory in use":
            assert event.counter_value >= last.get(name, 0)
            last[name] = event.counter_value
    moved = figures_of(profiled).transfer_bytes
    assert last == {f"{name} bytes": size for name, size in moved.items() if size}


def test_values_in_memory_are_those_of_a_plain_count(profiled: Report[ProfileRow]) -> None:
    """Each word by itself: written, read and written again, from dictionaries and loops."""
    timing = figures_of(profiled).profiled.timing
    touched = Touched(timing.program)
    for tile, (cycles, sizes) in memory_in_use.narrow_bytes_in_use(timing).items():
        accesses: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for span in timing.spans[timing.spans["tile"] == tile]:
            reads, writes = (
                each[each < NARROW_WORDS] for each in touched.by(int(span["instruction"]))
            )
            for word in reads.tolist():
                accesses[word].append((int(span["end"]), True))
            for word in writes.tolist():
                accesses[word].append((int(span["start"]), False))
        changes: Counter[int] = Counter()
        for times in accesses.values():
            for begin, end in lives(times):
                changes[begin] += 4
                changes[end] -= 4
        assert sizes.tolist() == list(accumulate(changes[cycle] for cycle in cycles.tolist()))
        assert not sizes[-1:].any()


def lives(accesses: list[tuple[int, bool]]) -> Iterator[tuple[int, int]]:
    """From when to when a word holds a value, of the cycles in which it is read and written."""
    begin = end = -1
    for cycle, is_read in sorted(accesses, key=lambda each: (each[0], not each[1])):
        if is_read and begin >= 0:
            end = cycle
        elif not is_read and end >= 0:
            yield begin, end
            begin, end = cycle, -1
        elif not is_read and begin < 0:
            begin = cycle
    if end >= 0:
        yield begin, end


@pytest.mark.parametrize(
    "name", ["mobilenet_v2_1.0_224_quant", "mobilenet_v1_1.0_224_quant_embedding_extractor"]
)
def test_at_its_fullest_memory_holds_what_the_compiler_says(corpus: Path, name: str) -> None:
    """Two independent counts: live values over time, and the extent that the compiler declared."""
    (model,) = open_models(corpus / "darwinn" / f"{name}_edgetpu.tflite")
    inference = model.compiled.inference
    timing = simulate(inference, chip_description("beagle-max"), host_link("usb3"), spans=True)
    used = memory_in_use.narrow_bytes_in_use(timing)
    fullest = max(int(sizes.max()) for _, sizes in used.values())
    assert fullest == inference.used_narrow_memory_bytes_per_tile


# Pictures


@settings(max_examples=50)
@given(
    spans=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 500)), max_size=20),
    cycles=st.integers(1, 6000),
)
def test_occupancy_is_that_of_counting_cycles(spans: list[tuple[int, int]], cycles: int) -> None:
    starts = np.array([start for start, _ in spans], np.int64)
    ends = np.array([start + length for start, length in spans], np.int64)
    edges = np.linspace(0, cycles, BINS + 1)
    slow = [
        sum(max(0.0, min(b, end) - max(a, start)) for start, end in zip(starts, ends, strict=True))
        / (b - a)
        for a, b in pairwise(edges)
    ]
    assert np.allclose(figures._binned(starts, ends, cycles, BINS), slow, atol=1e-6)


def test_charts_hold_what_they_are_of(profiled: Report[ProfileRow]) -> None:
    timing = figures_of(profiled).profiled.timing
    whole = Point("inference", 1000, 10, timing.cycles)
    charts = {
        "layer:0": figures.time_by_layer(profiled.rows),
        "tiles: tensor unit": figures.time_by_unit(timing),
        "DMA input": figures.timeline(timing),
        "whole inference": figures.roofline(timing, [], whole),
        "used": figures.memory_map([Region("narrow", "used", 0, 10)]),
    }
    for text, chart in charts.items():
        assert any(text in values for values in chart.columns.values()), text
        assert len(set(map(len, chart.columns.values()))) == 1, text
        assert compiled(chart)["marks"], text


def test_a_timeline_has_the_layers_above_the_units(profiled: Report[ProfileRow]) -> None:
    timing = figures_of(profiled).profiled.timing
    chart = figures.timeline(timing, profiled.rows)
    columns = chart.columns
    layers = [row for row in profiled.rows if row.number is not None]
    milliseconds = 1000 / timing.chip.clock.value
    shown = [
        each
        for each in zip(columns["unit"], columns["key"], columns["a"], columns["b"], strict=True)
        if each[0] == "layers"
    ]
    assert [key for _, key, _, _ in shown] == [figures.key_of(row) for row in layers]
    for (_, _, start, end), row in zip(shown, layers, strict=True):
        assert (start, end) == pytest.approx((row.start * milliseconds, row.end * milliseconds))
    assert compiled(chart)["marks"]
    alone = figures.timeline(timing).columns
    assert len(columns["unit"]) == len(layers) + len(alone["unit"])
    assert "layers" not in alone["unit"]


def test_bars_of_layers_are_the_rows(profiled: Report[ProfileRow]) -> None:
    """All parts together are the row's cycles, the busy part is the mean of the tiles."""
    columns = figures.time_by_layer(profiled.rows).columns
    cycles: dict[str, int] = defaultdict(int)
    busy: dict[str, int] = defaultdict(int)
    for key, part, value in zip(columns["key"], columns["part"], columns["value"], strict=True):
        cycles[key] += value
        busy[key] += value if part == "busy" else 0
    layers = [row for row in profiled.rows if row.number is not None]
    assert set(cycles) == {figures.key_of(row) for row in layers}
    for row in layers:
        assert cycles[figures.key_of(row)] == pytest.approx(row.cycles, abs=8)
        assert busy[figures.key_of(row)] == pytest.approx(row.busy / chip.TILES, abs=1)


def test_time_without_a_layer_is_told_beside_the_bars(profiled: Report[ProfileRow]) -> None:
    without = [row for row in profiled.rows if row.number is None]
    told = figures.time_without_a_layer(profiled.rows)
    assert f"{sum(row.cycles for row in without):,} cycles without a layer" in told
    assert f"{without[0].cycles:,} before layer 0" in told
    assert figures.time_without_a_layer(without) == "", "they are drawn"
    assert set(figures.time_by_layer(without).columns["part"]) == {NO_LAYER}


def test_a_cause_has_one_colour_in_all_charts(profiled: Report[ProfileRow]) -> None:
    """Whichever of the causes a chart has."""
    assert len(set(CAUSE_COLOURS.values())) == len(CAUSE_COLOURS)
    assert set(CAUSE_COLOURS) == {*(cause.label for cause in Cause), NO_LAYER}
    timing = figures_of(profiled).profiled.timing
    charts = figures.time_by_layer(profiled.rows), figures.time_by_unit(timing)
    scales = [chart.spec["encoding"]["color"]["scale"] for chart in charts]
    domains = [scale["domain"] for scale in scales]
    assert domains[0] != domains[1]
    for scale in scales:
        assert scale["range"] == [CAUSE_COLOURS[cause] for cause in scale["domain"]]


def test_causes_of_several_files_have_the_same_colours(profiled: Report[ProfileRow]) -> None:
    text = beside([profiled, profiled], ["a.html", "b.html"]).decode()
    data = re.search(r'<script type="application/json" id="data">(.*)</script>', text)
    assert data is not None
    (chart,) = json.loads(data[1])["charts"]
    (scale,) = (each for each in chart["spec"]["scales"] if each["name"] == "color")
    shown = figures_of(profiled).waiting
    assert set(scale["domain"]) == {cause for cause, share in shown.items() if share}
    assert scale["range"] == [CAUSE_COLOURS[cause] for cause in scale["domain"]]


def test_of_many_layers_the_longest_have_bars() -> None:
    rows = [
        ProfileRow(
            name=f"layer {k}",
            verdict=Verdict.PASS,
            number=k,
            start=k,
            end=2 * k,
            cycles=k,
            share=0.0,
        )
        for k in range(400)
    ]
    keys = list(dict.fromkeys(figures.time_by_layer(rows).columns["key"]))
    assert keys == [f"layer:{k}" for k in range(400 - figures.MOST_BARS, 400)]


@given(
    steps=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 99)), min_size=1, max_size=2000)
)
def test_a_thinned_series_keeps_its_height(steps: list[tuple[int, int]]) -> None:
    cycles = np.array(sorted({cycle for cycle, _ in steps}), np.int64)
    sizes = np.array([size for _, size in steps][: len(cycles)], np.int64)
    thin, most = figures._thinned(cycles, sizes, 10_001)
    assert len(thin) == len(most) <= figures._MOST_POINTS + 1
    assert most.max() == sizes.max()
    assert (np.diff(thin) > 0).all()
    assert set(thin[:-1].tolist()) <= set(cycles.tolist())


# The command


def test_the_command_writes_every_form(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dense_edgetpu.tflite"
    file.write_bytes(darwinn.dump(compile_network(NETWORKS["dense"])))
    target = tmp_path / "trace.pftrace"
    code = run_command_line(
        [
            "profile",
            str(file),
            "--json",
            "--csv",
            str(tmp_path / "l.csv"),
            "--timeline",
            str(target),
        ]
    )
    assert code == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["profile"]["cycles"] > 0
    assert printed["rows"][0]["cycles"] > 0
    kinds = {(row["kind"], row["operation"]) for row in printed["rows"]}
    assert kinds == {(None, ""), ("dense", "dense")}
    assert Trace.FromString(target.read_bytes()).packet
    assert (tmp_path / "l.csv").read_text().startswith("name,number,")
    assert run_command_line(["profile", str(file), "--host", "none", "--no-operations"]) == 0
    text = capfd.readouterr().out
    assert "tensor unit" in text
    assert "multipliers" in text
    assert " dense " not in text
    assert run_command_line(["profile", str(file), "--chip", "brooks"]) == 2
    assert "brooks" in capfd.readouterr().err


def test_the_command_advises_with_the_options_given_and_says_what_it_wrote(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "a dense_edgetpu.tflite"
    file.write_bytes(darwinn.dump(compile_network(NETWORKS["dense"])))
    given = ["--chip", "beagle-std", "--host", "usb2", "--with", str(file)]
    target = tmp_path / "t.pftrace"
    assert run_command_line(["profile", str(file), *given, "--timeline", str(target)]) == 0
    out, err = capfd.readouterr()
    assert f"next: darwinn report '{file}' --chip beagle-std --host usb2 --with '{file}' " in out
    assert f"{target}: the timeline; https://ui.perfetto.dev opens it" in err
    body = out[: out.index("next: ")].splitlines()[:-1]
    assert max(map(len, body)) <= 80
    assert run_command_line(["cycles", str(file), *given[:4]]) == 0
    assert (
        f"next: darwinn profile '{file}' --chip beagle-std --host usb2 " in capfd.readouterr().out
    )
    assert run_command_line(["profile", str(file), "--csv", "-"]) == 0
    lines = list(csv.reader(io.StringIO(capfd.readouterr().out)))
    assert {len(line) for line in lines} == {len(lines[0])}


def test_tiles_are_those_of_the_chip(profiled: Report[ProfileRow]) -> None:
    spans = figures_of(profiled).profiled.timing.spans
    assert set(np.unique(spans["tile"]).tolist()) <= {-1, *range(chip.TILES)}
