"""The frame of pages: what it escapes, and what a reader can do with it in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from darwinn_testbench.pages import (
    Box,
    Chart,
    Columns,
    Graph,
    Page,
    Picture,
    Section,
    Table,
    Times,
    render,
    table_of,
)
from darwinn_testbench.pages.charts import bars, compiled, over_time
from darwinn_testbench.report import Column, Verdict
from hypothesis import given, settings
from hypothesis import strategies as st

HOSTILE = "</script><script>alert(1)</script>\u2028<b>&"
KEYS = ["layer:0", "layer:1", "layer:2"]
LONG = "a/very/long/name/" * 8


def page(**changed: Any) -> Page:
    """A table, bars, a chart of time and a graph, all about the same three things."""
    rows = [
        ["one", 10, 0.5, Verdict.PASS],
        ["two", 9, 1e-9, Verdict.FAULT],
        ["three", 1000, None, None],
    ]
    columns: Columns = {
        "name": ["one", "two", LONG],
        "value": [3, 1, 2],
        "key": KEYS,
        "part": ["a", "b", "a"],
    }
    spans: Columns = {"a": [0.0, 2.0, 4.0], "b": [1.0, 4.0, 9.0], "y": ["u", "v", "w"], "key": KEYS}
    rect = {
        "mark": {"type": "rect", "clip": True},
        "encoding": {"y": {"field": "y", "type": "nominal"}},
    }
    boxes = [Box(key, [key, "conv"], 0, 80.0 * at, "conv") for at, key in enumerate(KEYS)]
    given = {
        "title": "page",
        "verdict": Verdict.PASS,
        "summary": "what it is",
        "sections": [
            Section(
                "Table",
                parts=[Table(["n", "v", "f", "verdict"], rows, [False, True, True, False], KEYS)],
            ),
            Section("Bars", parts=[bars(columns, unit="cycles", label="bars", parts=["a", "b"])]),
            Section("Time", parts=[over_time([rect], spans, label="time", height=90)]),
            Section("Graph", parts=[Graph(boxes, [[(0, 0), (0, 80)], [(0, 80), (0, 160)]])]),
        ],
        "times": Times(10.0, {key: (2.0 * at, 2.0 * at + 1) for at, key in enumerate(KEYS)}),
    }
    return Page(**{**given, **changed})


@settings(max_examples=20)
@given(st.text() | st.just(HOSTILE))
def test_names_from_files_are_text(name: str) -> None:
    hostile = Page(
        title=name,
        verdict=None,
        summary=name,
        sections=[
            Section(name, name, [Table([name], [[name]], keys=[name])]),
            Section("g", parts=[Graph([Box(name, [name], 0, 0, name)])]),
        ],
        times=Times(1.0, {name: (0.0, 1.0)}),
    )
    text = render(hostile).decode()
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert "<b>" not in text
    data = re.search(r'<script type="application/json" id="data">(.*)</script>', text)
    assert data is not None
    assert list(json.loads(data[1])["spans"].values()) == [[0.0, 1.0]]


def test_a_chart_holds_names_as_data() -> None:
    columns: Columns = {"name": [HOSTILE, "b", HOSTILE], "value": [1, 2, 3]}
    chart = bars(columns, unit="u", label="l")
    text = render(page(sections=[Section("s", parts=[chart])])).decode()
    (script,) = re.findall(r'id="data">(.*)</script>', text)
    assert "<" not in script
    found = json.loads(script)["charts"][0]["columns"]
    assert found["name"]["at"] == [0, 1, 0]
    assert found["name"]["of"][0].startswith("</script>")
    assert found["value"] == [1, 2, 3]


def test_a_wrong_specification_is_an_error() -> None:
    with pytest.raises(ValueError, match="Vega-Lite"):
        compiled(Chart({"mark": "no such mark"}, {"a": [1]}))


def test_a_table_of_columns_has_their_cells_and_keys() -> None:
    square: Column[int] = Column("square", lambda row: row * row, "right")
    columns: tuple[Column[int], ...] = (Column("n", lambda row: row), square)
    table = table_of(columns, [2, 3], key=str)
    assert table == Table(["n", "square"], [[2, 4], [3, 9]], [False, True], ["2", "3"])


def test_a_cell_is_bounded() -> None:
    """The first operator of some network has 6,000 outputs."""
    names = ", ".join(f"model/split{number}" for number in range(6000))
    text = render(Page("t", None, "s", [Section("t", parts=[Table(["n"], [[names]])])])).decode()
    assert names not in text
    assert "model/split0," in text
    assert "model/split5999</td>" in text
    assert len(text) < 50_000


def test_a_short_cell_stays_in_one_line(browser: Any, tmp_path: Path) -> None:
    """Whatever else is in its row, at any width."""
    shape = "uint8 1x257x257x16"
    rows = [[shape, LONG, LONG, LONG], [shape, "", "", LONG]]
    made = Page("t", None, "s", [Section("t", parts=[Table(["a", "b", "c", "d"], rows)])])
    (tmp_path / "page.html").write_bytes(render(made))
    browser.get((tmp_path / "page.html").as_uri())
    for width in (390, 1440):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
        )
        heights = browser.execute_script(
            "return [...document.querySelectorAll('td')].map((cell) => {"
            "const range = document.createRange(); range.selectNodeContents(cell);"
            "return range.getBoundingClientRect().height; })"
        )
        assert heights[0] == heights[4] < 25
        assert max(heights) < 130, "a long one is no column of single words"
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_figures_and_values_fit_into_a_narrow_window(browser: Any, tmp_path: Path) -> None:
    rows = [["operators where the conditions place them", "38 of 38"], ["the file", LONG]]
    made = Page("t", None, "s", [Section("t", parts=[Table(["figure", "value"], rows)])])
    (tmp_path / "page.html").write_bytes(render(made))
    browser.get((tmp_path / "page.html").as_uri())
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    right = browser.execute_script(
        "return document.querySelector('table').getBoundingClientRect().right"
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert right <= 390


def test_long_tables_are_bounded() -> None:
    text = render(page(sections=[Section("s", parts=[Table(["n"], [[n] for n in range(2500)])])]))
    assert text.decode().count("<td") == 2000
    assert b"The first 2,000 of 2,500 rows." in text


@pytest.fixture
def opened(tmp_path: Path, browser: Any) -> Any:
    file = tmp_path / "page.html"
    picture = Section("Picture", parts=[Picture(b"GIF89a", "image/gif", "none")])
    file.write_bytes(render(page(sections=[*page().sections, picture])))
    browser.get(file.as_uri())
    browser.execute_script("localStorage.clear()")
    # Of pages that other tests have opened.
    browser.get_log("browser")
    browser.get(file.as_uri())
    ready = "return document.documentElement.dataset.ready"
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(ready) == "yes")
    return browser


def first_cells(browser: Any) -> list[str]:
    return [
        row.text.split()[0]
        for row in browser.find_elements("css selector", "#s1 tbody tr")
        if row.is_displayed()
    ]


def test_a_heading_sorts_both_ways(opened: Any) -> None:
    names, values, shares, verdicts = opened.find_elements("css selector", "#s1 th button")
    values.click()
    assert first_cells(opened) == ["three", "one", "two"]
    values.click()
    assert first_cells(opened) == ["two", "one", "three"]
    names.click()
    assert first_cells(opened) == ["one", "three", "two"]
    shares.click()
    assert first_cells(opened) == ["one", "two", "three"], "empty cells stand last"
    shares.click()
    assert first_cells(opened) == ["two", "one", "three"]
    verdicts.click()
    assert first_cells(opened) == ["one", "two", "three"]
    assert verdicts.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"


def test_search_leaves_out_what_has_not_the_words(opened: Any) -> None:
    opened.find_element("id", "search").send_keys("TWO")
    assert first_cells(opened) == ["two"]
    faded = opened.find_elements("css selector", ".box.missed")
    assert len(faded) == 3
    opened.find_element("id", "search").clear()


def test_what_is_chosen_is_marked_everywhere(opened: Any) -> None:
    opened.find_elements("css selector", "#s1 tbody tr")[1].click()
    marked = opened.find_elements("css selector", ".chosen")
    assert sorted(each.tag_name for each in marked) == ["g", "tr"]
    assert {each.get_attribute("data-key") for each in marked} == {"layer:1"}
    assert (
        opened.execute_script("return views.map(({view}) => view.signal('chosen'))")
        == ["layer:1"] * 2
    )
    span = "return [views[1].view.signal('from'), views[1].view.signal('to')]"
    assert opened.execute_script(span) == [2, 3]
    bar = opened.find_element("id", "chosen")
    assert "layer:1 conv" in bar.text.replace("\n", " ").replace("  ", " ")
    next(each for each in bar.find_elements("tag name", "button") if "time" in each.text).click()
    shown = opened.execute_script("return [window_.from, window_.to]")
    assert shown == pytest.approx([1.9, 3.1])
    opened.find_elements("css selector", ".times button")[0].click()
    assert opened.execute_script("return [window_.from, window_.to]") == [0, 10]
    next(each for each in bar.find_elements("tag name", "button") if each.text == "clear").click()
    assert not opened.find_elements("css selector", ".chosen")
    assert not bar.is_displayed()


def test_a_mark_of_a_chart_can_be_chosen(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    mark = opened.find_element("css selector", "#s2 .mark-rect path")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(opened).move_to_element(mark).click().perform()
    assert opened.execute_script("return chosen") in KEYS
    assert opened.find_element("id", "tip").text


def test_light_and_dark(opened: Any) -> None:
    back = "return getComputedStyle(document.body).backgroundColor"
    seen = {opened.execute_script(back)}
    opened.find_element("id", "theme").click()
    seen.add(opened.execute_script(back))
    assert len(seen) == 2
    opened.refresh()
    assert opened.execute_script(back) in seen
    assert opened.execute_script("return localStorage.getItem('theme')") in ("light", "dark")
    for scheme, light in (("light", True), ("dark", False)):
        opened.execute_script("localStorage.clear()")
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        opened.refresh()
        assert (opened.execute_script(back) == "rgb(255, 255, 255)") == light
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_cut_at_the_right_edge(opened: Any, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened.refresh()
        wide = "return document.documentElement.scrollWidth"
        assert opened.execute_script("return innerWidth") == width
        assert opened.execute_script(wide) <= width
        for each in opened.find_elements("css selector", "h1, h2, p, nav, .chart, .scroll, .graph"):
            assert each.rect["x"] + each.rect["width"] <= width, each.tag_name
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_text_of_charts_can_be_selected(opened: Any) -> None:
    styles = opened.execute_script(
        "return all('.chart svg text').map((text) => [getComputedStyle(text).userSelect,"
        " getComputedStyle(text).pointerEvents])"
    )
    assert styles
    assert all(style == ["text", "auto"] for style in styles)


def test_nothing_is_loaded_and_nothing_fails(opened: Any) -> None:
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert not [entry for entry in opened.get_log("browser") if "GIF" not in entry["message"]]


def graph(browser: Any) -> Any:
    return browser.find_element("css selector", ".graph")


def test_a_graph_can_be_zoomed(opened: Any) -> None:
    frame, svg = graph(opened), graph(opened).find_element("css selector", "svg")
    width = svg.rect["width"]
    buttons = {each.text: each for each in opened.find_elements("css selector", ".zoom button")}
    assert list(buttons)[1:] == ["+", "1:1", "whole", "tall"]
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)
    buttons["+"].click()
    assert svg.rect["width"] == pytest.approx(1.5 * width)
    buttons["1:1"].click()
    assert svg.rect["width"] == pytest.approx(width)
    buttons["whole"].click()
    scroll = "return [arguments[0].scrollWidth, arguments[0].scrollHeight]"
    wide, high = opened.execute_script(scroll, frame)
    assert wide <= frame.rect["width"] and high <= frame.rect["height"]
    buttons["1:1"].click()
    turned = opened.execute_script(
        "const event = new WheelEvent('wheel', {ctrlKey: true, deltaY: -400, cancelable: true});"
        "arguments[0].dispatchEvent(event); return event.defaultPrevented",
        frame,
    )
    assert turned
    assert float(frame.get_attribute("data-scale")) == pytest.approx(2.718, abs=0.01)
    high = frame.rect["height"]
    buttons["tall"].click()
    assert frame.rect["height"] >= high
    buttons["tall"].click()


def test_enter_goes_from_box_to_box(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    search = opened.find_element("id", "search")
    seen = []
    search.send_keys("conv")
    for _ in range(4):
        search.send_keys(Keys.ENTER)
        seen.append(opened.execute_script("return chosen"))
    assert seen == [*KEYS, KEYS[0]]
    search.send_keys(Keys.SHIFT, Keys.ENTER)
    assert opened.execute_script("return chosen") == KEYS[2]


def test_an_address_leads_to_a_layer(opened: Any) -> None:
    opened.find_elements("css selector", "#s1 tbody tr")[1].click()
    address = opened.current_url
    assert address.endswith("#at=layer%3A1")
    opened.get("about:blank")
    opened.get(address)
    from selenium.webdriver.support.ui import WebDriverWait

    ready = "return document.documentElement.dataset.ready"
    WebDriverWait(opened, 30).until(lambda driver: driver.execute_script(ready) == "yes")
    marked = opened.find_elements("css selector", ".chosen")
    assert {each.get_attribute("data-key") for each in marked} == {"layer:1"}
    opened.execute_script("choose('layer:1')")
    assert "#" not in opened.current_url
