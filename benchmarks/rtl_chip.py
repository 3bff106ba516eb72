"""Cycles per second of the whole chip in RTL, as the fast player drives it.

    python -m benchmarks.rtl_chip [--repeat N] [--idle CYCLES] [MODEL...]

The first line is the plain C++ main of the chip: its loop of clock edges alone, while nothing is
handed over. The others are programs: parameters once, then inferences, with everything around them
(the model's scalar core and driver, in Python). A MODEL is a file, or the name of a compiled one of
the corpus; without any, the sample of a convolution and three of the corpus. Best of N by the
processor; parameters are loaded once, with all that Python does for the first time. Exits with 1 if
an inference reaches less than ``SHARE`` of the first line's speed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from darwinn_rtl.chip.engine import RtlAccelerator
from darwinn_rtl.chip.player import ChipPlayer
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Device, Session
from darwinn_testbench.compiler import sample

from benchmarks.common import (
    compiled,
    machine_and_load,
    model_file,
    positive,
    require_rtl_toolchain,
)

SHARE = 0.06
"""Least share of the clock's plain loop that an inference reaches; 0.09 to 0.37 are measured."""

SAMPLE = "convolution"
MODELS = ("dense_256", "looming_64x64_3x3", "mobilenet_v1_0.25_128_quant")


@dataclass(frozen=True)
class Speed:
    """Cycles, and how long they took."""

    cycles: int
    wall: float
    processor: float

    @property
    def rate(self) -> float:
        """Cycles per processor second."""
        return self.cycles / self.processor

    def line(self, name: str) -> str:
        """A row of the table."""
        return (
            f"{name:<44} {self.cycles:>10,} {self.cycles / self.wall / 1e3:>10.1f} "
            f"{self.rate / 1e3:>10.1f}"
        )


def measured(player: ChipPlayer, action: Callable[[], object], repeat: int) -> Speed:
    """The best of some calls, by the processor."""
    runs = []
    for _ in range(repeat):
        cycle, wall, processor = player.cycle, time.perf_counter(), time.process_time()
        action()
        runs.append(
            Speed(
                player.cycle - cycle,
                time.perf_counter() - wall,
                time.process_time() - processor,
            )
        )
    return max(runs, key=lambda run: run.rate)


def program_speeds(path: Path, repeat: int) -> Iterator[tuple[str, Speed]]:
    """Of the parameters of a compiled model, if it has any, and of its inference."""
    (model,) = open_models(path)
    accelerator = RtlAccelerator()
    player = accelerator.rtl.player
    session = Session(model, device=Device(accelerator=accelerator))
    if model.compiled.caching is not None:
        yield "parameters", measured(player, session.load_parameters, 1)
    (tensors,) = random_inputs([item.port for item in model.inputs], 0, 1)
    yield "inference", measured(player, lambda: session.infer(tensors), repeat)
    accelerator.close()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--repeat", type=positive, default=3, metavar="N")
    parser.add_argument("--idle", type=positive, default=1_000_000, metavar="CYCLES")
    options = parser.parse_args()
    require_rtl_toolchain()
    print(machine_and_load())
    print(f"{'thousand cycles per second':<44} {'cycles':>10} {'wall':>10} {'processor':>10}")
    player = ChipPlayer()
    idle = measured(player, lambda: player.run(options.idle), options.repeat)
    print(idle.line("idle clock"))
    player.close()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        sample(Path(folder))
        for path in [model_file(each) for each in options.models] or [
            Path(folder) / f"{SAMPLE}_edgetpu.tflite",
            *(compiled(name) for name in MODELS),
        ]:
            for what, speed in program_speeds(path, options.repeat):
                name = path.stem.removesuffix("_edgetpu")
                enough = what == "parameters" or speed.rate >= SHARE * idle.rate
                below = "" if enough else f"  BELOW {SHARE * idle.rate / 1e3:.1f}"
                print(f"{speed.line(f'{name}, {what}')}{below}", flush=True)
                good &= enough
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
