"""What the original runtime gave for graphs of each node, stored with the programs.

    python tests/support/xnnpack_expected.py

writes the file anew; it needs the package ``executorch``, and passes over what the runtime refuses,
crashes on or does not end.
"""

from __future__ import annotations

import io
import multiprocessing
import sys
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from numpy.typing import NDArray
from xnnpack_cases import NODES, NOT_HALF, Case, cases

FILE = Path(__file__).with_suffix(".zip")
SEED = 11
ROUNDS = 2
SECONDS = 200.0


def stored() -> Iterator[tuple[Case, list[NDArray[Any]]]]:
    """Cases, and the outputs that the original runtime gave."""
    with zipfile.ZipFile(FILE) as archive:
        for entry in archive.namelist():
            with np.load(io.BytesIO(archive.read(entry))) as arrays:
                inputs = [arrays[f"input{at}"] for at in range(_count(arrays, "input"))]
                outputs = [arrays[f"output{at}"] for at in range(_count(arrays, "output"))]
                yield Case(entry, arrays["program"].tobytes(), inputs), outputs


def _count(arrays: Any, name: str) -> int:
    return sum(key.startswith(name) for key in arrays.files)


def original(case: Case) -> list[NDArray[Any]]:
    """Outputs of the original runtime."""
    from darwinn_reference.executorch.original import OriginalRuntime

    return [np.asarray(entry.data) for entry in OriginalRuntime(case.program).run(case.inputs)]


class Originals:
    """The original runtime in a process of its own, which is started anew where it dies."""

    def __init__(self) -> None:
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def __call__(self, case: Case) -> list[NDArray[Any]] | str:
        """Outputs of a case, or why there are none."""
        try:
            return self._pool.submit(original, case).result(SECONDS)
        except ExecutionError as error:
            return f"refused: {error}"
        except BrokenProcessPool:
            self._pool = self._new()
            return "the runtime crashed"
        except TimeoutError:
            for process in self._pool._processes.values():
                process.kill()
            self._pool = self._new()
            return f"the runtime did not end within {SECONDS:g} s"


def drawn() -> Iterator[Case]:
    """All cases that are stored, in their order."""
    yield from cases(SEED, ROUNDS * sum(len(types) for _, types in NODES.values()))
    yield from cases(SEED, ROUNDS * len(NODES.keys() - NOT_HALF), halves=True)


def main() -> None:
    run = Originals()
    with zipfile.ZipFile(FILE, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, case in enumerate(drawn()):
            outputs = run(case)
            if isinstance(outputs, str):
                print(f"{case.name}: {outputs}", file=sys.stderr)
                continue
            store(archive, f"{number:03} {case.name}", case, outputs)


def store(archive: zipfile.ZipFile, name: str, case: Case, outputs: Sequence[NDArray[Any]]) -> None:
    """Add a case with its outputs to the archive."""
    arrays: dict[str, Any] = {"program": np.frombuffer(case.program, np.uint8)}
    arrays |= {f"input{at}": array for at, array in enumerate(case.inputs)}
    arrays |= {f"output{at}": array for at, array in enumerate(outputs)}
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    # A fixed date: the same results are the same file.
    archive.writestr(zipfile.ZipInfo(name), packed.getvalue(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
