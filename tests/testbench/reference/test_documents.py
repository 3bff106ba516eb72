"""Pages whose tables come from the references say what these are now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from darwinn_reference.documents import PAGES, main, outdated

DOCUMENTS = Path(__file__).parents[3] / "docs"


def test_the_committed_pages_are_up_to_date() -> None:
    assert not outdated(DOCUMENTS), "run make docs"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_not_is_named_and_brought_up_to_date(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for page in PAGES:
        shutil.copy(DOCUMENTS / page, tmp_path)
    path = tmp_path / name
    path.write_text(path.read_text().replace("add", "subtract").replace("ADD", "SUBTRACT"))
    assert main(["--check", str(tmp_path)]) == 1
    assert name in capsys.readouterr().out
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
