"""Seconds and memory of loading and running ExecuTorch programs, with their bounds.

    python -m benchmarks.executorch [--repeat N]

Reads the programs from the folder that DARWINN_CORPUS names. Each measurement runs in a process of
its own; times are the best of N. The original runtime is measured beside ours where it is
installed. Exits with 1 if a bound is exceeded.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.common import MIB, alone, corpus, machine, parser
from benchmarks.speed import Action, Measurement, measure

PROGRAM = "e_mbv2_int8"


def loading(path: Path) -> Action:
    from darwinn_formats.executorch import load

    return lambda: load(path)


def preparing(path: Path) -> Action:
    from darwinn_reference.executorch import ExecutorchReference

    return lambda: ExecutorchReference(path)


def running(path: Path) -> Action:
    import numpy as np
    from darwinn_reference.executorch import ExecutorchReference

    reference = ExecutorchReference(path)
    sample = np.zeros((1, 3, 96, 96), np.float32)
    return lambda: reference.run([sample])


def running_original(path: Path) -> Action:
    import numpy as np
    from darwinn_reference.executorch.original import OriginalRuntime

    reference = OriginalRuntime(path)
    sample = np.zeros((1, 3, 96, 96), np.float32)
    return lambda: reference.run([sample])


MEASUREMENTS = (
    Measurement("load, checked", PROGRAM, loading, 0.3),
    Measurement("load and prepare", PROGRAM, preparing, 0.5),
    Measurement("run", PROGRAM, running, 2.0),
)
ORIGINAL = Measurement("run, original runtime", PROGRAM, running_original, None)


def main() -> int:
    from darwinn_reference.executorch.original import unavailable

    options = parser(__doc__).parse_args()
    folder = corpus("pte")
    print(machine())
    print(f"{PROGRAM:<24} {'best s':>8} {'first s':>8} {'bound s':>8} {'peak MiB':>9}")
    exceeded = False
    reason = unavailable()
    for measurement in MEASUREMENTS if reason else (*MEASUREMENTS, ORIGINAL):
        path = folder / f"{measurement.model}.pte"
        result = alone(measure, measurement, path, options.repeat)
        over = measurement.bound is not None and result.seconds > measurement.bound
        exceeded |= over
        bound = "" if measurement.bound is None else f"{measurement.bound:.1f}"
        print(
            f"{measurement.name:<24} {result.seconds:8.3f} {result.first:8.3f} {bound:>8} "
            f"{result.peak_bytes / MIB:9.0f}{'  EXCEEDED' if over else ''}",
            flush=True,
        )
    if reason:
        print(reason)
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
