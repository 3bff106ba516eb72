"""What looking for hazards costs: processor time against the plain run, and memory.

    python -m benchmarks.hazards [FILE ...] [--repeat N] [--json]

Without files: the project's samples, and the compiled models of DARWINN_CORPUS. Each is run on its
first drawn inputs with and without the checker, the kernels of both compiled before; the least of N
times counts. Memory is all that the checker keeps, for each byte of the memories that it follows:
narrow and wide memory, scale/bias buffers, scalar memory, both buffers. Exits with 1 beyond bounds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator, compile_kernels
from darwinn_sim.kernel.clocks import Clocks
from darwinn_testbench.chip.inputs import choose_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Device, Session
from darwinn_testbench.compiler.files import sample

from benchmarks.common import existing_file, machine, positive

MOST_TIMES = 10.0
MOST_BYTES = 4.0
"""Bounds: times the plain run, and bytes for each byte of memory."""

_MEMORIES = (
    chip.TILES * (chip.NARROW_BYTES + chip.WIDE_ROWS * chip.ROW_BYTES + 4 * chip.SCALE_BIAS_WORDS)
    + 4 * chip.SCALAR_MEMORY_WORDS
    + chip.ACTIVATION_UNITS * chip.ACTIVATION_UNIT_BYTES
    + chip.PARAMETER_UNITS * chip.PARAMETER_UNIT_BYTES
)


def seconds_of(model: BoundModel, repeat: int, *, hazards: bool) -> tuple[float, int]:
    """Processor seconds of an inference, and how many hazards there are."""
    device = Device(accelerator=Accelerator(hazards=hazards))
    session = Session(model, device=device, lifts=False)
    (inputs,) = choose_inputs(None, model.ports, seed=0, runs=1)
    times = []
    session.infer(inputs)
    for _ in range(repeat):
        session.reset_states()
        begin = time.process_time()
        found = session.infer(inputs).result.hazards
        times.append(time.process_time() - begin)
    return min(times), len(found)


def files_of(named: Sequence[Path], samples: str) -> list[Path]:
    """The files that are measured."""
    if named:
        return list(named)
    sample(samples)
    corpus = os.environ.get("DARWINN_CORPUS")
    found = sorted(Path(samples).glob("*_edgetpu.tflite"))
    return found + (sorted(Path(corpus, "darwinn").glob("*_edgetpu.tflite")) if corpus else [])


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("files", nargs="*", type=existing_file, metavar="FILE")
    options.add_argument("--repeat", type=positive, default=3, metavar="N")
    options.add_argument("--json", action="store_true")
    asked = options.parse_args(arguments)
    compile_kernels()
    compile_kernels(hazards=True)
    rows = []
    with tempfile.TemporaryDirectory() as samples:
        for path in files_of(asked.files, samples):
            for model in open_models(path):
                plain, _ = seconds_of(model, asked.repeat, hazards=False)
                checked, found = seconds_of(model, asked.repeat, hazards=True)
                rows.append((path.name, plain, checked, checked / plain, found))
                if not asked.json:
                    print(
                        f"{path.name:60} {plain:8.3f} s {checked:8.3f} s "
                        f"{checked / plain:5.1f} times  {found} hazards",
                        flush=True,
                    )
    most = max(row[3] for row in rows)
    per_byte = Clocks.dtype.itemsize / _MEMORIES
    if asked.json:
        names = ("file", "plain_seconds", "checked_seconds", "times", "hazards")
        told = [dict(zip(names, row, strict=True)) for row in rows]
        print(json.dumps({"machine": machine(), "bytes_a_byte": per_byte, "rows": told}, indent=2))
    else:
        print(machine())
        print(f"at most {most:.1f} times the plain run (bound {MOST_TIMES:.0f})")
        print(
            f"{Clocks.dtype.itemsize / 1e6:.1f} MB beside {_MEMORIES / 1e6:.1f} MB of memories: "
            f"{per_byte:.2f} bytes a byte (bound {MOST_BYTES:.0f})"
        )
    return int(most > MOST_TIMES or per_byte > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
