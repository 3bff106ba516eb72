"""The record as a page, in the frame of all pages: how each measure has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from darwinn_testbench.pages import Chart, Page, Section, Table, render

from benchmarks.record.history import ALLOWED, Line


def page_of(lines: Sequence[Line]) -> bytes:
    """The page. ``lines`` are at least one, the last one last."""
    last = lines[-1]
    return render(
        Page(
            title="Speed of darwinn-testbench",
            verdict=None,
            summary=f"{len(lines)} lines in the record; the last one of {last.when}, commit "
            f"{last.commit or 'unknown'}, on {last.machine}.",
            sections=tuple(_sections(lines)),
        )
    )


def _names(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(name for line in reversed(lines) for name in line.measures))


def _sections(lines: Sequence[Line]) -> Iterator[Section]:
    names = _names(lines)
    yield Section(
        "Over the commits",
        "Each measure as a multiple of its first ratio to the calibration loop on that machine: "
        f"below 1 is quicker than at first. More than {ALLOWED:g} times the line before is a loss.",
        [_chart(lines, names)],
    )
    rows = [
        [line.when, line.commit, line.machine, *(_ratio(line, name) for name in names)]
        for line in reversed(lines)
    ]
    yield Section(
        "All lines",
        "Ratios of processor time to that of the calibration loop, measured in turn with it.",
        [Table(["when", "commit", "machine", *names], rows, [False] * 3 + [True] * len(names))],
    )
    measures = lines[-1].measures
    yield Section(
        "The last line",
        "Least processor time of each.",
        [
            Table(
                ["measure", "ms", "calibration loop ms", "ratio"],
                [
                    [name, 1e3 * each.seconds, 1e3 * each.calibration, round(each.ratio, 3)]
                    for name, each in measures.items()
                ],
                [False, True, True, True],
            )
        ],
    )


def _ratio(line: Line, name: str) -> float | None:
    entry = line.measures.get(name)
    return None if entry is None else round(entry.ratio, 3)


def _chart(lines: Sequence[Line], names: Sequence[str]) -> Chart:
    rows: list[tuple[int, str, str, str, float]] = []
    for name in names:
        # Machines are not compared, nor calibration loops: each begins at 1.
        first: dict[tuple[str, str], float] = {}
        for number, line in enumerate(lines):
            entry = line.measures.get(name)
            if entry is not None:
                begin = first.setdefault((line.machine, line.loop), entry.ratio)
                label = f"{line.when} {line.commit}"
                rows.append((number, label, name, line.machine, entry.ratio / begin))
    place, labels, measure, machine, value = zip(*rows, strict=True)
    spec = {
        "height": 320,
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "label", "type": "ordinal", "sort": {"field": "place"}, "title": None},
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": "times its first ratio",
                "scale": {"zero": False},
            },
            "color": {"field": "name", "type": "nominal", "title": None},
            "strokeDash": {"field": "machine", "type": "nominal", "title": None},
            "tooltip": [
                {"field": "name", "title": ""},
                {"field": "machine", "title": "on"},
                {"field": "label", "title": "at"},
                {"field": "value", "title": "times its first", "format": ".3f"},
            ],
        },
    }
    columns = {
        "place": place,
        "label": labels,
        "name": measure,
        "machine": machine,
        "value": value,
    }
    return Chart(spec, columns, label="each measure over the lines of the record")
