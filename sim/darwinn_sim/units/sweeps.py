"""Sweeps: segments of a tensor instruction that a run on marks takes at once, found without data.

What segments one after another read may be noted before the first of them, and each place once,
unless one reads what another has written before it, or is held back. So the places of a sweep are
worked out when a program is loaded, as runs of neighbours: an instruction walks alike on all tiles,
a convolution reads a place for each tap and each block of channels, and a program of short sums has
thousands of them in each instruction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel.compiled import entry, inner
from darwinn_sim.kernel.structure import Numbers, Record, Records, numbers
from darwinn_sim.units import memories
from darwinn_sim.units.identities import last_granule
from darwinn_sim.units.marks import ALL_PLANES, Run, Sweep, Sweeps
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.output_stage import OUTPUT_16BIT, result_words
from darwinn_sim.units.tables import Tables
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC
from darwinn_sim.units.tensor_plan import TensorPlan
from darwinn_sim.units.tensor_records import KEEP_SUMS, Parameters, Place, Segment

_ROOM = 1 << 14
_OF_AN_ITERATION = chip.LANES // chip.WORD_BYTES + 2
"""Runs that an iteration adds, at most: an interpolation takes a byte a lane."""

_IN_TURNS = 4
"""Runs that a further place may belong to."""

_PLANE_BITS = 4
_WORD_MASK = NARROW_MASK >> 2


class _Standing(Record):
    """The next segment: ``segment`` of the instruction that is number ``instruction`` of those that
    walk apart. The sweep that is being made: its ``number``, from 1 on through all of them; that it
    is ``alone``; that it ``wrote`` words and ``stored`` rows.

    So many ``sweeps``, and runs of ``reads``, ``rows`` and ``writes``, and iterations ``made``, are
    there; of rows those of the sweep before begin at ``previous``. ``words``: results so far, of
    the instruction.
    """

    instruction: int
    segment: int
    number: int
    alone: int
    wrote: int
    stored: int
    sweeps: int
    reads: int
    rows: int
    writes: int
    made: int
    previous: int
    words: int
    late: int


class _Making(NamedTuple):
    """What is being filled, and what is known of places: the number of the sweep that has read them
    last, with the bytes, or written. Rows are known apart by whether all lanes of a block are read.
    """

    standing: Records[_Standing]
    at: NDArray[np.int32]
    sweeps: Records[Sweep]
    reads: Records[Run]
    rows: Records[Run]
    writes: Records[Run]
    made: NDArray[np.int32]
    words_read: NDArray[np.uint32]
    rows_read: NDArray[np.uint32]
    words_written: NDArray[np.uint32]
    rows_written: NDArray[np.uint32]


def sweeps(tables: Tables, group: NDArray[np.uint8]) -> Sweeps:
    """The sweeps of a program; ``group``: which iterations somebody asks for (``Sweep.made``)."""
    plan = tables.tensor_plan
    most = int(plan.segment["count"].max(initial=1))
    room = _ROOM + _OF_AN_ITERATION * most
    making = _Making(
        *(_Standing.zeros(1), np.zeros(len(plan.segment), np.int32), Sweep.zeros(_ROOM)),
        *(Run.zeros(room), Run.zeros(room), Run.zeros(room)),
        np.zeros(room, np.int32),
        np.zeros(_WORD_MASK + 1, np.uint32),
        np.zeros(2 * chip.WIDE_ROWS, np.uint32),
        np.zeros(_WORD_MASK + 1, np.uint32),
        np.zeros(chip.WIDE_ROWS, np.uint32),
    )
    rows = np.unique(plan.place["segment"], return_index=True)[1]
    far = np.array([_is_far(tables.tensor[row], plan, plan.place[row]) for row in rows.tolist()])
    while not _make(tables.tensor, plan, numbers(rows), far, group, making):
        making = _with_more_room(making)
    filled = (getattr(making, name)[: int(making.standing[name][0])] for name in _LISTS)
    return Sweeps(making.at, *filled)


def _with_more_room(making: _Making) -> _Making:
    """The same with twice the room."""
    longer: dict[str, Any] = {
        name: _longer(getattr(making, name), int(making.standing[name][0])) for name in _LISTS
    }
    return making._replace(**longer)


def _longer(values: NDArray[Any], filled: int) -> NDArray[Any]:
    """Twice as long, with the first values, which are ``filled``: the rest takes no memory yet.

    As bytes: NumPy copies records field by field.
    """
    longer = np.zeros(2 * len(values), values.dtype)
    size = filled * values.itemsize
    longer.view(np.uint8)[:size] = values.view(np.uint8)[:size]
    return longer


_LISTS = ("sweeps", "reads", "rows", "writes", "made")


def _is_far(instruction: Parameters, plan: TensorPlan, place: Place) -> bool:
    """A row that the instruction reads may be beyond wide memory."""
    if instruction["opcode"] == INTERPOLATE:
        return False
    begin, count = int(place["iteration"]), int(place["iterations"])
    granules = plan.granule[begin : begin + count]
    least, greatest = int(granules.min(initial=0)), int(granules.max(initial=0))
    most = max(int(instruction["products"]), 1) * (2 if instruction["parameter_16bit"] else 1)
    return least < 0 or greatest + most > _GRANULES


_GRANULES = 4 * chip.WIDE_ROWS


@entry
def _make(
    instructions: Records[Parameters],
    plan: TensorPlan,
    rows: Numbers,
    far: NDArray[np.bool_],
    group: NDArray[np.uint8],
    making: _Making,
) -> bool:
    """Make the sweeps of the instructions in ``rows`` as far as there is room; False if some are
    left. ``far``: rows of wide memory that they read may be beyond it.
    """
    standing = making.standing[0]
    while standing.instruction < len(rows):
        row = rows[standing.instruction]
        place = plan.place[row]
        is_far = far[standing.instruction]
        if not _make_all(instructions[row], plan, place, group, is_far, making):
            return False
        standing.instruction += 1
        standing.segment = 0
    return True


@inner
def _make_all(
    parameters: Parameters,
    plan: TensorPlan,
    place: Place,
    group: NDArray[np.uint8],
    far: bool,
    making: _Making,
) -> bool:
    """Make the sweeps of an instruction, from the next segment on; False if there is no room."""
    standing = making.standing[0]
    if standing.segment == 0:
        standing.previous = -1
        standing.words = standing.late = 0
    while standing.segment < place.segments:
        at = place.segment + standing.segment
        segment = plan.segment[at]
        if _lacks_room(segment, making):
            return False
        alone = far or _stands_alone(parameters, segment, plan, place, standing.words)
        if (
            standing.segment == 0
            or segment.waits
            or alone
            or standing.alone
            or _reads_what_it_wrote(parameters, segment, plan, place, making)
        ):
            if standing.segment:
                _close(making)
            making.at[at] = standing.sweeps
            _open(alone, making)
        _add(parameters, segment, plan, place, group, making)
        standing.segment += 1
    _close(making)
    return True


@inner
def _lacks_room(segment: Segment, making: _Making) -> bool:
    standing = making.standing[0]
    more = _OF_AN_ITERATION * (segment.count + 2)
    longest = max(max(standing.reads, standing.rows), max(standing.writes, standing.made))
    return bool(standing.sweeps == len(making.sweeps) or longest + more > len(making.reads))


@inner
def _stands_alone(
    parameters: Parameters, segment: Segment, plan: TensorPlan, place: Place, words: int
) -> bool:
    """A place is none, which is a fault where the segment comes to it; or its results are not whole
    words, each in a word of memory.
    """
    if _stores(parameters, segment) and memories.lacks_row(segment.sum_row):
        return True
    if _has_zero_points(parameters) and memories.lacks_row(segment.zero_point_row):
        return True
    count = result_words(parameters, segment)
    octets = segment.lanes * (2 if parameters.function & OUTPUT_16BIT else 1)
    if count and (octets % chip.WORD_BYTES or words + count > place.writes):
        return True
    for k in range(place.write + words, place.write + words + count):
        address = plan.write_address[k] & NARROW_MASK
        if address % chip.WORD_BYTES or memories.lacks_bytes(address):
            return True
    return False


@inner
def _stores(parameters: Parameters, segment: Segment) -> bool:
    """Sums are put aside."""
    return bool(segment.ends and not parameters.partial_sum_read & KEEP_SUMS)


@inner
def _has_zero_points(parameters: Parameters) -> bool:
    """Each segment reads a row of zero points."""
    return bool(parameters.opcode == MAC and parameters.load_parameter_zero_point)


@inner
def _octets(parameters: Parameters, segment: Segment) -> int:
    """Bytes of narrow memory that an iteration reads."""
    if parameters.opcode == INTERPOLATE:
        return int(segment.lanes)
    if parameters.opcode != MAC:
        return 0
    return parameters.products * (2 if parameters.activation_16bit else 1)


@inner
def _has_rows(parameters: Parameters) -> bool:
    """An iteration reads wide memory."""
    return bool(parameters.opcode != INTERPOLATE and parameters.products)


@inner
def _reads_what_it_wrote(
    parameters: Parameters, segment: Segment, plan: TensorPlan, place: Place, making: _Making
) -> bool:
    """The segment reads what this sweep has written so far."""
    standing = making.standing[0]
    first = place.iteration + segment.first
    octets = _octets(parameters, segment)
    if standing.wrote and octets:
        for i in range(first, first + segment.count):
            begin = plan.operand[i]
            for index in range(begin >> 2, (begin + octets + 3) >> 2):
                if making.words_written[index & _WORD_MASK] == standing.number:
                    return True
    if not standing.stored:
        return False
    if (
        _has_zero_points(parameters)
        and making.rows_written[segment.zero_point_row] == standing.number
    ):
        return True
    if _has_rows(parameters):
        for granule in plan.granule[first : first + segment.count]:
            for row in range(granule >> 2, (last_granule(parameters, granule) >> 2) + 1):
                if making.rows_written[row] == standing.number:
                    return True
    return False


@inner
def _open(alone: bool, making: _Making) -> None:
    """Begin a sweep without segments."""
    standing = making.standing[0]
    standing.number += 1
    standing.alone = alone
    standing.wrote = standing.stored = 0
    sweep = making.sweeps[standing.sweeps]
    standing.sweeps += 1
    sweep.segments = sweep.iterations = sweep.outputs = sweep.words = sweep.grown = 0
    sweep.parameter_reads = sweep.sum_writes = sweep.lanes = sweep.stores = 0
    sweep.alone = alone
    sweep.reads = standing.reads
    sweep.rows = standing.rows
    sweep.writes = standing.writes
    sweep.made = standing.made


@inner
def _close(making: _Making) -> None:
    """End the sweep that is being made; it shares the rows of the one before, if equal."""
    standing = making.standing[0]
    sweep = making.sweeps[standing.sweeps - 1]
    sweep.rows_end = standing.rows
    sweep.reads_end = standing.reads
    sweep.writes_end = standing.writes
    sweep.made_end = standing.made
    before, count = standing.previous, standing.rows - sweep.rows
    if before >= 0 and sweep.rows - before == count and _are_alike(making.rows, before, count):
        sweep.rows = before
        sweep.rows_end = standing.rows = before + count
    standing.previous = sweep.rows


@inner
def _are_alike(runs: Records[Run], first: int, count: int) -> bool:
    """So many runs are like those after them."""
    for k in range(first, first + count):
        one, other = runs[k], runs[k + count]
        same = one.first == other.first and one.count == other.count
        if not same or one.planes != other.planes or one.lanes != other.lanes:
            return False
    return True


@inner
def _add(
    parameters: Parameters,
    segment: Segment,
    plan: TensorPlan,
    place: Place,
    group: NDArray[np.uint8],
    making: _Making,
) -> None:
    """Take a segment into the sweep."""
    standing = making.standing[0]
    sweep = making.sweeps[standing.sweeps - 1]
    sweep.segments += 1
    sweep.iterations += segment.count
    sweep.parameter_reads += segment.parameter_reads
    sweep.sum_writes += segment.sum_writes
    if _has_zero_points(parameters):
        _add_row(parameters, segment, segment.zero_point_row, ALL_PLANES, making)
    octets = _octets(parameters, segment)
    for i in range(
        place.iteration + segment.first, place.iteration + segment.first + segment.count
    ):
        if octets:
            _add_words(plan.operand[i], octets, making)
        if _has_rows(parameters):
            _add_rows(parameters, segment, plan.granule[i], making)
        if group[i]:
            making.made[standing.made] = i - place.iteration
            standing.made += 1
    if _stores(parameters, segment):
        sweep.stores = 1
        if not standing.alone:
            standing.stored = 1
            making.rows_written[segment.sum_row] = standing.number
    if standing.late:
        making.words_written[standing.late - 1] = standing.number
        standing.late = 0
    if segment.outputs:
        sweep.outputs += 1
        sweep.lanes = max(sweep.lanes, segment.lanes)
        _add_results(parameters, segment, plan, place, making)


@inner
def _planes(place: int, first: int, last: int) -> int:
    """Which of the four bytes, or granules, of a place are from the ``first`` to the ``last``."""
    planes = ALL_PLANES
    if place == first >> 2:
        planes &= ALL_PLANES << (first & 3)
    if place == last >> 2:
        planes &= ALL_PLANES >> (3 - (last & 3))
    return planes


@inner
def _add_words(begin: int, octets: int, making: _Making) -> None:
    """Bytes of narrow memory are read."""
    standing = making.standing[0]
    last = begin + octets - 1
    for index in range(begin >> 2, (last >> 2) + 1):
        planes = _planes(index, begin, last)
        word = index & _WORD_MASK
        if _is_new(making.words_read, word, planes, standing.number):
            standing.reads = _run(
                making.reads,
                making.sweeps[standing.sweeps - 1].reads,
                standing.reads,
                word,
                planes,
                0,
            )


@inner
def _add_rows(parameters: Parameters, segment: Segment, granule: int, making: _Making) -> None:
    """The rows of an iteration's parameters are read."""
    last = last_granule(parameters, granule)
    for row in range(granule >> 2, (last >> 2) + 1):
        _add_row(parameters, segment, row, _planes(row, granule, last), making)


@inner
def _add_row(
    parameters: Parameters, segment: Segment, row: int, planes: int, making: _Making
) -> None:
    """Bytes of a row's lanes are read."""
    standing = making.standing[0]
    whole = segment.lanes == parameters.block_lanes + 1
    known = row + (chip.WIDE_ROWS if whole else 0)
    # What is none comes to light where it is read.
    if memories.lacks_row(row) or _is_new(making.rows_read, known, planes, standing.number):
        standing.rows = _run(
            making.rows,
            making.sweeps[standing.sweeps - 1].rows,
            standing.rows,
            row,
            planes,
            segment.lanes,
        )


@inner
def _is_new(read: NDArray[np.uint32], place: int, planes: int, number: int) -> bool:
    """Bytes of a place are read for the first time in a sweep."""
    known = int(read[place])
    if known >> _PLANE_BITS != number:
        known = number << _PLANE_BITS
    read[place] = np.uint32(known | planes)
    return bool(planes & ~known)


@inner
def _run(runs: Records[Run], begin: int, count: int, place: int, planes: int, lanes: int) -> int:
    """Add a place to the runs from ``begin`` on, of which there are up to ``count``; how many there
    are then. What is read in turns, as by an addition, makes a run each.
    """
    for number in range(count - 1, max(begin, count - _IN_TURNS) - 1, -1):
        last = runs[number]
        if place == last.first + last.count and planes == last.planes and lanes == last.lanes:
            last.count += 1
            return count
    run = runs[count]
    run.first, run.count, run.planes, run.lanes = place, 1, planes, lanes
    return count + 1


@inner
def _add_results(
    parameters: Parameters, segment: Segment, plan: TensorPlan, place: Place, making: _Making
) -> None:
    """Results are written; those of a sweep that is alone one by one, when it comes to that."""
    standing = making.standing[0]
    count = result_words(parameters, segment)
    if standing.alone:
        standing.words += count
        return
    sweep = making.sweeps[standing.sweeps - 1]
    for number in range(count):
        at = place.write + standing.words
        word = (plan.write_address[at] & NARROW_MASK) >> 2
        standing.writes = _run(making.writes, sweep.writes, standing.writes, word, ALL_PLANES, 0)
        if segment.late and number == count - 1:
            standing.late = word + 1
        else:
            making.words_written[word] = standing.number
        sweep.grown += plan.write_flag[at]
        standing.words += 1
    sweep.words += count
    standing.wrote = 1
