"""Commands that simulate a chip of four tiles, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SMALL = "harness-2x2"
SECONDS = 1500
"""Bound of a command that compiles all its kernels first."""


def command(
    *words: str | Path, chip: str | Path = SMALL, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run ``darwinn`` with these words on ``chip``, with ``variables`` in its environment."""
    line = [sys.executable, "-m", "darwinn_testbench", *map(str, words)]
    environment = {**os.environ, "DARWINN_CHIP": str(chip), **variables}
    return subprocess.run(
        line, env=environment, text=True, capture_output=True, check=False, timeout=SECONDS
    )


def report(*words: str | Path, chip: str | Path = SMALL, **variables: str) -> Any:
    """What it prints with ``--json``; it passes."""
    done = command(*words, "--json", chip=chip, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
