"""Seconds, memory and simulated cycles per second of timing real models, with their bounds.

    python -m benchmarks.timing [--repeat N]

Reads the models from the folder that DARWINN_CORPUS names. Each measurement is of the whole way
from the bytes of the file to the cycles, in a process of its own; times are the best of N. Exits
with 1 if a bound is exceeded.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import MIB, machine

SECONDS = 2.0
MEMORY = 300 * MIB
MODELS = {
    "mobilenet_v1_1.0_224_quant_embedding_extractor": (SECONDS, MEMORY),
    "mobilenet_v2_1.0_224_quant": (None, None),
    "deeplabv3_mnv2_dm05_pascal_quant": (None, None),
}
"""Models, with the bounds of seconds and bytes where there are any."""


@dataclass(frozen=True)
class Result:
    cycles: int
    seconds: float
    first: float
    peak_bytes: int


def measure(path: Path, repeat: int) -> Result:
    from darwinn_formats.darwinn import load
    from darwinn_sim import timing

    host = timing.host_link("usb3")
    times, cycles = [], 0
    # The first run reads the compiled kernels from the cache, or fills it.
    for _ in range(repeat + 1):
        begin = time.perf_counter()
        (model,) = load(path).models
        cycles = timing.simulate(model.inference, host=host).cycles
        times.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Result(cycles, min(times[1:]), times[0], peak)


def warm(path: Path) -> None:
    """Compile the kernels, in a process whose memory is not measured."""
    measure(path, 1)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeat", type=int, default=5, metavar="N")
    options = arguments.parse_args()
    corpus = os.environ.get("DARWINN_CORPUS")
    if not corpus:
        print("DARWINN_CORPUS is not set: there are no real models to time", file=sys.stderr)
        return 2
    print(machine())
    print(
        f"{'model':<48} {'cycles':>9} {'best s':>7} {'first s':>8} {'Mcycle/s':>9} {'peak MiB':>9}"
    )
    exceeded = False
    # Spawned, not forked: a child must not inherit this process's memory as its peak.
    context = multiprocessing.get_context("spawn")
    folder = Path(corpus) / "darwinn"
    with context.Pool(1) as pool:
        pool.apply(warm, (folder / "dense_256_edgetpu.tflite",))
    for name, (seconds, memory) in MODELS.items():
        path = folder / f"{name}_edgetpu.tflite"
        with context.Pool(1) as pool:
            result = pool.apply(measure, (path, options.repeat))
        slow = seconds is not None and result.seconds > seconds
        over = slow or (memory is not None and result.peak_bytes > memory)
        exceeded |= over
        print(
            f"{name:<48} {result.cycles:9,} {result.seconds:7.2f} {result.first:8.2f} "
            f"{result.cycles / result.seconds / 1e6:9.2f} {result.peak_bytes / MIB:9.0f}"
            f"{'  EXCEEDED' if over else ''}",
            flush=True,
        )
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
