"""Seconds and memory of loading, disassembling and running real models, with their bounds.

    python -m benchmarks.speed [--repeat N] [--only WORD]

Reads the models from the folder that DARWINN_CORPUS names; the sample is the project's own. Each
measurement runs in a process of its own, so that its peak memory is its own; times are the best of
N. "grown" is what the memory of the process has grown by in the second half of many inferences on
one device, all of which must give the same bytes. Exits with 1 if a bound is exceeded.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.common import (
    MIB,
    alone,
    compiled,
    corpus,
    machine_and_load,
    parser,
    peak_bytes,
    with_word,
)

MEMORY_BOUND = 500 * MIB
"""Bytes that a process with the whole simulator in it may use at its peak."""

LARGE_MEMORY_BOUND = 1024 * MIB
"""The same for a program with tens of millions of tensor iterations."""

GROWTH_BOUND = 256 << 10
"""Bytes that a process may grow by in the second half of many inferences. In the first half the
allocator settles: some megabytes, once."""

Action = Callable[[], object]
SAMPLE = "the sample's dense"


@dataclass(frozen=True)
class Measurement:
    """``prepare`` sets up what is not measured and returns what is."""

    name: str
    model: str
    prepare: Callable[[Path], Action]
    bound: float | None
    memory_bound: int = MEMORY_BOUND


@dataclass(frozen=True)
class Result:
    """``grown`` is None where nothing is repeated on one device."""

    seconds: float
    first: float
    peak_bytes: int
    grown: int | None


def loading(path: Path) -> Action:
    from darwinn_formats.darwinn import load

    return lambda: load(path)


def disassembling(path: Path) -> Action:
    from darwinn_formats.darwinn import load
    from darwinn_sim.isa.codec import decode
    from darwinn_sim.isa.listing.disassembler import disassemble, to_text

    chunks = [
        bytes(bitstream.bitstream)
        for executable in load(path).executables
        for bitstream in executable.instruction_bitstreams
    ]
    return lambda: [list(to_text(disassemble(decode(chunk)))) for chunk in chunks]


def viewing(path: Path) -> Action:
    from darwinn_sim.accelerator import compile_kernels
    from darwinn_testbench.layers.view import view_layers

    compile_kernels()
    return lambda: view_layers(path)


def inferring(path: Path) -> Action:
    from darwinn_testbench.chip.inputs import random_inputs
    from darwinn_testbench.chip.model import open_models
    from darwinn_testbench.chip.session import Session

    (model,) = open_models(path)
    session = Session(model, lifts=False)
    session.load_parameters()
    (tensors,) = random_inputs(model.ports, seed=0, runs=1)
    return lambda: session.infer(tensors)


def inferring_often(count: int, path: Path) -> Action:
    """``count`` inferences on one device: by how many bytes the process grows in the second half.

    AssertionError if their outputs differ.
    """
    infer = inferring(path)

    def action() -> int:
        first = _digest(infer())
        resident = 0
        for number in range(1, count):
            if number == count // 2:
                resident = resident_bytes()
            assert _digest(infer()) == first, "the same input gave different outputs"
        return resident_bytes() - resident

    return action


def resident_bytes() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _digest(inference: object) -> bytes:
    from darwinn_testbench.chip.session import Inference

    assert isinstance(inference, Inference)
    return b"".join(tensor.tobytes() for tensor in inference.outputs.values())


MEASUREMENTS = (
    Measurement("load 4 MB, verified", "mobilenet_v2_1.0_224_quant", loading, 0.3),
    Measurement("disassemble 4 MB file", "mobilenet_v2_1.0_224_quant", disassembling, None),
    Measurement("infer dense_1024", "dense_1024", inferring, 0.2),
    Measurement(
        "infer mobilenet_v1 extractor",
        "mobilenet_v1_1.0_224_quant_embedding_extractor",
        inferring,
        3.0,
    ),
    Measurement("infer mobilenet_v2", "mobilenet_v2_1.0_224_quant", inferring, 3.0),
    Measurement(
        "20 x mobilenet_v2", "mobilenet_v2_1.0_224_quant", partial(inferring_often, 20), 60.0
    ),
    Measurement("4,000 x sample", SAMPLE, partial(inferring_often, 4000), None),
    Measurement(
        "infer deeplabv3 513 x 513",
        "deeplabv3_mnv2_dm05_pascal_quant",
        inferring,
        15.0,
        LARGE_MEMORY_BOUND,
    ),
    Measurement(
        "layers of deeplab slim",
        "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
        viewing,
        10.0,
        LARGE_MEMORY_BOUND,
    ),
)


def measure(measurement: Measurement, path: Path, repeat: int) -> Result:
    action = measurement.prepare(path)
    times = []
    grown: int | None = None
    for _ in range(repeat):
        begin = time.perf_counter()
        outcome = action()
        times.append(time.perf_counter() - begin)
        grown = outcome if isinstance(outcome, int) else None
        if grown is not None:
            break
    return Result(min(times), times[0], peak_bytes(), grown)


def path_of(measurement: Measurement, folder: Path) -> Path:
    """The compiled model; that of the sample is written to ``folder``."""
    if measurement.model != SAMPLE:
        return compiled(measurement.model)
    from darwinn_testbench.compiler import sample

    sample(folder)
    return folder / "dense_edgetpu.tflite"


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--only", default="", metavar="WORD", help="measurements with this word")
    options = arguments.parse_args()
    chosen = with_word(options.only, MEASUREMENTS, lambda each: each.name)
    corpus("darwinn")
    print(machine_and_load())
    print(
        f"{'measurement':<30} {'best s':>8} {'first s':>8} {'bound s':>8} {'peak MiB':>9} "
        f"{'grown KiB':>9}"
    )
    exceeded = False
    for measurement in chosen:
        with tempfile.TemporaryDirectory() as folder:
            path = path_of(measurement, Path(folder))
            result = alone(measure, measurement, path, options.repeat)
        over = (
            result.peak_bytes > measurement.memory_bound
            or (measurement.bound is not None and result.seconds > measurement.bound)
            or (result.grown or 0) > GROWTH_BOUND
        )
        exceeded |= over
        bound = "" if measurement.bound is None else f"{measurement.bound:.1f}"
        grown = "" if result.grown is None else f"{result.grown / 1024:.0f}"
        print(
            f"{measurement.name:<30} {result.seconds:8.3f} {result.first:8.3f} {bound:>8} "
            f"{result.peak_bytes / MIB:9.0f} {grown:>9}{'  EXCEEDED' if over else ''}",
            flush=True,
        )
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
