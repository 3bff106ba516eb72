"""A core beside which value numbers stand: of every byte the chip holds that is not known.

They go wherever bytes go, as the shadows of the memories do (``state``): a byte whose shadow is 0
has a number here (``field``), and equal numbers are the same function of the inputs. A byte whose
shadow is not 0 is a constant, and what stands here for it means nothing.

Units call the hooks. Where the core has no numbers nothing is compiled of them.
"""

from __future__ import annotations

from typing import Annotated, cast

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel import field, state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.hooks import hook_of
from darwinn_sim.kernel.shadows import SHADOW
from darwinn_sim.kernel.structure import Numbers, Record, Records

MOST_VALUES = 1 << 14
"""Different values that a maximum is followed of."""

MOST_EXPANDED = 64
"""Values of a maximum that stand in its place in a further one: a maximum of more is a value itself
(``proof.maxima`` expands these where it has to)."""

SETS = 1 << 22
POOL = 1 << 26
"""Maxima that are remembered, and values of all of them together."""

INVERSES = 1 << 17
"""Weights below this have their inverse kept."""

FUNCTIONS = 1 << 14
"""Functions of one byte that are kept."""

WORK_OF_A_TURN = 1 << 18

MADE = 1 << 21
"""Results that there is room for until they are taken: more than a turn of that work makes."""

UNBOUNDED = 1 << 40
"""The reach of a sum that may be any number, negative ones too."""

MOST_PARAMETERS = 1 << 27
"""Bytes of parameters whose uses are marked."""

MOST_SUMS = 1 << 25
"""Sums that are told from each other."""

MOST_USES = 1 << 23
"""Uses that there is room for until they are taken."""

WEIGHT, ZERO_POINT, SCALE, BIAS, OTHER = (1 << k for k in range(5))
"""What a byte of the parameters is used as (``origins``); of several all bits."""

ANY, AT_MOST_A_BYTE, A_BYTE = range(3)
"""A float in a register may be any number, is at most 255, or is from 0 to 255."""

NARROW_TO_WIDE, WIDE_TO_NARROW = range(2)
"""Units that hold a row."""

_NARROW_WORDS = chip.NARROW_ADDRESS_BYTES // chip.WORD_BYTES
_ACTIVATION_BYTES = chip.ACTIVATION_UNITS * chip.ACTIVATION_UNIT_BYTES
_PARAMETER_BYTES = chip.PARAMETER_UNITS * chip.PARAMETER_UNIT_BYTES
_OUTFEED = chip.TILES

_ORIGINS = np.uint32(SHADOW * 0x01010101)


class Made(Record):
    """A result: its ``number``, the element of its sum (``total``), the bits of its factor
    (``scale``), and who made it; the number of the sum, where sums are told from each other."""

    number: np.uint64
    total: np.uint64
    instruction: int
    sum: int
    scale: np.uint32
    tile: np.uint8
    lane: np.uint8


class Use(Record):
    """A byte of the parameters (``place``) is used in a sum of a ``lane``, or in its result, in a
    ``role`` of ``origins``. ``number``: of what it is multiplied with, or which byte of a word it
    is."""

    number: np.uint64
    place: int
    sum: int
    lane: np.uint8
    role: np.uint8


class SumOfByte(Record):
    """A sum of one byte that is put aside: its element (``total``), the ``weight`` of the byte, and
    the ``constant`` beside it."""

    total: np.uint64
    weight: int
    constant: int


class Numbering(Record):
    """Numbers of bytes, four of each word: in ``narrow`` and ``wide`` memory and the ``scale_bias``
    buffer of the tiles, in the ``rows`` that units hold, on the ``ring`` (the outfeed's behind the
    tiles') and the ``mesh``, in the row that the ``infeed`` collects and the one that a tile has
    ``sent``, in the buffer of activations, FIFOs, scalar memory and registers. ``bounded``: what is
    known of floats in registers.

    Of the sums of lanes: two parts of elements (``low``, ``high``), what is known (``constant``),
    how many bytes are not (``varying``: none, one, or more), the sum of their ``weights``, one
    ``operand`` that is added by itself, and the greatest value that they can have (``reach``, of
    which ``UNBOUNDED`` says nothing); of maxima, how many ``values`` they are of. ``results``
    leave a tensor unit. ``table``: a hash of a tile's coefficients. ``set_number``, ``set_first``
    and ``set_count``: remembered maxima (there are ``sets``), with values in ``pool`` (``pooled``
    of them). ``aside``: of each word of wide memory, tile by tile, the last sum of one byte that
    was put there. ``function_key`` and ``function_number``: functions of one byte. There are
    ``results_made`` in ``made``. ``lost``: maxima or values of them there was no room for.

    ``traces``: uses of parameters (``origins``) are marked. There were ``sums_begun``; ``sum`` is
    the one of each tile, and ``put_aside`` those whose sums are in rows of wide memory; ``goes_on``
    has the sum that each goes on from. Of those in ``wanted`` (bit k: lane k) ``uses`` are noted
    (``uses_noted``). ``marked``: how many lanes of each byte of the words of a row are.
    ``used_as``: roles of all bytes of the parameters. ``memory_origins``: bits of shadows of scalar
    memory, which has no others by bytes.
    """

    narrow: Annotated[NDArray[np.uint64], chip.TILES, _NARROW_WORDS, 4]
    wide: Annotated[NDArray[np.uint64], chip.TILES, chip.WIDE_ROWS * chip.ROW_WORDS, 4]
    scale_bias: Annotated[NDArray[np.uint64], chip.TILES, chip.SCALE_BIAS_WORDS, 4]
    rows: Annotated[NDArray[np.uint64], chip.TILES, 2, chip.ROW_WORDS, 4]
    ring: Annotated[NDArray[np.uint64], chip.TILES + 1, 2, chip.RING_FIFO_ROWS, chip.ROW_WORDS, 4]
    sent: Annotated[NDArray[np.uint64], chip.ROW_WORDS, 4]
    infeed: Annotated[NDArray[np.uint64], chip.ROW_WORDS, 4]
    mesh: Annotated[NDArray[np.uint64], chip.TILES, 4, chip.MESH_FIFO_WORDS, 4]
    activations: Annotated[NDArray[np.uint64], _ACTIVATION_BYTES]
    input: Annotated[NDArray[np.uint64], 2, chip.HOST_FIFO_BYTES]
    output: Annotated[NDArray[np.uint64], chip.HOST_FIFO_BYTES]
    memory: Annotated[NDArray[np.uint64], chip.SCALAR_MEMORY_WORDS, 4]
    registers: Annotated[NDArray[np.uint64], chip.SCALAR_REGISTERS, 4]
    operands: Annotated[NDArray[np.uint64], chip.SCALAR_REGISTERS, 4]
    bounded: Annotated[NDArray[np.uint8], chip.SCALAR_REGISTERS]
    low: Annotated[NDArray[np.int64], chip.TILES, chip.LANES]
    high: Annotated[NDArray[np.int64], chip.TILES, chip.LANES]
    constant: Annotated[NDArray[np.int64], chip.TILES, chip.LANES]
    varying: Annotated[NDArray[np.int64], chip.TILES, chip.LANES]
    weights: Annotated[NDArray[np.int64], chip.TILES, chip.LANES]
    operand: Annotated[NDArray[np.uint64], chip.TILES, chip.LANES]
    reach: Annotated[NDArray[np.int64], chip.TILES, chip.LANES]
    count: Annotated[NDArray[np.int64], chip.TILES, chip.LANES]
    values: Annotated[NDArray[np.uint64], chip.TILES, chip.LANES, MOST_VALUES]
    results: Annotated[NDArray[np.uint64], chip.TILES, 2 * chip.LANES]
    table: Annotated[NDArray[np.uint64], chip.TILES]
    set_number: Annotated[NDArray[np.uint64], SETS]
    set_first: Annotated[Numbers, SETS]
    set_count: Annotated[Numbers, SETS]
    pool: Annotated[NDArray[np.uint64], POOL]
    pooled: int
    sets: int
    lost: int
    inverses: Annotated[NDArray[np.uint64], INVERSES]
    aside: Annotated[Records[SumOfByte], chip.TILES * chip.WIDE_ROWS * chip.ROW_WORDS]
    function_key: Annotated[NDArray[np.uint64], FUNCTIONS]
    function_number: Annotated[NDArray[np.uint64], FUNCTIONS]
    scaled: Annotated[NDArray[np.float32], field.CONSTANTS]
    rounded: Annotated[NDArray[np.int32], field.CONSTANTS]
    made: Annotated[Records[Made], MADE]
    results_made: int
    traces: int
    parameters: Annotated[NDArray[np.uint64], _PARAMETER_BYTES]
    sums_begun: int
    sum: Annotated[Numbers, chip.TILES]
    put_aside: Annotated[NDArray[np.int64], chip.TILES, chip.WIDE_ROWS]
    goes_on: Annotated[Numbers, MOST_SUMS]
    wanted: Annotated[NDArray[np.uint64], MOST_SUMS]
    uses: Annotated[Records[Use], MOST_USES]
    uses_noted: int
    marked: Annotated[NDArray[np.uint8], chip.TILES, chip.WIDE_ROWS, 4]
    used_as: Annotated[NDArray[np.uint8], MOST_PARAMETERS]
    memory_origins: Annotated[NDArray[np.uint32], chip.SCALAR_MEMORY_WORDS]


class _Numbered(Record):
    """Before all else, so that numba does not take a core with numbers for one without."""

    numbering: Numbering


class NumberedCore(state.Core, _Numbered, align=True):
    """A scalar core beside which value numbers stand."""


hook = hook_of("numbering")
"""For a core that has numbers."""


def new_core() -> Records[state.Core]:
    """As ``state.new_core``, with numbers."""
    core = cast("Records[state.Core]", NumberedCore.zeros(1))
    state.power_up(core)
    return core


@inner
def is_known(written: np.uint32, k: int) -> bool:
    """Byte ``k`` of a word with this shadow is known."""
    return bool((written >> np.uint32(8 * k)) & np.uint32(0xFF))


@inner
def number_of(
    word: np.uint32, written: np.uint32, numbers: NDArray[np.uint64], k: int
) -> np.uint64:
    """The number of byte ``k`` of a word with this shadow and the ``numbers`` of four bytes."""
    if is_known(written, k):
        return np.uint64((word >> np.uint32(8 * k)) & np.uint32(0xFF))
    return np.uint64(numbers[k])


@inner
def _has_unknown(written: np.uint32) -> bool:
    return not (
        is_known(written, 0)
        and is_known(written, 1)
        and is_known(written, 2)
        and is_known(written, 3)
    )


@inner
def _copy_word(target: NDArray[np.uint64], source: NDArray[np.uint64], written: np.uint32) -> None:
    """The four numbers of a word, if they mean anything."""
    if _has_unknown(written) or written & _ORIGINS:
        for k in range(4):
            target[k] = source[k]


@inner
def _copy_row(
    target: NDArray[np.uint64],
    first: int,
    source: NDArray[np.uint64],
    row: state.Row,
    words: int,
) -> None:
    for i in range(words):
        _copy_word(target[first + i], source[i], row.written[i])


@inner
def transpose(numbers: NDArray[np.uint64], words: int, block: int) -> None:
    """As ``narrow_to_wide.transpose``, of numbers."""
    if block == 4:
        for group in range(0, words, 4):
            for i in range(4):
                for j in range(i):
                    one, other = numbers[group + i, j], numbers[group + j, i]
                    numbers[group + i, j] = other
                    numbers[group + j, i] = one
    else:
        for group in range(0, words, 2):
            for j in range(2):
                one, other = numbers[group, 2 + j], numbers[group + 1, j]
                numbers[group, 2 + j] = other
                numbers[group + 1, j] = one


@inner
def overwrites(numbers: Numbering, tile: int, base: int, put_aside: int) -> None:
    """A row of wide memory gets what has not been used: a sum that is ``put_aside``, or 0."""
    if numbers.traces:
        row = base // chip.ROW_WORDS
        numbers.put_aside[tile, row] = put_aside
        for k in range(4):
            numbers.marked[tile, row, k] = 0


@inner
def _uses(numbers: Numbering, written: np.uint32, word: NDArray[np.uint64]) -> None:
    """Bytes of the parameters among the four of a word go where nobody follows them."""
    for k in range(4):
        if (written >> np.uint32(8 * k)) & np.uint32(SHADOW) and word[k] < MOST_PARAMETERS:
            numbers.used_as[np.int64(word[k])] |= np.uint8(OTHER)


# Between memories of a tile.


@hook
@inner
def gathers(core: NumberedCore, tile: int, word: int, address: int, written: np.uint32) -> None:
    """Narrow-to-wide takes a word of narrow memory into its row."""
    numbers = core.numbering
    _copy_word(numbers.rows[tile, NARROW_TO_WIDE, word], numbers.narrow[tile, address], written)


@hook
@inner
def turns(core: NumberedCore, tile: int, unit: int, words: int, block: int) -> None:
    """A unit turns the blocks of its row."""
    transpose(core.numbering.rows[tile, unit], words, block)


@hook
@inner
def writes_row(core: NumberedCore, tile: int, base: int, row: state.Row, words: int) -> None:
    """Narrow-to-wide writes its row."""
    numbers = core.numbering
    _copy_row(numbers.wide[tile], base, numbers.rows[tile, NARROW_TO_WIDE], row, words)
    overwrites(numbers, tile, base, 0)


@inner
def _as_copied(written: np.uint32) -> np.uint32:
    """The shadow of a copy: a mark of words that nothing has written (``numbering.run``) goes."""
    return np.uint32((written | written >> np.uint32(1)) & state.WRITTEN | written & _ORIGINS)


@hook
@inner
def reads_row(core: NumberedCore, tile: int, base: int, row: state.Row) -> None:
    """Wide-to-narrow reads a row."""
    numbers = core.numbering
    for i in range(chip.ROW_WORDS):
        row.written[i] = _as_copied(row.written[i])
        target = numbers.rows[tile, WIDE_TO_NARROW, i]
        _copy_word(target, numbers.wide[tile, base + i], row.written[i])


@hook
@inner
def spreads(core: NumberedCore, tile: int, address: int, position: int, written: np.uint32) -> None:
    """Wide-to-narrow writes a word of its row to narrow memory."""
    numbers = core.numbering
    _copy_word(numbers.narrow[tile, address], numbers.rows[tile, WIDE_TO_NARROW, position], written)


@hook
@inner
def loads_scales(
    core: NumberedCore, tile: int, address: int, position: int, written: np.uint32
) -> None:
    """Wide-to-narrow writes a word of its row to the scale/bias buffer."""
    numbers = core.numbering
    source = numbers.rows[tile, WIDE_TO_NARROW, position]
    _copy_word(numbers.scale_bias[tile, address], source, written)


# Between tiles.


@hook
@inner
def sends_word(
    core: NumberedCore,
    tile: int,
    address: int,
    target: int,
    link: int,
    slot: int,
    written: np.uint32,
) -> None:
    """A word of narrow memory goes onto the mesh."""
    numbers = core.numbering
    _copy_word(numbers.mesh[target, link, slot], numbers.narrow[tile, address], written)


@hook
@inner
def receives_word(
    core: NumberedCore, tile: int, address: int, link: int, slot: int, written: np.uint32
) -> None:
    """A word from the mesh goes to narrow memory."""
    numbers = core.numbering
    _copy_word(numbers.narrow[tile, address], numbers.mesh[tile, link, slot], written)


@hook
@inner
def takes_from_wide(core: NumberedCore, tile: int, base: int, row: state.Row) -> None:
    """A ring producer takes a row of wide memory."""
    numbers = core.numbering
    for i in range(row.words):
        row.written[i] = _as_copied(row.written[i])
        _copy_word(numbers.sent[i], numbers.wide[tile, base + i], row.written[i])


@hook
@inner
def sends_infeed(core: NumberedCore, row: state.Row) -> None:
    """The infeed's row is the next that goes onto the ring."""
    numbers = core.numbering
    _copy_row(numbers.sent, 0, numbers.infeed, row, row.words)


@hook
@inner
def arrives(core: NumberedCore, place: int, channel: int, slot: int, row: state.Row) -> None:
    """A row that was sent waits at a tile, or for the outfeed (behind the last tile)."""
    numbers = core.numbering
    _copy_row(numbers.ring[place, channel, slot], 0, numbers.sent, row, row.words)


@hook
@inner
def consumes(
    core: NumberedCore, tile: int, channel: int, slot: int, base: int, row: state.Row
) -> None:
    """A ring consumer writes a row to wide memory."""
    numbers = core.numbering
    _copy_row(numbers.wide[tile], base, numbers.ring[tile, channel, slot], row, row.words)
    overwrites(numbers, tile, base, 0)


# Beside the tiles.


@hook
@inner
def pops(core: NumberedCore, fifo: int, base: int, size: int, head: int) -> None:
    """Bytes of the host go into a buffer. Parameters are known, but for where they come from."""
    numbers = core.numbering
    for k in range(size if fifo or numbers.traces else 0):
        slot = (head + k) % chip.HOST_FIFO_BYTES
        if fifo:
            numbers.activations[base + k] = numbers.input[fifo, slot]
        else:
            numbers.parameters[base + k] = numbers.input[fifo, slot]


@hook
@inner
def collects_activations(core: NumberedCore, first: int, base: int, words: int) -> None:
    """The infeed takes words of the buffer of activations, from byte ``base`` on."""
    numbers = core.numbering
    for i in range(words):
        for k in range(4):
            numbers.infeed[first + i, k] = numbers.activations[base + 4 * i + k]


@hook
@inner
def collects_parameters(core: NumberedCore, first: int, base: int, words: int) -> None:
    """The infeed takes words of the buffer of parameters, from word ``base`` on. Of data there are
    no numbers in it, but where its bytes come from."""
    numbers = core.numbering
    shadows = core.parameters_written.view(np.uint32)
    for i in range(words):
        core.uninitialised += int(_has_unknown(shadows[base + i]))
        for k in range(4 if numbers.traces else 0):
            numbers.infeed[first + i, k] = numbers.parameters[4 * (base + i) + k]


@hook
@inner
def collects_scalar(core: NumberedCore, row: state.Row, first: int, address: int) -> None:
    """The infeed takes a word of scalar memory."""
    row.written[first] |= core.numbering.memory_origins[address]
    for k in range(4):
        core.numbering.infeed[first, k] = core.numbering.memory[address, k]


@hook
@inner
def feeds_out(core: NumberedCore, slot: int, word: int) -> None:
    """The outfeed appends a word to the host's output."""
    row = core.ring.rows[slot]
    _uses(core.numbering, row.written[word], core.numbering.ring[_OUTFEED, 0, slot, word])
    for k in range(4):
        number = core.numbering.ring[_OUTFEED, 0, slot, word, k]
        core.numbering.output[_output_slot(core, k)] = number


@hook
@inner
def feeds_memory(core: NumberedCore, slot: int, word: int, address: int) -> None:
    """The outfeed writes a word to scalar memory."""
    written = core.ring.rows[slot].written[word]
    core.numbering.memory_origins[address] = written & _ORIGINS
    for k in range(4):
        core.numbering.memory[address, k] = core.numbering.ring[_OUTFEED, 0, slot, word, k]


@hook
@inner
def pushes(core: NumberedCore, register: int) -> None:
    """The scalar core appends a register to the host's output."""
    for k in range(4):
        number = core.numbering.registers[register, k]
        core.numbering.output[_output_slot(core, k)] = number


@inner
def _output_slot(core: NumberedCore, k: int) -> int:
    return (core.output.head + core.output.length + k) % chip.HOST_FIFO_BYTES


# In the scalar core.


@hook
@inner
def keeps_operands(core: NumberedCore) -> None:
    """A bundle begins, which reads registers as they are now."""
    for register in range(chip.SCALAR_REGISTERS):
        for k in range(4):
            core.numbering.operands[register, k] = core.numbering.registers[register, k]


@hook
@inner
def stores(core: NumberedCore, register: int, address: int) -> None:
    """A register goes to scalar memory."""
    core.numbering.memory_origins[address] = np.uint32(0)
    for k in range(4):
        core.numbering.memory[address, k] = core.numbering.operands[register, k]


@hook
@inner
def loads(core: NumberedCore, register: int, address: int) -> None:
    """A word of scalar memory goes to a register."""
    numbers = core.numbering
    _uses(numbers, numbers.memory_origins[address], numbers.memory[address])
    numbers.bounded[register] = ANY
    for k in range(4):
        core.numbering.registers[register, k] = core.numbering.memory[address, k]
