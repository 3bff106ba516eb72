"""Whatever the library gives is short at a prompt, and a table in a notebook."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_formats.brief import brief, brief_value
from darwinn_formats.figure import bars, histogram
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.chip.disassembly import disassemble
from darwinn_testbench.chip.dma_check import check_dma
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.inspection import inspect
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_dense, uncompiled
from darwinn_testbench.difference.difference import difference
from darwinn_testbench.difference.rows import BY_WEIGHT, Aspect
from darwinn_testbench.explain.explain import explain
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.layers.view import view_layers
from darwinn_testbench.profile.profile import profile
from darwinn_testbench.report import Report, Row, Verdict
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sample_files import sample
from whole_models import with_floats

MOST = 2000
"""Characters of any repr."""


def results(model: Path, reference: Path) -> dict[str, Any]:
    """What each function of docs/api.md returns."""
    (bound,) = open_models(model)
    session = Session(bound)
    (tensors,) = random_inputs(bound.ports, seed=7, runs=1)
    return {
        "load": darwinn.load(model),
        "open_models": bound,
        "Session": session,
        "infer": session.infer(tensors),
        "inspect": inspect(model),
        "disassemble": disassemble(model),
        "check_dma": check_dma(model),
        "run": run(model, runs=1),
        "measure": measure(model),
        "verify": verify(model, reference, runs=1, layers=True),
        "view_layers": view_layers(model),
        "profile": profile(model, reference=reference, operations=True),
    }


def within(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """``value`` and everything of the project's that is found by its fields and items."""
    if id(value) in seen:
        return
    seen.add(id(value))
    named = dataclasses.is_dataclass(value) or hasattr(value, "_fields")
    if type(value).__module__.startswith("darwinn_"):
        yield path, value
    if named and not isinstance(value, type):
        fields = getattr(value, "_fields", None) or [
            each.name for each in dataclasses.fields(value) if each.repr
        ]
        for name in fields:
            yield from within(getattr(value, name, None), f"{path}.{name}", seen)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value[:50]):
            yield from within(item, f"{path}[{number}]", seen)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from within(item, f"{path}[{key!r}]", seen)


@pytest.fixture(scope="module", params=["sample", "mobilenet"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "sample":
        folder = tmp_path_factory.mktemp("samples")
        sample(folder)
        return results(folder / "convolution_edgetpu.tflite", folder / "convolution.tflite")
    corpus: Path = request.getfixturevalue("corpus")
    name = "mobilenet_v1_0.25_128_quant"
    return results(
        corpus / "darwinn" / f"{name}_edgetpu.tflite", corpus / "tflite" / f"{name}.tflite"
    )


def test_every_result_is_short(found: Mapping[str, Any]) -> None:
    shown = list(within(dict(found), "results", set()))
    assert len(shown) > 200
    long = {path: len(repr(value)) for path, value in shown if len(repr(value)) >= MOST}
    assert not long


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_results_are_tables_in_a_notebook(found: Mapping[str, Any]) -> None:
    for name, value in found.items():
        if name == "Session":
            continue
        text = value._repr_html_()
        assert len(text) < 100_000, name
        tags = _Tags()
        tags.feed(text)
        assert not tags.open, name
        assert {"table", "tr", "td"} <= tags.seen, name
    assert "<th>cycles</th>" in found["profile"]._repr_html_()
    assert found["verify"].verdict.value in found["verify"]._repr_html_()


FIGURES = {
    "load": "bytes",
    "open_models": "bytes",
    "infer": "<title>",
    "inspect": "instructions",
    "check_dma": "bytes",
    "run": "<title>",
    "measure": "cycles",
    "verify": "<title>",
    "view_layers": "multiplications",
    "profile": "cycles, by what the tensor units did",
}
"""What is drawn of a result: the unit of its bars, or bins of its arrays."""


def test_results_have_figures_in_a_notebook(found: Mapping[str, Any]) -> None:
    for name, told in FIGURES.items():
        text = found[name]._repr_html_()
        figure = text[text.find("<svg") : text.rfind("</svg>")]
        assert told in figure, name
        assert len(ElementTree.fromstring(f"{figure}</svg>".join(["<div>", "</div>"]))), name
        assert figure.count("<rect") > 0, name


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.text(max_size=50), st.dictionaries(st.text(max_size=8), st.floats(), max_size=4)
        ),
        max_size=120,
    )
)
def test_bars_of_any_values(rows: list[tuple[str, dict[str, float]]]) -> None:
    figure = bars(rows, "cycles")
    positive = [
        sum(value for value in parts.values() if value > 0 and np.isfinite(value))
        for _, parts in rows
    ]
    assert bool(figure) == (0 < max(positive, default=0) < np.inf)
    assert len(figure) < 100_000
    if figure:
        drawn = [
            (float(each.attrib["x"]), float(each.attrib["width"]))
            for each in ElementTree.fromstring(figure).iter("{http://www.w3.org/2000/svg}rect")
            if each.attrib["height"] == "14.0"
        ]
        # The longest takes all the room there is, and none begins before it or ends beyond.
        assert abs(max(x + width for x, width in drawn) - 600) < 1
        assert min(x for x, _ in drawn) == 220


@settings(max_examples=60)
@given(arrays(st.sampled_from([np.int8, np.uint8, np.float32, np.float64, np.bool_]), (7, 3)))
def test_histograms_count_every_finite_value(values: Any) -> None:
    figure = histogram(values, "<name>")
    finite = int(np.isfinite(values).sum())
    assert bool(figure) == bool(finite)
    if figure:
        root = ElementTree.fromstring(figure)
        bins = root.findall(".//{*}rect/{*}title")
        assert sum(int((each.text or "").replace(",", "")) for each in bins) == finite


def test_names_from_files_are_escaped() -> None:
    row = Row(name="<script>x</script>", verdict=Verdict.PASS)
    text = Report(command="c", file="<b>", rows=(row,))._repr_html_()
    assert "<script>" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;" in text


def test_many_rows_are_counted() -> None:
    rows = tuple(Row(name=str(number), verdict=Verdict.PASS) for number in range(250))
    report = Report(command="c", file="f", rows=rows)
    assert "250 rows" in repr(report)
    assert "150 rows more" in report._repr_html_()


def headings_and_cells(text: str) -> list[tuple[list[str], list[list[str]]]]:
    """The tables of a result in a notebook."""
    return [
        (
            re.findall(r"<th>(.*?)</th>", table),
            [
                re.findall(r"<td>(.*?)</td>", row)
                for row in re.findall(r"<tr>(<td>.*?)</tr>", table)
            ],
        )
        for table in re.findall(r"<table>.*?</table>", text)
    ]


def test_what_is_not_on_the_chip_stands_first() -> None:
    network = random_dense([256, 64], 1)
    report = explain(with_floats(uncompiled(network), BuiltinOperator.ABS))
    many = [replace(row, number=row.number + 100 * k) for k in range(30) for row in report.rows]
    off = [row for row in many if row.place is not Place.CHIP]
    assert len(many) > 100 > len(off) > 0
    made = replace(report, rows=tuple(many))._repr_html_()
    advice, pieces, moved, (headings, rows) = headings_and_cells(made)
    assert (headings[0], headings[-1]) == ("number", "tensor")
    assert [row[0] for row in rows[: len(off)]] == [str(row.number) for row in off]
    assert {row[headings.index("place")] for row in rows[len(off) :]} <= {"chip"}
    assert advice[1][0][:2] == [
        report.figures["advice"][0].what,
        report.figures["advice"][0].change,
    ]
    assert [len(pieces[1])] == [len(report.figures["pieces"])]
    assert len(moved[1]) == sum(len(each.crossings) for each in report.figures["pieces"])


def test_what_differs_stands_first() -> None:
    networks = [random_dense([48, 48, outputs], 1) for outputs in (24, 32)]
    models = [edgetpu_model(each, compile_network(each)) for each in networks]
    report = difference(*models, only=(Aspect.CYCLES, Aspect.PARAMETERS, Aspect.MEMORY))
    aspects, (headings, rows) = headings_and_cells(report._repr_html_())
    assert len(aspects[1]) == 3
    verdicts = [row[headings.index("verdict")] for row in rows]
    assert set(verdicts) == {"pass", "mismatch"}
    assert verdicts == sorted(verdicts), "mismatch before pass"
    assert rows[0][headings.index("aspect")] == "cycles"
    assert set(BY_WEIGHT) == set(Aspect)


def test_a_digest_is_short() -> None:
    digest = "0123456789abcdef" * 4
    text = Report(
        command="c", file="f", rows=(Row(name=f"sha256 {digest}", verdict=Verdict.PASS),)
    )._repr_html_()
    assert digest not in text
    assert "sha256 0123456789abcdef…" in text


_VALUES = st.recursive(
    st.none()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.integers(0, 300).map(lambda size: np.zeros((size, 3), np.int16))
    | st.just(object()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.lists(_VALUES, min_size=1, max_size=6))
def test_any_value_is_short(values: list[Any]) -> None:
    values = values * 12
    fields = [(f"field_{number}", Any) for number in range(len(values))]
    made: Callable[..., Any] = brief(dataclasses.make_dataclass("Made", fields))
    assert len(repr(made(*values))) < MOST
    assert all(len(brief_value(value)) < 300 for value in values)
    tags = _Tags()
    tags.feed(made(*values)._repr_html_())
    assert not tags.open
