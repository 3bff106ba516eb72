"""Builder of instruction layouts: the groups of fields that instructions share, in encoding order.

Where a group stands follows from the widths before it, so the table states no offset that the
widths already imply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from darwinn_sim.isa.codes import ScalarFlag, TileFlag
from darwinn_sim.isa.fields import (
    Field,
    Instruction,
    Signal,
    Traversal,
    interleave,
    place,
    read,
)

_LOOP = """
    {name}_stride {step}    int  Number that the address generator adds when the loop advances: its
                                 step minus the travel (step * limit) of the moving loops
                                 inside it; innermost loop first. [high strides]
    {name}_limit  {counter} uint Iterations of the loop, minus 1. [high simulation]
"""
_TRAVERSAL = """
    {name}_mask            {loops}    mask Loops that move the address. [high strides]
    {name}_double_loop     {selector} uint Loop whose iterations alternate between two buffers; 0:
                                           every element does. [high simulation]
    {name}_double_offset   {counter}  uint Distance from the first buffer to the second; 0: single
                                           buffer. [high simulation]
    {name}_double_start    1          flag Start in the second buffer. [low public_name]
    {name}_alternate_limit {counter}  uint Limit of loop 0 (of loop 1 in a transposing
                                           NarrowToWide) during the last iteration of the alternate
                                           loop. [high alternates]
    {name}_alternate_loop  {selector} uint Loop during whose last iteration the alternate limit
                                           applies; 0: none. [high alternates]
    {name}_alternate_reset {counter}  int  step * (limit - alternate limit): the travel that the
                                           shorter loop lacks, modulo the width of the field.
                                           [high alternates]
"""
_PROLOGUE = """
    {name}_prologue_enable       1          flag A prologue precedes the loops. [high rows]
    {name}_prologue_loop         {selector} uint The prologue runs before each start of the group
                                                 of loops 0 to this one. [high rows]
    {name}_prologue_base         {base}     uint First address of the prologue. [high simulation]
    {name}_prologue_inner_limit  {counter}  uint Elements of one prologue, minus 1. [high rows]
    {name}_prologue_outer_limit  {counter}  uint Last address that the prologue's base steps to
                                                 before it wraps. [medium simulation]
    {name}_prologue_outer_stride {counter}  uint Step of the prologue's base from one prologue to
                                                 the next. [medium simulation]
"""
_PRODUCER = """
    {name}_increment 1       flag The producer is on: it adds 1 to {signals}. [high sync]
    {name}_depth     {depth} uint The producer counts once per iteration of the loops from this one
                                  outwards (0: every element). [high sync]
"""
_WATCHER = """
    watcher_flag     {flag}  uint Sync flag that is watched. ({codes}) [high sync]
    watcher_depth    {depth} uint The wait precedes each iteration of the loops from this one
                                  outwards. [high sync]
    watcher_expected 16      int  Value that the flag must have reached before the first iteration.
                                  [high sync]
    watcher_stride   16      uint Added to the expected value from one wait to the next.
                                  [high sync]
    watcher_valid    1       flag The watcher is on; a watcher that is off has 0 in all its fields.
                                  [high: 281,055 watchers without exception]
"""
_WATCHER_SIDE = """
    watcher_side 1 flag Traversal that waits. (WatcherSide) [high sync]
"""


class Layout:
    """Collects the parts of one instruction in the order in which they are encoded."""

    def __init__(
        self, opcode: int, name: str, bundles: int, unit: str, header: Sequence[Field]
    ) -> None:
        self.opcode = opcode
        self._name = name
        self._bundles = bundles
        self._unit = unit
        self._summary = ""
        self._fields: list[Field] = list(header)
        self._end = header[-1].end
        self._traversals: list[Traversal] = []
        self._producers: list[str] = []
        self._watchers = 0
        self._signals: list[Signal] = []

    def summary(self, text: str) -> Layout:
        """Say what the instruction does, in a sentence or a few."""
        self._summary = text
        return self

    def at(self, offset: int) -> Layout:
        """Go on at bit ``offset``."""
        self._end = offset
        return self

    def fields(self, text: str) -> Layout:
        """Append the fields that ``text`` lists (:func:`darwinn_sim.isa.fields.read`)."""
        return self._append(place(read(text), self._end))

    def traversal(
        self,
        name: str,
        unit: str,
        *,
        loops: int,
        base: int,
        counter: int,
        prologue: bool = False,
    ) -> Layout:
        """Append an address generator: ``base`` and ``counter`` are the widths of its values."""
        widths = {
            "name": name,
            "loops": loops,
            "selector": _selector(loops),
            "base": base,
            "counter": counter,
            "step": counter + 1,
        }
        first = len(self._fields)
        self.fields(f"{name}_base {base} uint First address, in {unit}. [high simulation]")
        self._append(interleave(loops, read(_LOOP.format_map(widths)), self._end))
        self.fields(_TRAVERSAL.format_map(widths))
        if prologue:
            self.fields(_PROLOGUE.format_map(widths))
        names = tuple(field.name for field in self._fields[first:])
        self._traversals.append(Traversal(name, loops, prologue, unit, names))
        return self

    def producer(self, name: str, loops: int, *signals: Signal) -> Layout:
        """Append a producer, which gives ``signals``."""
        depth = loops.bit_length()
        self.fields(_PRODUCER.format(name=name, depth=depth, signals=_signal_text(signals)))
        self._producers.append(name)
        self._signals += [replace(signal, producer=name) for signal in signals]
        return self

    def watcher(
        self, count: int, loops: int, *, flags: type[TileFlag | ScalarFlag] = TileFlag, side: bool
    ) -> Layout:
        """Append ``count`` watchers; ``side`` if each says which of two traversals waits."""
        text = _WATCHER + (_WATCHER_SIDE if side else "")
        selector = _selector(len(flags))
        text = text.format(flag=selector, codes=flags.__name__, depth=_selector(loops))
        self._watchers = count
        return self._append(interleave(count, read(text), self._end))

    def build(self) -> Instruction:
        """Return the instruction that was laid out."""
        return Instruction(
            self.opcode,
            self._name,
            self._bundles,
            self._unit,
            self._summary,
            tuple(sorted(self._fields, key=lambda field: field.offset)),
            tuple(self._traversals),
            tuple(self._producers),
            self._watchers,
            tuple(self._signals),
        )

    def _append(self, placed: Sequence[Field]) -> Layout:
        self._fields += placed
        self._end = placed[-1].end
        return self


def _selector(count: int) -> int:
    """Bits that select one of ``count`` things."""
    return max(1, (count - 1).bit_length())


def _signal_text(signals: Iterable[Signal]) -> str:
    """Say which flags a producer increments, for the field's meaning."""
    texts = []
    for signal in signals:
        condition = f" if {signal.field} is {signal.value}" if signal.field else ""
        owner = {"tile": "", "all tiles": " of all tiles", "scalar core": " of the scalar core"}
        texts.append(f"flag {signal.flag:d} ({signal.flag.label}){owner[signal.scope]}{condition}")
    return ", ".join(texts)
