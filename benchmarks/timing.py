"""Seconds, memory and simulated cycles per second of timing real models, with their bounds.

    python -m benchmarks.timing [--repeat N]

Reads the models from the folder that DARWINN_CORPUS names. Each measurement is of the whole way
from the bytes of the file to the cycles, as `darwinn cycles` goes it, in a process of its own;
times are the best of N. The last line is of the command itself, with all compiled models of the
folders that DARWINN_CORPUS, DARWINN_WILD and DARWINN_WILD2 name: processor time of the process and
those that it starts. Exits with 1 if a bound is exceeded.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import (
    MIB,
    alone,
    compiled,
    machine_and_load,
    parser,
    peak_bytes,
    real_folders,
    seconds_of,
)

SECONDS = 2.0
MEMORY = 300 * MIB
MODELS = {
    "mobilenet_v1_1.0_224_quant_embedding_extractor": (SECONDS, MEMORY),
    "mobilenet_v2_1.0_224_quant": (None, None),
    "deeplabv3_mnv2_dm05_pascal_quant": (None, None),
}
"""Models, with the bounds of seconds and bytes where there are any."""


SECONDS_OF_A_FILE = 0.15
"""Processor time of `darwinn cycles` for one of many files, on average."""


@dataclass(frozen=True)
class Result:
    cycles: int
    seconds: float
    first: float
    peak_bytes: int


def measure(path: Path, repeat: int) -> Result:
    from darwinn_formats.darwinn import load
    from darwinn_sim import timing
    from darwinn_sim.machine.lowering import lower_executable

    host = timing.host_link("usb3")
    cycles: list[int] = []

    def simulate() -> None:
        (model,) = load(path).models
        program = lower_executable(model.inference, addresses=False)
        cycles.append(timing.simulate(model.inference, host=host, program=program).cycles)

    # The first run reads the compiled kernels from the cache, or fills it.
    first, *times = seconds_of(simulate, repeat + 1)
    return Result(cycles[-1], min(times), first, peak_bytes())


def command_seconds() -> tuple[int, float]:
    """How many compiled models the folders hold, and the processor time of one call for them."""
    files = [
        str(path)
        for folder in real_folders()
        for path in sorted(folder.rglob("*_edgetpu.tflite"))
        if b"edgetpu-custom-op" in path.read_bytes()
    ]
    words = [sys.executable, "-m", "darwinn_testbench", "cycles", *files]
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return len(files), used.ru_utime + used.ru_stime


def main() -> int:
    options = parser(__doc__).parse_args()
    small = compiled("dense_256")
    print(machine_and_load())
    print(
        f"{'model':<48} {'cycles':>9} {'best s':>7} {'first s':>8} {'Mcycle/s':>9} {'peak MiB':>9}"
    )
    exceeded = False
    # Compiles the kernels, in a process whose memory is not measured.
    alone(measure, small, 1)
    for name, (seconds, memory) in MODELS.items():
        result = alone(measure, compiled(name), options.repeat)
        slow = seconds is not None and result.seconds > seconds
        over = slow or (memory is not None and result.peak_bytes > memory)
        exceeded |= over
        print(
            f"{name:<48} {result.cycles:9,} {result.seconds:7.2f} {result.first:8.2f} "
            f"{result.cycles / result.seconds / 1e6:9.2f} {result.peak_bytes / MIB:9.0f}"
            f"{'  EXCEEDED' if over else ''}",
            flush=True,
        )
    # Last, in a process of its own: its children are counted.
    files, seconds = alone(command_seconds)
    slow = seconds > SECONDS_OF_A_FILE * files
    print(
        f"darwinn cycles of {files} files: {seconds:.1f} s of processor time, "
        f"{1e3 * seconds / files:.0f} ms for each{'  EXCEEDED' if slow else ''}"
    )
    return int(exceeded or slow)


if __name__ == "__main__":
    sys.exit(main())
