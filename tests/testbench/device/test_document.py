"""What docs/device.md says can be typed as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line

PAGE = Path(__file__).parents[3] / "docs" / "device.md"


def test_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["sample", "sample"]) == 0
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), {})
