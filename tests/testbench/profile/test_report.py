"""The page of `darwinn report`, as a reader of a real browser sees it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import darwinn
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, random_dense, uncompiled
from darwinn_testbench.request.inputs import InputKind
from sample_runs import change, flip_parameter

NETWORK = random_dense([16, 70], 0)
SECTIONS = [
    "Summary",
    "Outputs",
    "Network",
    "Time by layer",
    "Time by unit",
    "Timeline",
    "Roofline",
    "Layers",
    "Units",
    "Memory",
    "Narrow memory in use",
    "Bytes moved",
    "DMA of parameter caching",
    "DMA of inference 0",
    "Environment, versions and parameters",
]
_DRAWN = {
    "Network",
    "Time by layer",
    "Time by unit",
    "Timeline",
    "Roofline",
    "Memory",
    "Narrow memory in use",
}
PICTURES = [title for title in SECTIONS if title in _DRAWN]
"""Sections with one picture each."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of a right model, and of one with a wrong parameter."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "dense.tflite").write_bytes(uncompiled(NETWORK))
    package = compile_network(NETWORK)
    caching = 1
    for name, content, code in (
        ("right", package, 0),
        ("wrong", change(package, caching, flip_parameter(4 * 5 + 3)), 1),
    ):
        model = folder / f"{name}_edgetpu.tflite"
        model.write_bytes(darwinn.dump(content))
        command = ["report", str(model), "--reference", str(folder / "dense.tflite")]
        assert run_command_line([*command, "--output", str(folder / f"{name}.html")]) == code
    return folder


def test_the_page_needs_nothing_else(pages: Path) -> None:
    """No address of anything else, and not more than is sent by mail."""
    text = (pages / "right.html").read_text()
    assert len(text) < 1_500_000
    assert "default-src 'none'" in text
    links = set(re.findall(r'(?:src|href)="([^"#][^"]*)"', text))
    assert all(link.startswith("data:") for link in links), links


def test_a_reader_sees_the_verdict_and_every_section(pages: Path, browser: Any) -> None:
    browser.get((pages / "right.html").as_uri())
    assert browser.title == "right_edgetpu.tflite"
    verdict = browser.find_element("id", "verdict")
    assert verdict.is_displayed()
    assert verdict.text == "proved"
    assert "26, 127, 55" in verdict.value_of_css_property("background-color")
    assert "equal the chip arithmetic on every byte" in browser.find_element("id", "summary").text
    headings = browser.find_elements("tag name", "h2")
    assert [heading.text for heading in headings] == SECTIONS
    assert all(heading.is_displayed() for heading in headings)
    assert not browser.get_log("browser")
    loaded = browser.execute_script("return performance.getEntriesByType('resource').length")
    assert loaded == 0


def test_pictures_are_large_enough_and_inside_the_window(pages: Path, browser: Any) -> None:
    browser.get((pages / "right.html").as_uri())
    pictures = browser.find_elements("css selector", "figure")
    assert len(pictures) == len(PICTURES)
    for picture in pictures:
        (drawn,) = picture.find_elements("css selector", "svg")
        size = drawn.rect
        assert size["width"] > 230, picture.get_attribute("aria-label")
        assert size["height"] > 60
        assert size["x"] + size["width"] <= 1200
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= browser.execute_script("return window.innerWidth")


def test_tables_hold_what_the_sections_promise(pages: Path, browser: Any) -> None:
    browser.get((pages / "right.html").as_uri())

    def rows(title: str) -> list[list[str]]:
        path = f"//section[h2[text()='{title}']]//tbody/tr"
        found = browser.find_elements("xpath", path)
        return [
            [cell.get_attribute("textContent") for cell in row.find_elements("tag name", "td")]
            for row in found
        ]

    outputs = rows("Outputs")
    assert [row[2].split()[0] for row in outputs] == list(InputKind)
    assert all("all 70 elements equal" in row for row in outputs)
    first, *_, last = layers = rows("Layers")
    assert (first[1], last[1]) == ("before layer 0", "after the last layer")
    assert [row[1] for row in layers if row[0]] == ["dense"]
    assert {row[0] for row in rows("Units")} >= {"scalar core", "tiles: tensor unit"}
    assert any(row[0] == "clock" and row[2] == "Hz" and row[3] for row in rows(SECTIONS[-1]))
    assert all(row[1] == row[2] for row in rows("DMA of inference 0"))


def test_bars_are_as_long_as_the_table_says(pages: Path, browser: Any) -> None:
    """The busy part of a layer; the time before the first layer is told beside them."""
    browser.get((pages / "right.html").as_uri())
    charts = browser.execute_script("return page.charts.map((chart) => rowsOf(chart.columns))")
    bars = charts[0]
    table = "//section[h2[text()='Layers']]//tbody/tr"
    rows = [
        [cell.text for cell in row.find_elements("tag name", "td")]
        for row in browser.find_elements("xpath", table)
    ]
    before = next(row for row in rows if row[1] == "before layer 0")
    assert all(bar["key"] == "layer:0" for bar in bars)
    text = browser.find_element("xpath", "//section[h2[text()='Time by layer']]/p").text
    assert f"{before[3]} before layer 0" in text
    (layer,) = (row for row in rows if row[0])
    parts = {bar["part"]: bar["value"] for bar in bars if bar["key"] == "layer:0"}
    cycles = sum(parts.values())
    assert abs(cycles - int(layer[3].replace(",", ""))) <= len(parts)
    assert f"{100 * parts['busy'] / cycles:.0f}" == f"{float(layer[5]):.0f}"


def test_a_mismatch_is_red_and_says_where(pages: Path, browser: Any) -> None:
    browser.get((pages / "wrong.html").as_uri())
    verdict = browser.find_element("id", "verdict")
    assert verdict.text == "mismatch"
    assert "180, 35, 24" in verdict.value_of_css_property("background-color")
    cells = [cell.text for cell in browser.find_elements("css selector", "#s2 td")]
    assert any("of 70 elements differ, by" in cell for cell in cells)
