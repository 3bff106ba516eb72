"""The page of `darwinn report`, as a reader of a real browser sees it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import darwinn
from darwinn_testbench.chip.input_kinds import InputKind
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, random_dense, uncompiled
from darwinn_testbench.profile.page import Page, Section, render
from darwinn_testbench.report import Verdict
from sample_runs import change, flip_parameter

NETWORK = random_dense([16, 70], 0)
SECTIONS = [
    "Summary",
    "Outputs",
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
_DRAWN = {"Time by layer", "Time by unit", "Timeline", "Roofline", "Memory", "Narrow memory in use"}
PICTURES = [title for title in SECTIONS if title in _DRAWN]


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
    """No script, and no address but the names of the document types of SVG."""
    text = (pages / "right.html").read_text()
    assert "<script" not in text
    links = set(re.findall(r'(?:src|href)="([^"#][^"]*)"', text))
    assert all(link.startswith("data:") for link in links), links


def test_names_from_files_are_escaped() -> None:
    page = Page(
        title="<b>name</b>",
        verdict=Verdict.PASS,
        summary="a < b",
        sections=(Section("s", headings=("h",), rows=(("<script>alert(1)</script>",),)),),
    )
    text = render(page).decode()
    assert "<script>" not in text
    assert "<b>name" not in text
    assert "a &lt; b" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1200,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as opened:
        opened.set_page_load_timeout(60)
        yield opened


def test_a_reader_sees_the_verdict_and_every_section(pages: Path, browser: Any) -> None:
    browser.get((pages / "right.html").as_uri())
    assert browser.title == "right_edgetpu.tflite"
    verdict = browser.find_element("id", "verdict")
    assert verdict.is_displayed()
    assert verdict.text == "pass"
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
    assert [picture.get_attribute("aria-label") for picture in pictures] == PICTURES
    for picture in pictures:
        (drawn,) = picture.find_elements("css selector", "svg")
        size = drawn.rect
        assert size["width"] > 500, picture.get_attribute("aria-label")
        assert size["height"] > 60
        assert size["x"] + size["width"] <= 1200
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= browser.execute_script("return window.innerWidth")


def test_tables_hold_what_the_sections_promise(pages: Path, browser: Any) -> None:
    browser.get((pages / "right.html").as_uri())

    def rows(title: str) -> list[list[str]]:
        path = f"//section[h2[text()='{title}']]//tbody/tr"
        found = browser.find_elements("xpath", path)
        return [[cell.text for cell in row.find_elements("tag name", "td")] for row in found]

    outputs = rows("Outputs")
    assert [row[2].split()[0] for row in outputs] == list(InputKind)
    assert all("all 70 elements equal" in row for row in outputs)
    first, *_, last = layers = rows("Layers")
    assert (first[1], last[1]) == ("before layer 0", "after the last layer")
    assert [row[1] for row in layers if row[0]] == ["dense"]
    assert {row[0] for row in rows("Units")} >= {"scalar core", "tiles: tensor unit"}
    assert any(row[0] == "clock" and row[2] == "Hz" and row[3] for row in rows(SECTIONS[-1]))
    assert all(row[1] == row[2] for row in rows("DMA of inference 0"))


def test_a_mismatch_is_red_and_says_where(pages: Path, browser: Any) -> None:
    browser.get((pages / "wrong.html").as_uri())
    verdict = browser.find_element("id", "verdict")
    assert verdict.text == "mismatch"
    assert "180, 35, 24" in verdict.value_of_css_property("background-color")
    cells = [cell.text for cell in browser.find_elements("css selector", "#s2 td")]
    assert any("of 70 elements differ, by" in cell for cell in cells)
