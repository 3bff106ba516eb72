"""Where compiled kernels are cached: a changed source must never meet kernels of before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PRINT_FOLDER = """
import darwinn_sim.kernel.sync
print(darwinn_sim.kernel.sync.reached._cache.cache_path)
"""


def folder_with(**variables: str) -> Path:
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", PRINT_FOLDER]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Path(printed.stdout.strip())


def test_a_folder_of_the_user_holds_one_for_each_state_of_the_sources(tmp_path: Path) -> None:
    own = folder_with(NUMBA_CACHE_DIR="")
    given = folder_with(NUMBA_CACHE_DIR=str(tmp_path))
    assert given.parent == tmp_path
    assert given.name == own.name
    assert own.parent != tmp_path
