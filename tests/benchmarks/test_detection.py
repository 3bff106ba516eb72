"""The score of verification: what is done is kept, and mutants are judged as they should be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def detection(folder: Path, mutants: int) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of the measurement on the smallest program."""
    command = [sys.executable, "-m", "benchmarks.detection", "--json", "--jobs", "1"]
    options = ["--only", "sample dense", "--mutants", str(mutants), "--schedules", "3"]
    done = subprocess.run(
        [*command, *options, "--out", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.nightly
def test_what_is_done_is_kept(tmp_path: Path) -> None:
    status, report = detection(tmp_path, 1)
    outcomes = {each["key"]: each for each in report["outcomes"]}
    assert report["done"] == report["of"] == len(outcomes) == 10
    assert report["seed"] == 0 and report["machine"]
    assert status == (0 if report["reached"] else 1)
    results = Counter(each["result"] for each in outcomes.values())
    # A lost producer leaves somebody waiting, a wrong descriptor or address does not go unseen.
    by_kind = {each["kind"]: each["result"] for each in outcomes.values()}
    assert by_kind["producer lost"] == "deadlock"
    assert by_kind["descriptor changed"] in ("fault", "deadlock", "bytes", "DMA")
    assert by_kind["wrong table entry"] == "no place"
    assert results["bytes"] + results["fault"] > 0
    file = tmp_path / "detection.jsonl"
    lines = file.read_text().splitlines()
    assert len(lines) == 10
    # The last line was not written to its end: that mutant is made again, and nothing else.
    file.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20] + "\n")
    _, again = detection(tmp_path, 1)
    assert {each["key"]: each["result"] for each in again["outcomes"]} == {
        key: each["result"] for key, each in outcomes.items()
    }
    assert len(file.read_text().splitlines()) == 11
