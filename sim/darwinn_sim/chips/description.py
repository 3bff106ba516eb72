"""A chip as data: tiles and their grid, sizes of memories, depths of queues, registers, times.

One TOML file in this folder, or of the user, is one chip. RTL, model, compiler and documents take
their values from here. What is ``compiled`` of them is a constant of a process
(``darwinn_sim.chip``); the rest, times and queues of the event model, may differ from call to call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Final

from darwinn_formats.brief import brief
from darwinn_formats.errors import FormatError
from darwinn_formats.files import errors_name

from darwinn_sim.chips.quantities import BuiltIn, Description, Quantity, Rule, read_table
from darwinn_sim.chips.register_map import RegisterMap, read_register_map

UNIT_QUEUE: Final = 16
TILE_QUEUE: Final = 64
"""Instructions that a unit's and a tile's queue hold in the functional model, where results do not
depend on them; with one at its exit, the event model's may be one longer."""

MOST_TILES: Final = 16
"""Tiles that instructions can name: a set of tiles has a bit for each."""

_TILES = f"sets of tiles in instructions have {MOST_TILES} bits"
_LANE = "the 6-bit fields of instructions for lanes and words of a row are made for 64"
_UNIT = "the base and the limits of instructions count units of this size"
_MAP = "the fields of instructions have room for exactly this number"


def _size(
    unit: str,
    least: int,
    most: int,
    meaning: str,
    why: str,
    *,
    multiple: int = 1,
    power_of_two: bool = False,
) -> Rule:
    """What kernels and RTL have as a constant."""
    return Rule(
        unit,
        least,
        most,
        meaning,
        multiple=multiple,
        power_of_two=power_of_two,
        why=why,
        compiled=True,
    )


def _fixed(unit: str, value: int, meaning: str, why: str) -> Rule:
    """What is the same on every chip."""
    return _size(unit, value, value, meaning, why)


@brief
@dataclass(frozen=True)
class ChipDescription(Description):
    """A chip; ``host`` is the link that it is usually on, ``register_map`` names its registers."""

    host: str
    register_map: str

    # Tiles.
    grid_rows: Annotated[Quantity, _size("tile", 1, MOST_TILES, "rows of the tile grid", _TILES)]
    grid_columns: Annotated[
        Quantity,
        _size(
            "tile",
            1,
            MOST_TILES,
            "columns of the tile grid; tile = grid_columns * row + column",
            _TILES,
        ),
    ]
    lanes: Annotated[Quantity, _fixed("lane", 64, "cells of a tile's tensor unit", _LANE)]
    row_words: Annotated[
        Quantity, _fixed("word", 64, "32-bit words of a row of wide memory, and of the ring", _LANE)
    ]

    # Memories.
    narrow_bytes: Annotated[
        Quantity,
        _size(
            "B",
            4096,
            1 << 18,
            "narrow memory of a tile",
            "instructions have 18 bits for a byte of it, and 16 for a word",
            multiple=4,
        ),
    ]
    wide_rows: Annotated[
        Quantity,
        _size(
            "row",
            64,
            4096,
            "rows of wide memory of a tile",
            "instructions have 14 bits for a granule, of which a row has 4",
        ),
    ]
    scale_bias_words: Annotated[
        Quantity, _fixed("word", 256, "scale/bias buffer of a tile: 4 x 64 words", _LANE)
    ]
    activation_units: Annotated[
        Quantity,
        _size(
            "unit",
            64,
            1 << 15,
            "units of the activation buffer, which is circular",
            "instructions have 15 bits for a unit, and pops wrap at a power of two",
            power_of_two=True,
        ),
    ]
    activation_unit_bytes: Annotated[Quantity, _fixed("B", 8, "an activation unit", _UNIT)]
    parameter_units: Annotated[
        Quantity,
        _size(
            "unit",
            64,
            1 << 14,
            "units of the parameter buffer, which is circular",
            "flags count units with 16 bits including a sign, and pops wrap at a power of two",
            power_of_two=True,
        ),
    ]
    parameter_unit_bytes: Annotated[Quantity, _fixed("B", 64, "a parameter unit", _UNIT)]
    scalar_memory_words: Annotated[
        Quantity,
        _size(
            "word",
            64,
            1 << 13,
            "words of scalar memory",
            "instructions have 13 bits for a word, and the infeed wraps at a power of two",
            power_of_two=True,
        ),
    ]
    scalar_registers: Annotated[
        Quantity, _fixed("register", 32, "32-bit registers of the scalar core", _MAP)
    ]
    predicates: Annotated[Quantity, _fixed("bit", 8, "predicates of the scalar core", _MAP)]
    table_segments: Annotated[
        Quantity, _fixed("segment", 8, "segments of a tile's function table", _MAP)
    ]
    table_coefficients: Annotated[
        Quantity, _fixed("coefficient", 5, "coefficients of a segment", _MAP)
    ]

    # Time.
    clock: Annotated[Quantity, Rule("Hz", 1e3, 1e10, "clock of the chip")]
    memory_clock_ratio: Annotated[
        Quantity,
        Rule(
            "cycle/cycle",
            1,
            64,
            "cycles of the memories' clock in one cycle of the clock; no time depends on it",
        ),
    ]
    ring_bytes_per_cycle: Annotated[Quantity, Rule("B/cycle", 1, 256, "rate of the ring bus")]
    ring_row_cycles: Annotated[Quantity, Rule("cycle", 1, 1 << 16, "minimum time of a row")]
    ring_sender_waits: Annotated[
        Quantity, Rule("flag", 0, 1, "1: a sender waits until its row has arrived")
    ]
    narrow_to_wide_words_per_cycle: Annotated[
        Quantity, Rule("word/cycle", 1, 64, "rate of narrow-to-wide")
    ]
    wide_to_narrow_words_per_cycle: Annotated[
        Quantity, Rule("word/cycle", 1, 64, "rate of wide-to-narrow")
    ]
    mesh_words_per_cycle: Annotated[Quantity, Rule("word/cycle", 1, 64, "rate of a mesh link")]
    result_words_per_cycle: Annotated[
        Quantity, Rule("word/cycle", 1, 64, "rate at which results leave the tensor unit")
    ]
    result_queue_words: Annotated[
        Quantity, Rule("word", 0, 128, "words of earlier runs that may wait when a run ends")
    ]
    result_cycles: Annotated[
        Quantity, Rule("cycle", 0, 1 << 16, "from the last iteration of a run to its first result")
    ]
    drain_cycles: Annotated[
        Quantity, Rule("cycle", 0, 1, "from the last result to the next instruction")
    ]
    row_write_cycles: Annotated[
        Quantity, Rule("cycle", 0, 1, "from the last word of a row to its write")
    ]
    scalar_bundle_cycles: Annotated[
        Quantity, Rule("cycle", 0, 1 << 16, "time of a bundle of the scalar core")
    ]
    instruction_start: Annotated[
        Quantity, Rule("cycle", 0, 1 << 16, "from an instruction to its first element, in a tile")
    ]
    scalar_unit_start: Annotated[
        Quantity, Rule("cycle", 0, 1 << 16, "the same for the units beside the scalar core")
    ]
    read_cycles: Annotated[
        Quantity, Rule("cycle", 0, 1 << 16, "from a descriptor to its first bytes")
    ]
    write_cycles: Annotated[
        Quantity, Rule("cycle", 0, 1 << 16, "from the last byte of output to the answer")
    ]
    write_gap_cycles: Annotated[
        Quantity, Rule("cycle", 0, 1 << 16, "between two bursts of output that follow each other")
    ]
    interrupt_cycles: Annotated[Quantity, Rule("cycle", 1, 1 << 16, "time of an interrupt")]

    # Queues and FIFOs, for time alone: results do not depend on them.
    ring_fifo_rows: Annotated[Quantity, Rule("row", 1, 1024, "rows that wait in a ring consumer")]
    outfeed_rows: Annotated[Quantity, Rule("row", 1, 1024, "rows that wait in the outfeed")]
    ring_room_at_once: Annotated[
        Quantity, Rule("flag", 0, 1, "1: a row that is taken makes room in the same cycle")
    ]
    mesh_fifo_words: Annotated[Quantity, Rule("word", 1, 1 << 16, "words that wait on a mesh link")]
    tile_queue: Annotated[
        Quantity, Rule("instruction", 1, TILE_QUEUE + 1, "instructions that wait in a tile")
    ]
    unit_queue: Annotated[
        Quantity, Rule("instruction", 1, UNIT_QUEUE + 1, "instructions that wait in a tile's unit")
    ]
    scalar_queue: Annotated[
        Quantity,
        Rule("instruction", 1, UNIT_QUEUE + 1, "instructions that wait in a scalar core's unit"),
    ]
    host_fifo_bytes: Annotated[
        Quantity, Rule("B", 128, 1 << 20, "room between host and chip, in each direction")
    ]
    link_word_bytes: Annotated[Quantity, Rule("B", 1, 128, "bytes that the link moves at a time")]
    write_burst_bytes: Annotated[
        Quantity, Rule("B", 1, 128, "output waits until this many bytes are there")
    ]
    unanswered_writes: Annotated[
        Quantity, Rule("burst", 1, 64, "bursts of output that may await their answers")
    ]
    reads_apart: Annotated[
        Quantity,
        Rule(
            "flag",
            0,
            1,
            "0: one queue for all transfers to the chip; 1: one each for instructions, parameters "
            "and activations",
        ),
    ]

    def __post_init__(self) -> None:
        if self.tiles > MOST_TILES:
            rows, columns = (int(each.value) for each in (self.grid_rows, self.grid_columns))
            raise FormatError(
                f"{self.name}.grid_columns",
                f"{rows} x {columns} tiles: {_TILES}",
            )

    @property
    def tiles(self) -> int:
        """Tiles of the grid."""
        return int(self.grid_rows.value * self.grid_columns.value)

    @cached_property
    def registers(self) -> RegisterMap:
        """The registers that the host sees.

        Raises ``FormatError`` or ``OSError`` as :func:`read_register_map`.
        """
        return read_register_map(self.register_map)

    @property
    def sizes(self) -> Mapping[str, int]:
        """What kernels and RTL have as constants, by the names of the parameters."""
        rules = self.parameters()
        return {name: int(getattr(self, name).value) for name in rules if rules[name].compiled}


BUILT_IN: Final = BuiltIn(__package__)
"""The built-in descriptions are beside this file."""


_NAMES: Final = {"host": "host link", "register_map": "register map"}


def read_chip(name_or_path: str) -> ChipDescription:
    """A built-in chip description by its name, or one from a TOML file.

    Raises ``FormatError`` for a file that is no description, ``OSError`` if it cannot be read.
    """
    with errors_name(name_or_path):
        name, table = read_table(BUILT_IN, name_or_path)
        names = {key: table.pop(key, None) for key in _NAMES}
        texts = {key: str(named) for key, named in names.items()}
        description = ChipDescription.from_table(name, table, **texts)
        for key, named in names.items():
            if not isinstance(named, str):
                raise FormatError(f"{name}.{key}", f"not the name of a {_NAMES[key]}")
    return description
