"""The test of one's own in docs/rtl.md runs as it stands there, and notices a wrong byte."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness_runs import require_toolchain

PAGE = Path(__file__).parents[3] / "docs" / "rtl.md"


@pytest.mark.parametrize("right", [True, False])
def test_it_runs_as_it_stands(right: bool, tmp_path: Path) -> None:
    require_toolchain()
    chapter = PAGE.read_text().partition("### A test of your own\n")[2].partition("\n#")[0]
    test, run = re.findall(r"```python\n(.*?)```", chapter, re.DOTALL)
    if not right:
        test = test.replace("got == bytes(range(50))", "got == bytes(50)")
    (tmp_path / "my_test.py").write_text(test)
    (tmp_path / "run.py").write_text(run)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode == 0) == right, done.stderr
    if not right:
        assert "SimulationFailed" in done.stderr
