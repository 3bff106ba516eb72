"""What a tensor instruction will do, worked out once: addresses by iteration, and segments.

The five traversals of a tensor instruction do not depend on data, and the same instruction runs on
many tiles and in every inference. So they are walked once, when a program is loaded, into plain
arrays, and instructions that walk alike share what was found. A segment is a stretch of iterations
in which nothing but multiply and add happens: it ends where a watcher is tested, a run of sums
starts or ends, or lanes or zero points change.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np
from darwinn_formats.errors import Portable
from darwinn_formats.limits import limits
from numpy.typing import NDArray

from darwinn_sim.kernel import sync, traversal
from darwinn_sim.kernel.compiled import entry, inner
from darwinn_sim.kernel.structure import Numbers, Record, Records, numbers
from darwinn_sim.units import tensor_late
from darwinn_sim.units.tensor_cells import INTERPOLATE
from darwinn_sim.units.tensor_records import Parameters, Place, Segment

MAX_ITERATIONS = 1 << 22
"""Iterations of one tensor instruction; public programs have up to 300,000."""

MAX_PLAN_BYTES = 1 << 29
"""Size of a program's plan; public programs need up to 130 MB."""


class TensorPlan(NamedTuple):
    """The plan of all tensor instructions of a program.

    ``place`` is indexed by tensor instruction; several may have the same place. ``operand`` holds
    the byte address of the activations of each iteration, ``granule`` the granule of its parameters
    (of an interpolation: the weight of its tap), ``write_address`` the byte address of each result
    word and ``write_flag`` what it adds to flag 0.
    """

    place: Records[Place]
    operand: NDArray[np.int32]
    granule: NDArray[np.int16]
    segment: Records[Segment]
    write_address: NDArray[np.int32]
    write_flag: NDArray[np.uint8]


class PlanTooLong(Portable, ValueError):
    """The tensor instruction with index ``row`` brings the program over a limit."""

    def __init__(self, row: int) -> None:
        super().__init__("more tensor iterations than the model takes on")
        self.row = row


class _Walks(Record):
    """Where the traversals of an instruction stand."""

    main: traversal.State
    narrow_read: traversal.State
    narrow_write: traversal.State
    parameter_read: traversal.State
    partial_sum: traversal.State


_HALF_PIXEL = 64
_NONE = -1


def most_elements(traversal: NDArray[np.void]) -> int:
    """Elements that a traversal (``traversal.Parameters``) can have: limits are iterations minus 1,
    and an alternate limit may be the greater one.
    """
    limits = traversal["limit"].tolist()
    if traversal["alternate_loop"]:
        target = int(traversal["alternate_target"])
        limits[target] = max(limits[target], int(traversal["alternate_limit"]))
    return math.prod(limit + 1 for limit in limits)


def plan(instructions: NDArray[np.void], *, addresses: bool = True) -> TensorPlan:
    """Walk the traversals of ``instructions`` (records of tensor instructions).

    Without ``addresses`` a plan says when its instructions do something, not where: ``operand``,
    ``granule`` and ``write_address`` are empty, and no segment is ``late``.

    Raises ``PlanTooLong``.
    """
    budget = min(MAX_PLAN_BYTES, limits().memory)
    first: dict[bytes, int] = {}
    like = [first.setdefault(key, row) for row, key in enumerate(_keys(instructions))]
    if not first:
        return _EMPTY
    most = np.zeros((len(instructions), 2), np.int64)
    for row in first.values():
        most[row] = _most(instructions[row])
    iterations, segments, words = _room(most, budget)
    room = TensorPlan(
        place=Place.zeros(len(instructions)),
        operand=np.zeros(iterations * addresses, np.int32),
        granule=np.zeros(iterations * addresses, np.int16),
        segment=Segment.zeros(segments),
        write_address=np.zeros(words * addresses, np.int32),
        write_flag=np.zeros(words, np.uint8),
    )
    total = numbers(np.zeros(3, np.int64))
    rows = cast("Records[Parameters]", instructions), numbers(np.array(like))
    too_long = _walk_all(*rows, most, budget, _Walks.zeros(1), room, total)
    if too_long != _NONE:
        raise PlanTooLong(too_long)
    i, s, w = total.tolist()
    return TensorPlan(
        place=room.place,
        operand=room.operand[:i],
        granule=room.granule[:i],
        segment=room.segment[:s],
        write_address=room.write_address[:w],
        write_flag=room.write_flag[:w],
    )


def _most(instruction: NDArray[np.void]) -> list[int]:
    """Iterations and written words that an instruction can have; above the limit, any number."""
    walks = instruction["main"], instruction["narrow_write"]
    return [min(most_elements(walk), MAX_ITERATIONS + 1) for walk in walks]


def _room(most: NDArray[np.int64], budget: int) -> list[int]:
    """Iterations, segments and words to have room for: what is not used takes no memory.

    The one that uses up the budget may go beyond it.
    """
    iterations, words = np.minimum(most, MAX_ITERATIONS).sum(axis=0)
    bounds = budget // np.array([_ITERATION_BYTES, _SEGMENT_BYTES, _WORD_BYTES]) + MAX_ITERATIONS
    found: list[int] = np.minimum([iterations, iterations, words], bounds).tolist()
    return found


_WALKED = (
    *("opcode", "main", "narrow_read", "narrow_write", "parameter_read", "partial_sum"),
    *("narrow_write_producer", "parameter_read_producer", "partial_sum_producer", "watchers"),
    *("partial_sum_read", "activation_16bit", "parameter_16bit", "working", "products"),
    *("parameter_zero_point", "activation_zero_point", "load_parameter_zero_point"),
    *("zero_point_limit", "zero_point_stride", "zero_point_base"),
    *("output_block_loop", "reduction_loops", "last_block_lanes", "block_lanes"),
    *("function", "scale_watcher", "nearest_pixel"),
    *("x_loop", "x_start", "x_step", "x_pitch", "y_loop", "y_start", "y_step", "y_pitch"),
)
"""Fields on which a walk depends, or what belongs to which group of results."""


def _keys(instructions: NDArray[np.void]) -> list[bytes]:
    """For each instruction the same bytes as for those that walk alike.

    A long chain of small operations has few ways to walk, and hundreds of instructions.
    """
    fields = [(name, instructions.dtype[name]) for name in _WALKED]
    walks = np.empty(len(instructions), fields)
    for name in _WALKED:
        walks[name] = instructions[name]
    return [walk.tobytes() for walk in walks]


_ITERATION_BYTES, _SEGMENT_BYTES, _WORD_BYTES = 6, Segment.dtype.itemsize, 5

_EMPTY = TensorPlan(
    Place.zeros(1),
    np.zeros(1, np.int32),
    np.zeros(1, np.int16),
    Segment.zeros(1),
    np.zeros(1, np.int32),
    np.zeros(1, np.uint8),
)


@entry
def _walk_all(
    instructions: Records[Parameters],
    like: Numbers,
    most: NDArray[np.int64],
    budget: int,
    states: Records[_Walks],
    plan: TensorPlan,
    total: Numbers,
) -> int:
    """Fill the plan for all instructions, each of which walks as the one with number ``like``.

    ``total`` is what they have of iterations, segments and words. Returns the first one that
    brings the program over a limit, or ``_NONE``.
    """
    for row in range(len(instructions)):
        place = plan.place[row]
        if like[row] != row:
            same = plan.place[like[row]]
            place.iteration, place.iterations = same.iteration, same.iterations
            place.segment, place.segments = same.segment, same.segments
            place.write, place.writes = same.write, same.writes
            place.cells = same.cells
            continue
        main, writes = most[row]
        if budget < 0 or main > MAX_ITERATIONS or writes > MAX_ITERATIONS:
            return row
        place.iteration, place.segment, place.write = total[0], total[1], total[2]
        place.iterations, place.segments = _walk(
            instructions[row],
            states[0],
            plan.operand[place.iteration : place.iteration + main],
            plan.granule[place.iteration : place.iteration + main],
            plan.segment[place.segment : place.segment + main],
        )
        for number in range(place.segment, place.segment + place.segments):
            place.cells += plan.segment[number].count * plan.segment[number].lanes
        place.writes = _walk_writes(
            instructions[row],
            states[0],
            plan.write_address[place.write : place.write + writes],
            plan.write_flag[place.write : place.write + writes],
        )
        if len(plan.operand):
            tensor_late.mark(
                instructions[row],
                plan.segment[place.segment : place.segment + place.segments],
                plan.operand[place.iteration : place.iteration + place.iterations],
                plan.write_address[place.write : place.write + place.writes],
            )
        total[0] += place.iterations
        total[1] += place.segments
        total[2] += place.writes
        budget -= (
            _ITERATION_BYTES * place.iterations
            + _SEGMENT_BYTES * place.segments
            + _WORD_BYTES * place.writes
        )
    return _NONE


@inner
def _walk(
    instruction: Parameters,
    states: _Walks,
    operand: NDArray[np.int32],
    granule: NDArray[np.int16],
    segments: Records[Segment],
) -> tuple[int, int]:
    """Fill the arrays for one instruction; return (iterations, segments)."""
    main = states.main
    if len(operand):
        traversal.fill(operand, states.narrow_read, instruction.narrow_read)
        traversal.fill(granule, states.parameter_read, instruction.parameter_read)
    _start(instruction, states)
    reads_first = not instruction.partial_sum_read & 1
    keeps_sum = instruction.partial_sum_read >> 1
    watched = _watched(instruction.watchers)
    depths = _quiet_depths(instruction, watched)
    zero_point_row = instruction.zero_point_base
    zero_point_moves = False
    starts = True
    lanes = iteration = count = 0
    while not main.done:
        waits = main.begins if main.begins & watched else 0
        old_lanes = lanes
        if (main.begins >> instruction.output_block_loop) & 1:
            lanes = _lanes(main, instruction)
        if starts or waits or zero_point_moves or lanes != old_lanes:
            segment = segments[count]
            count += 1
            _open(segment, iteration, waits, lanes, starts)
            segment.zero_point_row = zero_point_row
        else:
            segment = segments[count - 1]
        if starts:
            segment.continues = reads_first or not (keeps_sum or _is_first(main, instruction))
        sum_address = traversal.address(states.partial_sum, instruction.partial_sum)
        segment.sum_row = sum_address >> 2
        if instruction.opcode == INTERPOLATE and len(operand):
            offset, granule[iteration] = _tap(main, instruction)
            operand[iteration] += offset
        iteration += _leap(instruction, states, segment, depths)
        segment.count += 1
        iteration += 1

        ended = traversal.step_around(states.partial_sum, instruction.partial_sum)
        segment.sum_writes += sync.produce(instruction.partial_sum_producer, ended)
        # The sums are complete when the partial-sum traversal moves on (docs/chip-facts.md).
        starts = traversal.address(states.partial_sum, instruction.partial_sum) != sum_address
        last = starts and _is_last(main, instruction)
        ended = traversal.step_around(states.parameter_read, instruction.parameter_read)
        segment.parameter_reads += sync.produce(instruction.parameter_read_producer, ended)
        ended = traversal.step(main, instruction.main)
        if starts or main.done:
            segment.ends = 1
            segment.outputs = keeps_sum or last or main.done
        block_ended = (ended >> instruction.output_block_loop) & 1
        zero_point_moves = bool(instruction.load_parameter_zero_point and block_ended)
        if zero_point_moves:
            zero_point_row = _next_zero_point(instruction, zero_point_row)
    return iteration, count


@inner
def _open(segment: Segment, iteration: int, waits: int, lanes: int, starts: bool) -> None:
    segment.first = iteration
    segment.waits = waits
    segment.lanes = lanes
    segment.starts = starts


@inner
def _quiet_depths(instruction: Parameters, watched: int) -> tuple[int, int]:
    """Depths of blocks of the main loops and of the partial sums within which nothing happens but
    multiply and add; 0 where each iteration has to be looked at.

    Watchers, output block and zero point change with the main loops, the run of sums with their
    address.
    """
    if (
        instruction.opcode == INTERPOLATE
        or instruction.main.alternate_loop
        or instruction.partial_sum.alternate_loop
        or instruction.parameter_read.alternate_loop
    ):
        return 0, 0
    depth = min(instruction.output_block_loop, _lowest(watched))
    return depth, _still_depth(instruction.partial_sum)


@inner
def _lowest(bits: int) -> int:
    """Number of the lowest bit that is set; those of depths that there are, if none is."""
    for number in range(traversal.MAX_LOOPS):
        if (bits >> number) & 1:
            return number
    return traversal.MAX_LOOPS


@inner
def _still_depth(sums: traversal.Parameters) -> int:
    """The greatest depth of blocks in which a traversal stays at one address."""
    depth = 0
    while depth < sums.loops and (sums.step[depth] == 0 or sums.limit[depth] == 0):
        depth += 1
    return min(depth, sums.double_loop) if sums.double_offset else depth


@inner
def _leap(
    instruction: Parameters, states: _Walks, segment: Segment, depths: tuple[int, int]
) -> int:
    """Do the iterations before the last one of the quiet blocks; return how many."""
    iterations = traversal.before_end(states.main, instruction.main, depths[0], MAX_ITERATIONS)
    iterations = traversal.before_end(
        states.partial_sum, instruction.partial_sum, depths[1], iterations
    )
    if iterations == 0:
        return 0
    segment.count += iterations
    segment.sum_writes += _produced(
        instruction.partial_sum_producer, states.partial_sum, instruction.partial_sum, iterations
    )
    segment.parameter_reads += _produced(
        instruction.parameter_read_producer,
        states.parameter_read,
        instruction.parameter_read,
        iterations,
    )
    traversal.advance(states.main, instruction.main, iterations)
    traversal.advance(states.partial_sum, instruction.partial_sum, iterations)
    traversal.advance(states.parameter_read, instruction.parameter_read, iterations)
    return iterations


@inner
def _produced(
    producer: sync.Producer, state: traversal.State, parameters: traversal.Parameters, steps: int
) -> int:
    """What a producer adds in so many steps."""
    return traversal.ends(state, parameters, steps, producer.depth) if producer.increment else 0


@inner
def _start(instruction: Parameters, states: _Walks) -> None:
    traversal.start(states.main, instruction.main)
    traversal.start(states.parameter_read, instruction.parameter_read)
    traversal.start(states.partial_sum, instruction.partial_sum)


@inner
def _watched(watchers: sync.Watchers) -> int:
    """Depths of the blocks before which a watcher waits, a bit each."""
    depths = 0
    for k in range(watchers.count):
        depths |= 1 << watchers.depth[k]
    return depths


@inner
def _next_zero_point(instruction: Parameters, row: int) -> int:
    row += instruction.zero_point_stride
    return instruction.zero_point_base if row > instruction.zero_point_limit else row


@inner
def _walk_writes(
    instruction: Parameters,
    states: _Walks,
    address: NDArray[np.int32],
    flag: NDArray[np.uint8],
) -> int:
    """Fill in where the result words go, and what they add; return how many there are."""
    write, producer = instruction.narrow_write, instruction.narrow_write_producer
    if len(address):
        traversal.fill(address, states.narrow_write, write)
    count = traversal.fill_ends(flag, states.narrow_write, write, producer.depth)
    if not producer.increment:
        flag[:count] = np.uint8(0)
    return count


@inner
def _lanes(main: traversal.State, instruction: Parameters) -> int:
    """Valid lanes of the output block that the iteration belongs to."""
    for loop in range(instruction.output_block_loop, traversal.MAX_LOOPS):
        if not (instruction.reduction_loops >> loop) & 1 and (
            main.index[loop] != instruction.main.limit[loop]
        ):
            return instruction.block_lanes + 1
    return instruction.last_block_lanes + 1


@inner
def _is_first(main: traversal.State, instruction: Parameters) -> bool:
    """Whether the iteration is the first of its reduction."""
    for loop in range(traversal.MAX_LOOPS):
        if (instruction.reduction_loops >> loop) & 1 and main.index[loop]:
            return False
    return True


@inner
def _is_last(main: traversal.State, instruction: Parameters) -> bool:
    """Whether the iteration is the last of its reduction."""
    for loop in range(traversal.MAX_LOOPS):
        if (instruction.reduction_loops >> loop) & 1 and (
            main.index[loop] != traversal.limit_of(main, instruction.main, loop)
        ):
            return False
    return True


@inner
def _tap(main: traversal.State, instruction: Parameters) -> tuple[int, int]:
    """Byte offset and weight of an interpolation's tap: main loops 0 and 1 walk the 2 x 2 taps.

    The nearest pixel alone has weight 1; half a pixel goes up.
    """
    x = instruction.x_start + instruction.x_step * main.index[instruction.x_loop]
    y = instruction.y_start + instruction.y_step * main.index[instruction.y_loop]
    if instruction.nearest_pixel:
        x += _HALF_PIXEL
        y += _HALF_PIXEL
    offset = (x >> 7) * instruction.x_pitch + (y >> 7) * instruction.y_pitch
    if instruction.nearest_pixel:
        return offset, 1
    x_weight = x & 127 if main.index[0] else 128 - (x & 127)
    y_weight = y & 127 if main.index[1] else 128 - (y & 127)
    return offset, x_weight * y_weight
