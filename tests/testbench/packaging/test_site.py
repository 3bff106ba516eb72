"""The documentation builds as a site, strictly, and its pages fetch nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_FETCHED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=["']?https?:[^>]*>""")


def test_the_site_builds_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert {page.stem for page in (ROOT / "docs").rglob("*.md")} <= {page.stem for page in pages}
    # `canonical` and its like name a page, and fetch nothing.
    fetched = {
        tag
        for page in pages
        for tag in _FETCHED.findall(page.read_text())
        if not re.search(r"rel=[\"']?(?:canonical|next|prev|alternate)", tag)
    }
    assert fetched == set()
    assert "darwinn verify" in (tmp_path / "index.html").read_text()
