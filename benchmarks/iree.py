"""Seconds that IREE modules take in the reference, and in the original runtime if installed.

    python -m benchmarks.iree [--repeat N]

Reads modules and inputs from the folder that DARWINN_CORPUS names; times are the best of N. Exits
with 1 if a bound is exceeded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.iree import disassemble, load
from darwinn_testbench.reference.iree import IreeReference, OriginalIree, why_not
from darwinn_testbench.reference.protocol import Reference

from benchmarks.common import corpus, machine, parser, seconds_of

BOUND = 5.0
"""Seconds for one call of a module of the corpus."""
MODULES = ("matmul_i8_dyn.vmvx", "conv_stablehlo.vmvx", "qmatmul_const.vmvx", "tosa_mlp.vmvx")


def fastest(action: Callable[[], object], repeat: int) -> float:
    return min(seconds_of(action, repeat))


def call_of(reference: Reference, folder: Path, name: str) -> Callable[[], object]:
    with np.load(folder / f"{name}.npz") as stored:
        function = str(stored["call0_fn"])
        inputs: list[Any] = [stored[key] for key in stored.files if key.startswith("call0_in")]
    return lambda: reference.run(inputs, function=function)


def square_product(reference: Reference, size: int) -> Callable[[], object]:
    matrices = [np.ones((size, size), np.int8)] * 2
    return lambda: reference.run(matrices)


def rows(folder: Path, repeat: int) -> list[tuple[str, float, float | None, float | None]]:
    """Name, our seconds, the original's, and the bound, of each measurement."""
    measured: list[tuple[str, float, float | None, float | None]] = []
    original = why_not() is None
    path = folder / "conv_stablehlo.vmvx.vmfb"
    measured.append(("load, verified", fastest(lambda: load(path), repeat), None, None))
    measured.append(
        ("disassemble", fastest(lambda: list(disassemble(load(path))), repeat), None, None)
    )
    for name in MODULES:
        module = folder / f"{name}.vmfb"
        ours = fastest(call_of(IreeReference(module), folder, name), repeat)
        theirs = fastest(call_of(OriginalIree(module), folder, name), repeat) if original else None
        measured.append((name, ours, theirs, BOUND))
    module = folder / "matmul_i8_dyn.vmvx.vmfb"
    ours = fastest(square_product(IreeReference(module), 64), 1)
    theirs = fastest(square_product(OriginalIree(module), 64), repeat) if original else None
    measured.append(("matmul_i8_dyn.vmvx, 64x64x64", ours, theirs, BOUND))
    return measured


def main() -> int:
    options = parser(__doc__).parse_args()
    folder = corpus("vmfb") / "v17"
    print(machine())
    print(f"{'measurement':<30} {'best s':>9} {'original':>9} {'bound s':>8}")
    exceeded = False
    for name, ours, theirs, bound in rows(folder, options.repeat):
        over = bound is not None and ours > bound
        exceeded |= over
        beside = "" if theirs is None else f"{theirs:.5f}"
        limit = "" if bound is None else f"{bound:.1f}"
        print(f"{name:<30} {ours:9.5f} {beside:>9} {limit:>8}{'  EXCEEDED' if over else ''}")
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
