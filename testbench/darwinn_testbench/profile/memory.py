"""What lies where: the host's buffers of an inference, and the memories of a tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from darwinn_formats.darwinn import Executable
from darwinn_sim import chip
from darwinn_sim.analysis.narrow_usage import highest_address, used_narrow_bytes
from darwinn_sim.host.buffers import layer_bytes
from darwinn_sim.machine.lowering import LoweredProgram, lower_executable

from darwinn_testbench.profile.touched import written_rows


@dataclass(frozen=True)
class Region:
    """A part of a memory: ``start`` and ``size`` in bytes."""

    memory: str
    name: str
    start: int
    size: int


@dataclass(frozen=True)
class Used:
    """Bytes of a tile's two memories that an inference takes, if all its tiles did the same.

    ``narrow`` reaches to the highest byte that an instruction can touch, ``wide`` counts the rows
    that are written, by the executable that caches parameters as well.
    """

    narrow: int
    wide: int


def used(program: LoweredProgram, caching: Executable | None) -> Used:
    """How much of the memories an inference takes, its cached parameters included."""
    cached = set() if caching is None else written_rows(lower_executable(caching))
    rows = cached | written_rows(program)
    return Used(used_narrow_bytes(program), len(rows) * chip.ROW_BYTES)


HOST, NARROW, WIDE = "host memory", "narrow memory of a tile", "wide memory of a tile"


def regions(
    inference: Executable, program: LoweredProgram, caching: Executable | None
) -> tuple[Region, ...]:
    """The parts of each memory; buffers of the host are shown one after another.

    Of the tiles' memories the extent is shown that instructions can touch, on any tile.
    """
    return (
        *_one_after_another(HOST, _host_buffers(inference)),
        *_one_after_another(NARROW, _narrow(program)),
        *_one_after_another(WIDE, _wide(program, caching)),
    )


def _one_after_another(memory: str, sizes: Iterator[tuple[str, int]]) -> Iterator[Region]:
    start = 0
    for name, size in sizes:
        if size:
            yield Region(memory, name, start, size)
            start += size


def _host_buffers(executable: Executable) -> Iterator[tuple[str, int]]:
    batch = max(1, executable.batch_size)
    for number, chunk in enumerate(executable.instruction_bitstreams):
        yield f"instructions {number}", len(chunk.bitstream)
    for direction, layers in (
        ("input", executable.input_layers),
        ("output", executable.output_layers),
    ):
        for layer in layers:
            yield f"{direction} {layer.name}", layer_bytes(layer) * batch
    yield "parameters, streamed", len(executable.parameters)
    yield "scratch", executable.scratch_size_bytes


def _narrow(program: LoweredProgram) -> Iterator[tuple[str, int]]:
    used = used_narrow_bytes(program)
    yield "used", used
    yield "free", chip.NARROW_BYTES - used


def _wide(program: LoweredProgram, caching: Executable | None) -> Iterator[tuple[str, int]]:
    cached = 0
    if caching is not None:
        cached = _written_rows(lower_executable(caching))
    used = max(cached, _written_rows(program))
    yield "cached parameters", cached * chip.ROW_BYTES
    yield "rows written in the inference", (used - cached) * chip.ROW_BYTES
    yield "free", (chip.WIDE_ROWS - used) * chip.ROW_BYTES


def _written_rows(program: LoweredProgram) -> int:
    """The row after the highest that the program writes from the ring or from narrow memory."""
    tables = program.tables
    walks = (*tables.ring_consumer["wide_write"], *tables.narrow_to_wide["wide_write"])
    return max((highest_address(walk) + 1 for walk in walks if walk["loops"]), default=0)
