"""Other tools: what is missing is named before anything is measured; the page is the bench's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import peers

ROOT = Path(__file__).parents[2]
NOWHERE = "/nowhere/at/all"
Call = Callable[..., int]


def test_a_folder_without_the_tools_is_refused(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("peers", "--tools", NOWHERE) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"{NOWHERE} has no python and no vela")


def test_a_network_without_its_original_is_named(
    call: Call, capsys: pytest.CaptureFixture[str], small_corpus: Path
) -> None:
    (small_corpus / "tflite" / "tiny.tflite").unlink()
    assert call("peers", "tiny") == 2
    assert capsys.readouterr().err.startswith("no network tiny: there is no ")


def test_a_tool_that_cannot_be_started_is_an_error_of_the_tool(tmp_path: Path) -> None:
    with pytest.raises(peers.ToolError, match="nowhere"):
        peers._command([NOWHERE], tmp_path)


def test_the_page_of_peers_is_what_the_bench_writes() -> None:
    before, after = peers._HEAD.split("{machine}")
    page = (ROOT / "benchmarks" / "peers.md").read_text()
    assert page.startswith(before) and after in page
    (*_, heads, _) = [line for line in page.splitlines() if not line.startswith("| `")]
    assert heads == f"| {' | '.join(peers._COLUMNS)} |"
