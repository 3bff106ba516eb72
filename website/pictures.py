"""Draws the pictures of the documents. Both commands need Chromium.

The report page of a model and its timeline, for README.md, the site and the tutorials:

    python -m website.pictures model MODEL_edgetpu.tflite MODEL.tflite

The mermaid diagrams of docs/architecture.md, for the site. Pages on GitHub draw them from their
text; the site shows these pictures, so that its readers load no script from elsewhere. The script
is ``dist/mermaid.min.js`` of the package that ``npm pack mermaid`` fetches:

    python -m website.pictures diagrams MERMAID_JS
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import vl_convert
from darwinn_testbench.pages import Chart
from darwinn_testbench.pages.charts import compiled
from darwinn_testbench.profile import figures
from darwinn_testbench.profile.page import times
from darwinn_testbench.profile.profile import profile
from PIL import Image

from website.build import DIAGRAM, ROOT, picture_of

_DOCUMENTS = ROOT / "docs"
_PICTURES = _DOCUMENTS / "pictures"
_CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
_WAIT = "--virtual-time-budget=20000"
_DIAGRAM_PAGE = """<!doctype html><meta charset="utf-8"><body>
<pre id="text">%s</pre>
<script>%s</script>
<script>
mermaid.initialize({startOnLoad: false, theme: "neutral", htmlLabels: false,
    flowchart: {htmlLabels: false}, fontFamily: "sans-serif"});
mermaid.render("diagram", document.getElementById("text").textContent).then(
    ({svg}) => { document.body.textContent = "SVG" + encodeURIComponent(svg) + "END"; });
</script>"""
_COLOURS = 64
"""Of a picture: enough for text and charts, and a third of the bytes."""
_CHART_WIDTH = 620
_CHART_SCALE = 2
"""Pixels of a picture for one of the chart: sharp on screens of twice the density."""
_SCHEMES = {
    "timeline": ("#ffffff", "#000000", "#dddddd"),
    "timeline-dark": ("#0b0d12", "#d5d7de", "#33363f"),
}
"""Pictures of the timeline: their background, text and lines."""
_PAGE_SIZE = "1100,760"


def write_small(target: Path, png: bytes) -> None:
    """Write a PNG with few colours."""
    Image.open(BytesIO(png)).convert("RGB").quantize(_COLOURS).save(target, optimize=True)


def chart_png(chart: Chart, duration: float, colours: tuple[str, str, str]) -> bytes:
    """A chart over time, from 0 to ``duration`` milliseconds, in colours of `_SCHEMES`."""
    background, text, line = colours
    specification: dict[str, Any] = {**compiled(chart), "background": background, "padding": 8}
    axes = {"labelColor": text, "titleColor": text, "tickColor": line}
    axes |= {"domainColor": line, "gridColor": line}
    specification["config"] = {**specification.get("config", {})}
    specification["config"]["axis"] = {**specification["config"].get("axis", {}), **axes}
    fixed = {"width": _CHART_WIDTH, "t0": 0, "t1": duration}
    specification["autosize"] = "pad"
    specification["signals"] = [
        {"name": each["name"], "value": fixed[each["name"]]} if each["name"] in fixed else each
        for each in specification["signals"]
    ]
    names = list(chart.columns)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*chart.columns.values(), strict=True)]
    for data in specification["data"]:
        if data["name"] == "rows":
            data["values"] = rows
    drawn: bytes = vl_convert.vega_to_png(specification, scale=_CHART_SCALE)
    return drawn


def page_png(page: Path) -> bytes:
    """The upper part of a page as a browser shows it."""
    target = page.with_suffix(".png")
    command = [*_CHROMIUM, _WAIT, f"--window-size={_PAGE_SIZE}", f"--screenshot={target}"]
    subprocess.run([*command, page.as_uri()], check=True, timeout=120)
    return target.read_bytes()


def diagram_svg(text: str, script: str) -> str:
    """A mermaid diagram as SVG on white."""
    with TemporaryDirectory() as temporary:
        page = Path(temporary, "diagram.html")
        page.write_text(_DIAGRAM_PAGE % (html.escape(text), script))
        shown = subprocess.run(
            [*_CHROMIUM, _WAIT, "--dump-dom", page.as_uri()],
            check=True,
            timeout=120,
            capture_output=True,
            text=True,
        ).stdout
    found = re.search(r"SVG(%3Csvg.*?)END", shown)
    if found is None:
        sys.exit(f"mermaid cannot draw this:\n{text}")
    return unquote(found[1]).replace('style="', 'style="background: white; ', 1) + "\n"


def draw_diagrams(script: str) -> None:
    """Write the picture of each diagram, and remove those of diagrams that are no more."""
    for old in _PICTURES.glob("diagram-*.svg"):
        old.unlink()
    source = Path(script).read_text()
    for page in _DOCUMENTS.glob("*.md"):
        for text in DIAGRAM.findall(page.read_text()):
            (_DOCUMENTS / picture_of(text)).write_text(diagram_svg(text, source))


def draw_model(compiled_model: str, reference: str) -> None:
    """Write the timeline and the report page of a model."""
    report = profile(compiled_model)
    timing = report.figures["profile"].profiled.timing
    chart = figures.timeline(timing)
    duration = times(report).duration
    for name, colours in _SCHEMES.items():
        write_small(_PICTURES / f"{name}.png", chart_png(chart, duration, colours))
    with TemporaryDirectory() as temporary:
        page = Path(temporary, "report.html")
        command = ["report", compiled_model, "--reference", reference, "--output", str(page)]
        subprocess.run([sys.executable, "-m", "darwinn_testbench", *command], check=True)
        write_small(_PICTURES / "report.png", page_png(page))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["model", compiled_file, reference_file]:
            draw_model(compiled_file, reference_file)
        case ["diagrams", script_file]:
            draw_diagrams(script_file)
        case _:
            sys.exit(__doc__)
