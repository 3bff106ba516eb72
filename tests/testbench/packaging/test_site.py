"""The documentation builds as a site, strictly; its pages fetch nothing, and nothing is cut off."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from website.build import ROOT, adapted, assemble, render

_FETCHED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=["']?https?:[^>]*>""")
_WIDTHS = (1280, 400)
_WIDE_PAGES = ("index.html", "overview.html", "cli-time.html", "tutorials/slow.html")
"""The landing page, and pages whose outputs are wide."""
_CUT_OFF = """
const cut = [...document.querySelectorAll("pre code, .doors, .entry, .md-content img")].filter(
    (each) => each.scrollWidth > each.clientWidth + 1
        || each.getBoundingClientRect().right > innerWidth + 1);
return [document.documentElement.scrollWidth <= innerWidth, cut.map((each) => each.outerHTML)];
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembled site, not yet built."""
    pytest.importorskip("zensical")
    folder = tmp_path_factory.mktemp("sources")
    assemble(folder)
    return folder


@pytest.fixture(scope="module")
def site(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    return render(Path(shutil.copytree(sources, folder)))


def test_every_document_is_a_page_and_fetches_nothing(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert {page.stem for page in (ROOT / "docs").rglob("*.md")} <= {page.stem for page in pages}
    # `canonical` and its like name a page, and fetch nothing.
    fetched = {
        tag
        for page in pages
        for tag in _FETCHED.findall(page.read_text())
        if not re.search(r"rel=[\"']?(?:canonical|next|prev|alternate)", tag)
    }
    assert fetched == set()
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", style.read_text()), style
    assert "without a board" in (site / "index.html").read_text()


def test_links_that_lead_nowhere_fail_the_build(sources: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sources, tmp_path / "site"))
    page = folder / "pages/install.md"
    page.write_text(f"{page.read_text()}\nA [page](nowhere.md).\n\nA [section](cli.md#nothing).\n")
    with pytest.raises(SystemExit) as ended:
        render(folder)
    assert "nowhere.md" in str(ended.value)
    assert "#nothing" in str(ended.value)


def test_a_page_that_the_navigation_lacks_fails_the_build(sources: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sources, tmp_path / "site"))
    (folder / "pages/forgotten.md").write_text("# Forgotten\n")
    with pytest.raises(SystemExit, match="forgotten"):
        render(folder)


def test_documents_are_adapted_to_the_site() -> None:
    assert adapted("[how](docs/ci.md#gitlab)", "README.md") == "[how](ci.md#gitlab)"
    assert adapted("[a](../../CONTRIBUTING.md)", "docs/tutorials/a.md") == "[a](../contributing.md)"
    assert adapted("[a](../docs/api.md)", "benchmarks/peers.md") == "[a](api.md)"
    assert adapted("the [LICENSE](LICENSE)", "README.md") == "the LICENSE"
    assert (
        adapted("[a](https://example.org/docs/)", "docs/a.md") == "[a](https://example.org/docs/)"
    )
    assert adapted("| `a \\| b` | \\| |", "docs/a.md") == "| `a | b` | \\| |"


def test_tables_show_no_backslashes(site: Path) -> None:
    for page in site.rglob("*.html"):
        cells = re.findall(r"<td[^>]*>.*?</td>", page.read_text(), re.DOTALL)
        assert not [cell for cell in cells if "\\|" in cell], page


@pytest.mark.parametrize("page", _WIDE_PAGES)
def test_no_output_is_cut_off(site: Path, page: str, browser: Any) -> None:
    browser.get((site / page).as_uri())
    for width in _WIDTHS:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        fits, cut = browser.execute_script(_CUT_OFF)
        assert fits
        assert cut == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
