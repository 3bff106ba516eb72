"""Cycles per second of the harness under cocotb, against a plain C++ main that drives the same RTL.

    python -m benchmarks.rtl [--mebibytes N] [--idle CYCLES] [--repeat N]

Both are compiled with the same options and work on memory in C++. Seconds are those of the
processor, best of N, taken in turns. Exits with 1 if the harness does not reach half of the plain
main's speed, on a DMA workload or when only the clock runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from darwinn_rtl import toolchain
from darwinn_rtl.build import (
    VERILATOR_ARGUMENTS,
    build_root,
    design_sources,
    search_arguments,
    simulate,
)
from darwinn_rtl.dma.descriptor_model import Descriptor
from darwinn_rtl.dma.runs import FOLDER_VARIABLE, play, workload_design
from darwinn_rtl.dma.workload import DEFAULT_WINDOW, Workload
from darwinn_rtl.dma.workload_playing import IDLE_VARIABLE
from darwinn_rtl.source_files import source
from darwinn_sim.isa.codes import DescriptorTag

from benchmarks.common import machine, positive, require_rtl_toolchain
from benchmarks.figures import keep_figures

SHARE = 1 / 2
"""Least share of the plain main's speed."""

DESCRIPTOR_BYTES = 1 << 16


@dataclass(frozen=True)
class Speed:
    """Cycles per processor second, with a DMA workload and without anything to do."""

    busy: float
    idle: float


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


def plain_main() -> Path:
    """Build the plain main; return its path."""
    toolchain.use_wheel_programs()
    design = workload_design()
    folder = build_root() / f"plain-{design.key}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "plain"
    command = [
        *("verilator", "--exe", *VERILATOR_ARGUMENTS),
        *("--Mdir", str(folder / "verilated"), "--top-module", design.top, "-o", str(path)),
        *search_arguments(),
        *(f"-G{name}={value}" for name, value in design.parameters.items()),
        *map(str, design_sources(design, folder)),
        *(str(source("workload.cpp")), str(Path(__file__).with_name("rtl_main.cpp"))),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the plain main cannot be built:\n{done.stdout}{done.stderr}")
    return path


def plain_speed(program: Path, chosen: Workload, idle: int, work: Path) -> Speed:
    """One run of the plain main."""
    table = work / "descriptors"
    table.write_bytes(chosen.table().tobytes())
    sizes = (len(chosen.descriptors), len(chosen.regions[0]), len(chosen.output), idle)
    arguments = [str(program), str(table), *map(str, sizes)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    busy, busy_seconds, _, idle_seconds = map(float, done.stdout.split())
    return Speed(busy / busy_seconds, idle / idle_seconds)


def harness_speed(chosen: Workload, idle: int, work: Path) -> Speed:
    """One run under cocotb."""
    found = play([chosen], work, seed=1)[0]
    simulate(
        workload_design(),
        "darwinn_rtl.dma.workload_playing",
        "idle",
        seed=1,
        work=work,
        environment={FOLDER_VARIABLE: str(work), IDLE_VARIABLE: str(idle)},
    )
    idle_seconds = float((work / "idle").read_text())
    return Speed(found.cycles / found.seconds, idle / idle_seconds)


def rows(plain: Speed, harness: Speed) -> Iterator[str]:
    """The table."""
    yield f"{'':<16} {'plain C++':>12} {'harness':>12} {'share':>8}   bound"
    for name, of_plain, of_harness in (
        ("DMA workload", plain.busy, harness.busy),
        ("idle clock", plain.idle, harness.idle),
    ):
        yield (
            f"{name:<16} {of_plain / 1e6:>12.2f} {of_harness / 1e6:>12.2f} "
            f"{'1/%.1f' % (of_plain / of_harness):>8}   1/{1 / SHARE:.0f} of the plain main"
        )


def best(speeds: list[Speed]) -> Speed:
    return Speed(max(s.busy for s in speeds), max(s.idle for s in speeds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mebibytes", type=positive, default=3, metavar="N", help="of the workload"
    )
    parser.add_argument("--idle", type=positive, default=2_000_000, metavar="CYCLES")
    parser.add_argument("--repeat", type=positive, default=3, metavar="N")
    options = parser.parse_args()
    require_rtl_toolchain()
    chosen = workload(options.mebibytes << 20)
    program = plain_main()
    plain, harness = [], []
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            plain.append(plain_speed(program, chosen, options.idle, Path(folder)))
            harness.append(harness_speed(chosen, options.idle, Path(folder)))
    print(machine())
    print("million cycles per processor second, best of", options.repeat)
    most, reached = best(plain), best(harness)
    print("\n".join(rows(most, reached)))
    keep_figures(
        {
            "DMA workload, Mcycle/s": reached.busy / 1e6,
            "idle clock, Mcycle/s": reached.idle / 1e6,
        }
    )
    return int(reached.busy < SHARE * most.busy or reached.idle < SHARE * most.idle)


if __name__ == "__main__":
    sys.exit(main())
