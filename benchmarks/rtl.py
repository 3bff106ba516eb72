"""Cycles per second of the harness: of its player, on a DMA workload and idle, and under cocotb.

    python -m benchmarks.rtl [--mebibytes N] [--idle CYCLES] [--repeat N]

The player is a plain C++ loop of clock edges. Both are compiled with the same options and have
their memory in C++. Seconds are those of the processor, best of N, taken in turns. Exits with 1 if
an idle clock under cocotb does not reach half of its speed in the player.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from darwinn_rtl.build import simulate
from darwinn_rtl.dma.descriptor_model import Descriptor
from darwinn_rtl.dma.player import WorkloadPlayer, workload_design
from darwinn_rtl.dma.workload import DEFAULT_WINDOW, Workload
from darwinn_sim.isa.codes import DescriptorTag

from benchmarks.common import machine, positive, require_rtl_toolchain
from benchmarks.figures import keep_figures

SHARE = 1 / 2
"""Least share of the player's speed that an idle clock reaches under cocotb."""

DESCRIPTOR_BYTES = 1 << 16


def workload(size: int) -> Workload:
    """Parameters, inputs and outputs of ``size`` bytes in total, in equal parts."""
    tags = (DescriptorTag.PARAMETERS, DescriptorTag.INPUT, DescriptorTag.OUTPUT)
    starts = range(0, size, DESCRIPTOR_BYTES)
    descriptors = [
        Descriptor(tags[n % len(tags)], DEFAULT_WINDOW.base + start, DESCRIPTOR_BYTES)
        for n, start in enumerate(starts)
    ]
    output = sum(d.size for d in descriptors if d.tag == DescriptorTag.OUTPUT)
    return Workload(descriptors, {0: bytes(size)}, bytes(output))


def busy_in_the_player(player: WorkloadPlayer, chosen: Workload) -> float:
    """Cycles per processor second."""
    found = player.perform(chosen)
    return found.cycles / found.seconds


def idle_in_the_player(player: WorkloadPlayer, cycles: int) -> float:
    """Cycles per processor second."""
    player.reset()
    begun = time.process_time()
    player.run(cycles)
    return cycles / (time.process_time() - begun)


def idle_under_cocotb(cycles: int) -> float:
    """Cycles per processor second."""
    from benchmarks.rtl_idle import CYCLES_VARIABLE, SECONDS_VARIABLE

    with tempfile.TemporaryDirectory() as folder:
        seconds = Path(folder) / "seconds"
        simulate(
            replace(workload_design(), c_sources=("host_memory.cpp",)),
            "benchmarks.rtl_idle",
            "idle",
            seed=1,
            work=Path(folder),
            environment={CYCLES_VARIABLE: str(cycles), SECONDS_VARIABLE: str(seconds)},
        )
        return cycles / float(seconds.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mebibytes", type=positive, default=3, metavar="N", help="of the workload"
    )
    parser.add_argument("--idle", type=positive, default=2_000_000, metavar="CYCLES")
    parser.add_argument("--repeat", type=positive, default=3, metavar="N")
    options = parser.parse_args()
    require_rtl_toolchain()
    chosen, player = workload(options.mebibytes << 20), WorkloadPlayer()
    speeds = [
        (
            busy_in_the_player(player, chosen),
            idle_in_the_player(player, options.idle),
            idle_under_cocotb(options.idle),
        )
        for _ in range(options.repeat)
    ]
    busy, idle, under_cocotb = (max(each) / 1e6 for each in zip(*speeds, strict=True))
    print(machine())
    print("million cycles per processor second, best of", options.repeat)
    print(f"{'':<16} {'player':>12} {'cocotb':>12} {'share':>8}   bound")
    print(f"{'DMA workload':<16} {busy:>12.2f}")
    share = f"1/{idle / under_cocotb:.1f}"
    print(
        f"{'idle clock':<16} {idle:>12.2f} {under_cocotb:>12.2f} {share:>8}   "
        f"1/{1 / SHARE:.0f} of the player"
    )
    keep_figures({"DMA workload, Mcycle/s": busy, "idle clock, Mcycle/s": under_cocotb})
    return int(under_cocotb < SHARE * idle)


if __name__ == "__main__":
    sys.exit(main())
