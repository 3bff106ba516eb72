"""Bytes that cross between the CPU and the chip at each inference, and the time on the host link.

The time is the number of bytes divided by the rate of the host's description (docs/timing.md), for
each transfer by itself. The event model gives the overlap of transfers and computation (``darwinn
profile``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from darwinn_sim import chip, timing
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.timing import HostLink, TimedTransfer

from darwinn_testbench.chip.cycles import CyclesRow, time_executable
from darwinn_testbench.chip.model import BoundLayer, BoundModel
from darwinn_testbench.chip.scratch_hints import sent_too_early
from darwinn_testbench.explain.graph import Graph, Node
from darwinn_testbench.report.result import PYTHON_ONLY

CACHE_BYTES = chip.TILES * chip.WIDE_ROWS * chip.ROW_BYTES
"""Bytes of the memory that parameters are cached in."""


@dataclass(frozen=True)
class Crossing:
    """Bytes that cross the host link at each inference, in one direction.

    ``what`` is ``input``, ``output``, ``parameters``, ``instructions`` or ``scratch``; ``tensor``
    is its name where it is one. ``milliseconds`` are those of the host's description.
    """

    piece: int
    what: str
    direction: str
    tensor: str
    bytes: int
    milliseconds: float


@dataclass(frozen=True)
class Piece:
    """A part of the network that the chip computes by one request.

    ``cached`` are bytes of parameters that stay on the chip, ``streamed`` those that come again at
    each inference. ``milliseconds`` are those of an inference of the event model, the host's fixed
    cost included; None where nothing was compiled, or where it cannot be timed for the reason in
    ``message``, which also says if a host that goes by DMA hints would go wrong.
    ``fixed_milliseconds`` are the host's cost of a request.
    """

    number: int
    cached: int
    streamed: int
    crossings: tuple[Crossing, ...]
    milliseconds: float | None = None
    fixed_milliseconds: float = 0.0
    message: str = ""
    timed: CyclesRow | None = field(default=None, repr=False, metadata=PYTHON_ONLY)


def link_milliseconds(link: HostLink | None, size: int, direction: str) -> float:
    """How long the link takes for so many bytes; nothing if it is of endless speed."""
    if link is None:
        return 0.0
    rate = link.bytes_per_second_in if direction == "in" else link.bytes_per_second_out
    return 1e3 * size / rate.value


def compiled_piece(
    number: int,
    bound: BoundModel,
    description: timing.ChipDescription,
    link: HostLink | None,
    assumptions: bool,
) -> Piece:
    """What a compiled model moves and holds, with the event model's time of an inference."""
    executable, caching = bound.compiled.inference, bound.compiled.caching
    row = time_executable(executable, f"piece {number}", description, link, assumptions)
    timed = row.timing
    streamed = (
        len(executable.parameters)
        if timed is None
        else _moved(timed.transfers, TransferKind.PARAMETER, TransferDirection.INFEED)
    )
    instructions = sum(len(each.bitstream) for each in executable.instruction_bitstreams)
    transfers = () if timed is None else timed.transfers
    scratch = {
        direction: _moved(transfers, TransferKind.SCRATCH, direction)
        for direction in TransferDirection
    }
    sizes = [("input", "in", each.port.name, _bytes(each)) for each in bound.inputs] + [
        ("parameters", "in", "", streamed),
        ("instructions", "in", "", instructions),
        ("scratch", "in", "", scratch[TransferDirection.INFEED]),
        ("scratch", "out", "", scratch[TransferDirection.OUTFEED]),
        *(("output", "out", each.port.name, _bytes(each)) for each in bound.outputs),
    ]
    return Piece(
        number,
        0 if caching is None else len(caching.parameters),
        streamed,
        _crossings(number, sizes, link),
        None if timed is None else row.milliseconds,
        1e3 * link.fixed_seconds.value if link else 0.0,
        "; ".join(filter(None, (row.message, str(sent_too_early(executable) or "")))),
        row,
    )


def predicted_piece(
    number: int, graph: Graph, on_chip: Sequence[Node], link: HostLink | None
) -> Piece:
    """What a piece of these operators would move and hold, by the sizes of its tensors.

    Parameters are those of the file; the compiler adds to them what its layout needs.
    """
    mine = {node.index for node in on_chip}
    given = {value.index for node in on_chip for value in node.outputs}
    wanted = {value.index for node in graph.nodes if node.index not in mine for value in node.data}
    read = {value.index for node in on_chip for value in node.data}
    inputs = [graph.values[k] for k in sorted(read - given)]
    outputs = [graph.values[k] for k in sorted(given & (wanted | set(graph.outputs)))]
    parameters = {
        value.index: value.bytes for node in on_chip for value in node.given if value.constant
    }
    cached = sum(parameters.values())
    streamed = max(cached - CACHE_BYTES, 0)
    sizes = [
        *(("input", "in", each.name, each.bytes) for each in inputs),
        ("parameters", "in", "", streamed),
        *(("output", "out", each.name, each.bytes) for each in outputs),
    ]
    fixed = 1e3 * link.fixed_seconds.value if link else 0.0
    crossings = _crossings(number, sizes, link)
    return Piece(number, cached - streamed, streamed, crossings, fixed_milliseconds=fixed)


def _crossings(
    piece: int, sizes: Sequence[tuple[str, str, str, int]], link: HostLink | None
) -> tuple[Crossing, ...]:
    return tuple(
        Crossing(piece, what, direction, tensor, size, link_milliseconds(link, size, direction))
        for what, direction, tensor, size in sizes
        if size
    )


def _bytes(layer: BoundLayer) -> int:
    """Bytes of an input or output at each inference, as the chip lays it out."""
    each = layer.layer
    return each.size_bytes * max(each.execution_count_per_inference, 1) * layer.batch


def _moved(
    transfers: Sequence[TimedTransfer], kind: TransferKind, direction: TransferDirection
) -> int:
    return sum(each.size for each in transfers if (each.kind, each.direction) == (kind, direction))
