"""Instructions of a unit one behind another: of one that has ended nothing is left to the next but
what is meant to be, the table of a function and the side of a double buffer that goes on."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from darwinn_rtl.tile.bench import RingRow
from darwinn_sim.isa.codes import TileFlag
from hypothesis import strategies as st
from nightly import check_cases, nightly_too
from slow_model import mesh_bus, narrow_to_wide, ring_bus, tensor_unit, wide_to_narrow
from slow_model.memory import Core
from slow_model.traversal import walk
from stimulus import Walk, nothing
from tensor_stimulus import scale_bias, tables
from tile_units import LIMIT, TileAndModel
from unit_cases import mesh_bus as mesh_cases
from unit_cases import narrow_to_wide as packing_cases
from unit_cases import ring_bus as ring_cases
from unit_cases import tensor_unit as tensor_cases
from unit_cases import wide_to_narrow as spreading_cases

Step = tuple[str, dict[str, Any], dict[int, int]]
"""An instruction, its fields, and flags that are loaded before it."""

TABLE, PACK, SPREAD, SEND, CONSUME, MESH = (
    *("CoefficientTable", "NarrowToWide", "WideToNarrow", "RingProducer"),
    *("RingConsumerA", "MeshSouth"),
)
OPERATIONS = (tensor_unit.MAC, tensor_unit.MAXIMUM, tensor_unit.SUM, tensor_unit.INTERPOLATE)

_TABLES: st.SearchStrategy[Step] = tables().map(lambda table: (TABLE, table, {}))
UNITS: dict[str, st.SearchStrategy[Step]] = {
    "tensor": st.one_of(_TABLES, *map(tensor_cases.operations, OPERATIONS)),
    PACK: packing_cases.cases().map(lambda case: (PACK, *case[:2])),
    SPREAD: spreading_cases.cases().map(lambda case: (SPREAD, *case[:2])),
    SEND: ring_cases.cases().map(lambda case: (SEND, case[0], case[3])),
    CONSUME: ring_cases.cases().map(lambda case: (CONSUME, case[1], case[3])),
    MESH: mesh_cases.cases().map(lambda case: (MESH, case[1], case[3])),
}
SEQUENCES, SEQUENCES_NIGHTLY = 12, 300

SIDES = {
    PACK: ("wide_write", TileFlag.NARROW_TO_WIDE_WRITE),
    SEND: ("wide_read", TileFlag.RING_BUS_WRITE),
}
"""Traversals whose side goes on from one instruction to the next, and the flag whose loading ends
that."""


def _shares(name: str, fields: dict[str, Any]) -> bool:
    """Whether an instruction goes on where the last one has left the double buffer."""
    if name == PACK:
        guards = zip(fields["watcher_valid"], fields["watcher_flag"], strict=True)
        return any(valid and flag == TileFlag.RING_BUS_WRITE for valid, flag in guards)
    return bool(fields["wide_read_double_offset"])


class Both(TileAndModel):
    """The RTL's tile and a slow one, which perform steps; what leaves the tile is collected."""

    def __init__(self) -> None:
        super().__init__({})
        words = scale_bias(7)
        self.rtl.scale_bias[:] = words
        self.slow.scale_bias[:] = words.tobytes()
        self.side = 0
        self.rows: list[list[bytes]] = []
        self.words: list[bytes] = []

    def perform(self, step: Step) -> bool:
        """Give the RTL a step; whether it ends, by the slow model."""
        name, fields, flags = step
        traversal, restart = SIDES.get(name, ("", None))
        for flag, value in flags.items():
            self.load_flag(flag, value % 65536)
            if flag == restart:
                self.side = 0
        self.give(name, fields)
        if not traversal or not _shares(name, fields):
            return self._executed(name, fields)
        start = f"{traversal}_double_start"
        fields = fields | {start: fields[start] ^ self.side}
        if fields[f"{traversal}_double_offset"]:
            blocks = sum(
                fields[f"{traversal}_double_loop"] in e.ends for e in walk(fields, traversal)
            )
            self.side ^= blocks & 1
        return self._executed(name, fields)

    def _executed(self, name: str, fields: dict[str, Any]) -> bool:
        if name == TABLE:
            self.slow.coefficient = [np.float32(value) for value in fields["coefficient"]]
            self.slow.lower_bound = [np.float32(value) for value in fields["lower_bound"]]
            return True
        if name == PACK:
            return narrow_to_wide.run(self.slow, fields)
        if name == SPREAD:
            return wide_to_narrow.run(self.slow, fields)
        if name == SEND:
            rows, ends = ring_bus.send(self.slow, {}, _NoCore(), fields, 1 << 16)
            self.rows += rows
            return ends
        if name == CONSUME:
            return self._consume(fields)
        if name == MESH:
            return self._mesh(fields)
        return tensor_unit.run(self.slow, name, fields)

    def _consume(self, fields: dict[str, Any]) -> bool:
        """Rows come, as many as are wanted."""
        rows = [
            [bytes([k, 1, 2, w]) for w in range(64)] for k in range(len(walk(fields, "wide_write")))
        ]
        for row in rows:
            self.rtl.send_row(RingRow(tuple(int.from_bytes(word, "little") for word in row)))
        return ring_bus.consume(self.slow, fields, 0, rows)

    def _mesh(self, fields: dict[str, Any]) -> bool:
        """Words come, as many as are wanted, and are told from those of other instructions."""
        sent, sending_ends = mesh_bus.send(self.slow, MESH, fields)
        self.words += sent
        takes = not fields["immediate_valid"] and not mesh_bus.off(fields, "narrow_write")
        count = len(walk(fields, "narrow_write")) if takes else 0
        words = [bytes([k & 255, k >> 8, len(self.words) & 255, 9]) for k in range(count)]
        for word in words:
            self.rtl.send_word(0, int.from_bytes(word, "little"))
        return mesh_bus.receive(self.slow, MESH, fields, words) and sending_ends


class _NoCore(Core):
    def __init__(self) -> None:
        self.flags = [0] * 9


def check(steps: list[Step]) -> None:
    """Both do the same, up to the first step that is held back for good."""
    both = Both()
    both.rtl.stall(len(steps), 64)
    ends = all(both.perform(step) for step in steps)
    both.run(LIMIT * len(steps))
    assert both.rtl.idle == ends
    assert [_bytes(row.words) for row in both.rtl.rows_out()] == both.rows
    assert _bytes(both.rtl.words_out(0)) == both.words


def _bytes(words: Any) -> list[bytes]:
    return [word.to_bytes(4, "little") for word in words]


@nightly_too
@pytest.mark.parametrize("unit", UNITS)
def test_random_instructions_one_behind_another(unit: str, nightly: bool) -> None:
    one = UNITS[unit]
    steps = st.lists(one, min_size=2, max_size=4)
    if unit == "tensor":
        steps = st.tuples(_TABLES, steps).map(lambda drawn: [drawn[0], *drawn[1]])
    check_cases(
        f"RTL, {unit} in succession",
        steps,
        check,
        SEQUENCES,
        nightly=nightly,
        nightly_examples=SEQUENCES_NIGHTLY,
    )


@pytest.mark.parametrize("name", SIDES)
def test_a_side_goes_on_whatever_stands_between(name: str) -> None:
    """Two instructions of each kind, then one that shows the side: shared or not, from either side
    on, with one row or two, and such as have no second side."""
    kinds = [_rows(name, *kind) for kind in product((True, False), (0, 1), (1, 2), (10, 0))]
    for between in product(kinds, repeat=2):
        check([(name, rows, {}) for rows in (*between, _rows(name, True, 0, 1))])


def _rows(name: str, shares: bool, start: int, rows: int, distance: int = 10) -> dict[str, Any]:
    """So many rows, each on the other side of a double buffer than the one before."""
    traversal, _ = SIDES[name]
    double = (0, distance, start) if shares or name == PACK else (0, 0, 0)
    found = nothing(name) | Walk((rows, 1, 1, 1), (1, 0, 0, 0), 100, double).fields(name, traversal)
    if name == PACK:
        found |= Walk((rows, *[1] * 5), (1, *[0] * 5), base=7).fields(name, "narrow_read")
        found |= {"watcher_flag": [16] * 6, "watcher_valid": [int(shares), *[0] * 5]}
    return found
