"""Waves of DMA programs from both sides: the RTL's dump, and the same signals from the timing
model: ``python -m darwinn_rtl.dma.waves FILES`` writes both, to be laid side by side.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from darwinn_sim.isa.codes import DescriptorTag

from darwinn_rtl import toolchain
from darwinn_rtl.dma.player import WorkloadPlayer, workload_design
from darwinn_rtl.dma.runs import HARNESS, STALLED, executables, recorded
from darwinn_rtl.dma.timing import READ_QUEUES, DmaStep, DmaTiming
from darwinn_rtl.dma.workload import Workload, stall_pattern
from darwinn_rtl.dma.workload_check import predicted
from darwinn_rtl.waves import write_save_file

SCOPE = "harness"
"""Scope of the signals, in the RTL's dump and in the model's."""

PERIOD_PS = 2
"""Of the clock in both; only cycles count."""

Interval = tuple[int, int]
"""First and last cycle of a stretch in which a bit is 1."""

STREAMS = ("dma2core_instruction", "dma2input_activation", "dma2input_parameter")
"""Read streams, in the order of the descriptors' tags."""

SIGNALS = {
    "core2dma_descriptor_valid": 1,
    "dma2monitor_start_valid": 1,
    "dma2monitor_done_valid": READ_QUEUES + 2,
    "dma2interrupts_raise_valid": 1,
    **{f"{stream}_valid": 1 for stream in STREAMS},
    "m_axi_read.arvalid": 1,
    "m_axi_read.rvalid": 1,
    "m_axi_write.awvalid": 1,
    "m_axi_write.wvalid": 1,
    "m_axi_write.bvalid": 1,
}
"""Signals that the model predicts in every cycle, with their widths in bits."""

_WRITER_BIT, _FENCE_BIT = READ_QUEUES, READ_QUEUES + 1


def _bits(steps: Sequence[DmaStep], timing: DmaTiming) -> Iterator[tuple[str, int, Interval]]:
    """Signal, bit, and a stretch in which it is 1, in any order."""
    for first, last in timing.offered:
        yield "core2dma_descriptor_valid", 0, (first, last)
    for step, begin, end in zip(steps, timing.begins, timing.ends, strict=True):
        yield "dma2monitor_start_valid", 0, (begin, begin)
        if step.refused:
            continue
        bit = _FENCE_BIT if step.fence else min(step.tag, _WRITER_BIT)
        yield "dma2monitor_done_valid", bit, (end, end)
        if not step.fence and step.tag > DescriptorTag.OUTPUT:
            yield "dma2interrupts_raise_valid", 0, (end, end)
    for burst in timing.bursts:
        asked = (burst.decided + 1, burst.accepted)
        if burst.tag == DescriptorTag.OUTPUT:
            yield "m_axi_write.awvalid", 0, asked
            yield "m_axi_write.wvalid", 0, (burst.decided + 1, burst.words[-1])
            yield "m_axi_write.bvalid", 0, (burst.answered, burst.answered)
        else:
            yield "m_axi_read.arvalid", 0, asked
            for word in burst.words:
                yield "m_axi_read.rvalid", 0, (word, word)
    for tag, leaves in enumerate(timing.leaves):
        words = chain.from_iterable(burst.words for burst in timing.bursts if burst.tag == tag)
        for word, leave in zip(words, leaves, strict=True):
            yield f"{STREAMS[tag]}_valid", 0, (word + 1, leave)


def changes(steps: Sequence[DmaStep], timing: DmaTiming) -> Iterator[tuple[int, str, int]]:
    """Cycle, signal and new value of every change, in order of time."""
    edges: dict[tuple[int, str], dict[int, int]] = {}
    for name, bit, (first, last) in _bits(steps, timing):
        for cycle, step in ((first, 1), (last + 1, -1)):
            at = edges.setdefault((cycle, name), {})
            at[bit] = at.get(bit, 0) + step
    levels = {name: [0] * width for name, width in SIGNALS.items()}
    for (cycle, name), steps_at in sorted(edges.items()):
        before = _value(levels[name])
        for bit, step in steps_at.items():
            levels[name][bit] += step
        after = _value(levels[name])
        if after != before:
            yield cycle, name, after


def _value(levels: Iterable[int]) -> int:
    return sum(1 << bit for bit, level in enumerate(levels) if level)


def _scope_and_name(signal: str) -> tuple[str, str]:
    scope, _, name = f"{SCOPE}.{signal}".rpartition(".")
    return scope, name


def write_model(path: Path, workload: Workload, begun: int) -> None:
    """Write the model's waves of ``workload``, whose cycle 0 begins at ``begun`` ps."""
    from vcd import VCDWriter

    timing = predicted(workload, HARNESS)
    with path.open("w") as file, VCDWriter(file, timescale="1 ps", date="") as writer:
        variables = {
            name: writer.register_var(*_scope_and_name(name), "wire", size=width, init=0)
            for name, width in SIGNALS.items()
        }
        for cycle, name, value in changes(workload.steps(), timing):
            writer.change(variables[name], begun + PERIOD_PS * cycle, value)
        writer.close(begun + PERIOD_PS * (timing.cycles + 2))
    write_save_file(path, SCOPE)


def write_waves(workload: Workload, folder: Path, name: str, *, seed: int = 1) -> tuple[Path, Path]:
    """Perform ``workload`` with waves; return the RTL's dump and the model's."""
    folder.mkdir(parents=True, exist_ok=True)
    rtl, model = folder / f"{name}-rtl.fst", folder / f"{name}-model.vcd"
    player = WorkloadPlayer(seed, workload_design(waves=True), waves=rtl)
    result = player.perform(workload)
    player.close()
    write_model(model, workload, result.begun)
    return rtl, model


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the waves of each executable; 2 if the toolchain is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--output", type=Path, default=Path("build/waves"), metavar="FOLDER")
    parser.add_argument("--stalled", action="store_true", help="with back-pressure")
    options = parser.parse_args(arguments)
    lines = toolchain.missing(waves=True)
    if lines:
        print("no RTL toolchain: " + "; ".join(lines), file=sys.stderr)
        return 2
    for path in options.files:
        for name, executable in executables(path):
            workload, _ = recorded(executable, seed=1)
            if options.stalled:
                workload.stalls = stall_pattern(1, STALLED)
            for written in write_waves(workload, options.output, name.replace("/", "-")):
                print(f"{written} (groups: {written.with_suffix('.gtkw').name})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
