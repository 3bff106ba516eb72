"""DMA hints that send more scratch than there is: found in the file, without running it.

The compiler merges transfers that are neighbours in scratch memory, also where one goes to the chip
and the next one comes from it. A host that goes by hints then sends bytes that the chip has yet to
write. The run itself shows the same (``dma_check``), by another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from darwinn_formats.darwinn import Description, DmaDescriptorHint, Executable, load
from darwinn_formats.darwinn.schema import Direction
from darwinn_formats.errors import FormatError

Span = tuple[int, int]


@dataclass(frozen=True)
class SentTooEarly:
    """A hint that sends ``size`` bytes of scratch, of which ``unwritten`` are written by no hint
    before it."""

    hint: int
    size: int
    unwritten: int

    def __str__(self) -> str:
        return (
            f"DMA hint {self.hint} sends {self.size:,} bytes of scratch, of which the chip has yet "
            f"to write {self.unwritten:,} (transfers of both directions in one hint): a host that "
            "goes by hints, as the vendor's driver by USB, stops there; by PCIe the model runs"
        )


def sent_too_early(executable: Executable) -> SentTooEarly | None:
    """The first hint of an executable that sends scratch which nothing has written."""
    written: list[Span] = []
    for number, hint in enumerate(executable.dma_hints.hints):
        what = hint.any_hint
        if not isinstance(what, DmaDescriptorHint):
            continue
        if what.meta.desc is not Description.BASE_ADDRESS_SCRATCH:
            continue
        span = (what.offset_in_bytes, what.offset_in_bytes + what.size_in_bytes)
        if hint.direction is Direction.OUTFEED:
            written.append(span)
            continue
        left = [span]
        for each in written:
            left = [rest for one in left for rest in _without(one, each)]
        if left:
            unwritten = sum(end - begin for begin, end in left)
            return SentTooEarly(number, what.size_in_bytes, unwritten)
    return None


def _without(span: Span, taken: Span) -> list[Span]:
    """What is left of a span without another one."""
    pieces = [(span[0], min(span[1], taken[0])), (max(span[0], taken[1]), span[1])]
    return [(begin, end) for begin, end in pieces if begin < end]


def warnings_of(path: Path) -> list[str]:
    """What is to be said of a file before a program gives it to a USB device; often nothing."""
    try:
        executables = load(path).executables if path.suffix == ".tflite" else ()
    except (FormatError, OSError, ValueError):
        return []
    found = [each for each in map(sent_too_early, executables) if each is not None]
    return [f"{path.name}: {each}" for each in found]
