"""Builder of instruction layouts: the groups of fields that instructions share, in encoding order.

Where a group stands follows from the widths before it, so the table states no offset that the
widths already imply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from darwinn_sim.isa.codes import ScalarFlag, TileFlag, WatcherSide
from darwinn_sim.isa.fields import (
    Field,
    Instruction,
    Signal,
    Traversal,
    interleave,
    loop_selector_width,
    place,
)

SIMULATION = "byte-exact simulation of whole programs"
"""Evidence: outputs of simulated programs equal an independent oracle on every byte."""

_STRIDE_LAW = "172,514 traversals without exception"
_ALTERNATE_LAW = "14,320 traversals without exception"
_ROW_LAW = "row counts of 13,839 instructions"
_WATCHER_LAW = "whole programs run to their end with no flag forced"


class Layout:
    """Collects the parts of one instruction in the order in which they are encoded."""

    def __init__(self, header: Sequence[Field]) -> None:
        self._fields: list[Field] = list(header)
        self._traversals: list[Traversal] = []
        self._producers: list[str] = []
        self._watchers = 0
        self._signals: list[Signal] = []

    def plain(self, *fields: Field) -> Layout:
        """Append fields, one after another."""
        return self.at(self._end(), *fields)

    def at(self, offset: int, *fields: Field) -> Layout:
        """Append fields, one after another, from bit ``offset``."""
        self._fields += place(fields, offset)
        return self

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
        selector = loop_selector_width(loops)
        members = [
            Field("base", base, "uint", f"First address, in {unit}.", "high", SIMULATION),
            *interleave(loops, _loop_fields(counter), base),
            Field("mask", loops, "mask", "Loops that move the address.", "high", _STRIDE_LAW),
            *_double_buffer_fields(selector, counter),
            *_alternate_fields(selector, counter),
        ]
        if prologue:
            members += _prologue_fields(selector, base, counter)
        self._fields += _prefixed(name, members, self._end())
        self._traversals.append(Traversal(name, loops, prologue, unit))
        return self

    def producer(self, name: str, loops: int, *signals: Signal) -> Layout:
        """Append a producer, which gives ``signals``."""
        self.plain(
            Field(
                f"{name}_increment",
                1,
                "flag",
                f"The producer is on: it adds 1 to {_signal_text(signals)}.",
                "high",
                _WATCHER_LAW,
            ),
            Field(
                f"{name}_depth",
                loops.bit_length(),
                "uint",
                "The producer counts once per iteration of the loops from this one outwards "
                "(0: every element).",
                "high",
                _WATCHER_LAW,
            ),
        )
        self._producers.append(name)
        self._signals += [replace(signal, producer=name) for signal in signals]
        return self

    def watcher(
        self, count: int, loops: int, *, flags: type[TileFlag | ScalarFlag] = TileFlag, side: bool
    ) -> Layout:
        """Append ``count`` watchers; ``side`` if each says which of two traversals waits."""
        members = [
            Field(
                "watcher_flag",
                5 if flags is TileFlag else 4,
                "uint",
                "Sync flag that is watched.",
                "high",
                _WATCHER_LAW,
                codes=flags,
            ),
            Field(
                "watcher_depth",
                loop_selector_width(loops),
                "uint",
                "The wait precedes each iteration of the loops from this one outwards.",
                "high",
                _WATCHER_LAW,
            ),
            Field(
                "watcher_expected",
                16,
                "int",
                "Value that the flag must have reached before the first iteration.",
                "high",
                _WATCHER_LAW,
            ),
            Field(
                "watcher_stride",
                16,
                "uint",
                "Added to the expected value from one wait to the next.",
                "high",
                _WATCHER_LAW,
            ),
            Field(
                "watcher_valid",
                1,
                "flag",
                "The watcher is on; a watcher that is off has 0 in all its fields.",
                "high",
                "281,055 watchers without exception",
            ),
        ]
        if side:
            members.append(
                Field(
                    "watcher_side",
                    1,
                    "flag",
                    "Traversal that waits.",
                    "high",
                    _WATCHER_LAW,
                    codes=WatcherSide,
                )
            )
        self._fields += interleave(count, members, self._end())
        self._watchers = count
        return self

    def build(self, opcode: int, name: str, bundles: int, unit: str, summary: str) -> Instruction:
        """Return the instruction that was laid out."""
        return Instruction(
            opcode,
            name,
            bundles,
            unit,
            summary,
            tuple(sorted(self._fields, key=lambda field: field.offset)),
            tuple(self._traversals),
            tuple(self._producers),
            self._watchers,
            tuple(self._signals),
        )

    def _end(self) -> int:
        return max(field.end for field in self._fields)


def _loop_fields(counter: int) -> tuple[Field, ...]:
    return (
        Field(
            "stride",
            counter + 1,
            "int",
            "What the address generator adds when the loop advances: the step of the loop minus "
            "the travel (step * limit) of the moving loops inside it; innermost loop first.",
            "high",
            _STRIDE_LAW,
        ),
        Field("limit", counter, "uint", "Iterations of the loop, minus 1.", "high", SIMULATION),
    )


def _double_buffer_fields(selector: int, counter: int) -> tuple[Field, ...]:
    return (
        Field(
            "double_loop",
            selector,
            "uint",
            "Loop whose iterations alternate between two buffers; 0: every element does.",
            "high",
            SIMULATION,
        ),
        Field(
            "double_offset",
            counter,
            "uint",
            "Distance from the first buffer to the second; 0: single buffer.",
            "high",
            SIMULATION,
        ),
        Field(
            "double_start",
            1,
            "flag",
            "Start in the second buffer.",
            "low",
            "always 0 in every known program; name from public code",
        ),
    )


def _alternate_fields(selector: int, counter: int) -> tuple[Field, ...]:
    return (
        Field(
            "alternate_limit",
            counter,
            "uint",
            "Limit of loop 0 (of loop 1 in a transposing NarrowToWide) during the last iteration "
            "of the alternate loop.",
            "high",
            _ALTERNATE_LAW,
        ),
        Field(
            "alternate_loop",
            selector,
            "uint",
            "Loop on whose last iteration the alternate limit holds; 0: none.",
            "high",
            _ALTERNATE_LAW,
        ),
        Field(
            "alternate_reset",
            counter,
            "int",
            "step * (limit - alternate limit): the travel that the shorter loop lacks, modulo the "
            "width of the field.",
            "high",
            _ALTERNATE_LAW,
        ),
    )


def _prologue_fields(selector: int, base: int, counter: int) -> tuple[Field, ...]:
    return (
        Field("prologue_enable", 1, "flag", "A prologue precedes the loops.", "high", _ROW_LAW),
        Field(
            "prologue_loop",
            selector,
            "uint",
            "The prologue runs before each start of the group of loops 0 to this one.",
            "high",
            _ROW_LAW,
        ),
        Field("prologue_base", base, "uint", "First address of the prologue.", "high", SIMULATION),
        Field(
            "prologue_inner_limit",
            counter,
            "uint",
            "Elements of one prologue, minus 1.",
            "high",
            _ROW_LAW,
        ),
        Field(
            "prologue_outer_limit",
            counter,
            "uint",
            "Last address that the prologue's base steps to before it wraps.",
            "medium",
            SIMULATION,
        ),
        Field(
            "prologue_outer_stride",
            counter,
            "uint",
            "Step of the prologue's base from one prologue to the next.",
            "medium",
            SIMULATION,
        ),
    )


def _prefixed(name: str, members: Iterable[Field], start: int) -> list[Field]:
    """Place ``members`` from bit 0, then move them to ``start`` and put ``name`` before theirs."""
    return [
        replace(field, name=f"{name}_{field.name}", offset=start + field.offset)
        for field in place(members)
    ]


def _signal_text(signals: Iterable[Signal]) -> str:
    """Say which flags a producer increments, for the field's meaning."""
    texts = []
    for signal in signals:
        condition = f" if {signal.field} is {signal.value}" if signal.field else ""
        owner = {"tile": "", "all tiles": " of all tiles", "scalar core": " of the scalar core"}
        texts.append(f"flag {signal.flag:d} ({signal.flag.label}){owner[signal.scope]}{condition}")
    return ", ".join(texts)
