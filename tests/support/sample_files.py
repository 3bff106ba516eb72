"""The sample networks in files, as `darwinn sample` writes them: made once in a process, because
many tests begin with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from darwinn_testbench import compiler


def sample(folder: Path, *, seed: int = 0) -> None:
    """Write the sample networks to ``folder``, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in _files(seed).items():
        (folder / name).write_bytes(data)


@cache
def _files(seed: int) -> Mapping[str, bytes]:
    with TemporaryDirectory() as folder:
        compiler.sample(folder, seed=seed)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}
