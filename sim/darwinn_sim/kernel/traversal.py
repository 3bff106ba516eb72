"""The tensor traversal unit: nested loops that walk addresses, used by every unit that moves data.

A traversal is data (``Parameters``); where it stands is ``State``. ``start`` and ``step`` return
bits: bit d says that a block of depth d (one pass of loops 0 to d-1) begins, or has just ended.
Bit 0, a block of one element, is always set except inside a prologue; a block of a depth beyond the
loops is the whole traversal.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codec import Columns
from darwinn_sim.isa.fields import Traversal
from darwinn_sim.isa.strides import steps
from darwinn_sim.kernel.compiled import compiled
from darwinn_sim.kernel.structure import Numbers, Record, Records

MAX_LOOPS = 8

_ALL_DEPTHS = -1


class Parameters(Record):
    """A traversal: ``limit`` is iterations minus 1, ``step`` the real (un-normalised) stride;
    ``prologue_length`` is 0 without a prologue; ``off`` marks the unused side of a mesh
    instruction; ``inner`` is the innermost loop that has more than one iteration (0 where an
    alternate limit may give one to another).
    """

    base: int
    step: Annotated[Numbers, MAX_LOOPS]
    limit: Annotated[Numbers, MAX_LOOPS]
    loops: int
    double_loop: int
    double_offset: int
    double_start: int
    alternate_limit: int
    alternate_loop: int
    alternate_target: int
    prologue_length: int
    prologue_loop: int
    prologue_base: int
    prologue_last: int
    prologue_stride: int
    off: int
    inner: int


class State(Record):
    """Where a traversal stands; ``second`` is 1 while it addresses the second buffer."""

    index: Annotated[Numbers, MAX_LOOPS]
    address: int
    second: int
    begins: int
    done: int
    prologue_left: int
    prologue_index: int
    prologue_address: int


def lower(traversal: Traversal, columns: Columns, rows: int) -> Records[Parameters]:
    """Traversal parameters of ``rows`` instructions."""
    prefix = traversal.name + "_"
    loops = traversal.loops
    out = Parameters.zeros(rows)
    stride, limit = columns[prefix + "stride"], columns[prefix + "limit"]
    mask = columns[prefix + "mask"]
    out["base"] = columns[prefix + "base"]
    out["step"][:, :loops] = steps(stride, limit, mask)
    out["limit"][:, :loops] = limit
    out["loops"] = loops
    for name in (
        "double_loop",
        "double_offset",
        "double_start",
        "alternate_limit",
        "alternate_loop",
    ):
        out[name] = columns[prefix + name]
    if traversal.prologue:
        on = columns[prefix + "prologue_enable"]
        out["prologue_length"] = on * (columns[prefix + "prologue_inner_limit"] + 1)
        out["prologue_loop"] = columns[prefix + "prologue_loop"]
        out["prologue_base"] = columns[prefix + "prologue_base"]
        out["prologue_last"] = columns[prefix + "prologue_outer_limit"]
        out["prologue_stride"] = columns[prefix + "prologue_outer_stride"]
    out["off"] = (stride[:, 0] == 0) & (limit == 0).all(axis=1)
    out["inner"] = np.where(out["alternate_loop"], 0, (limit > 0).argmax(axis=1))
    return out


@compiled
def start(state: State, parameters: Parameters) -> None:
    """Put ``state`` at the first element of ``parameters``."""
    state.index[:] = 0
    state.address = parameters.base
    state.second = parameters.double_start
    state.done = 0
    state.prologue_address = parameters.prologue_base
    state.begins = _ALL_DEPTHS
    _enter(state, parameters)


@compiled
def follow(state: State, other: State) -> None:
    """Put ``state`` where ``other`` is."""
    for loop in range(MAX_LOOPS):
        state.index[loop] = other.index[loop]
    state.address = other.address
    state.second = other.second
    state.begins = other.begins
    state.done = other.done
    state.prologue_left = other.prologue_left
    state.prologue_index = other.prologue_index
    state.prologue_address = other.prologue_address


@compiled
def _enter(state: State, parameters: Parameters) -> None:
    """Start the prologue if the block before which it stands begins here."""
    state.prologue_left = 0
    state.prologue_index = 0
    if parameters.prologue_length and (state.begins >> (parameters.prologue_loop + 1)) & 1:
        state.prologue_left = parameters.prologue_length


@compiled
def address(state: State, parameters: Parameters) -> int:
    """Address of the current element."""
    if state.prologue_left:
        return state.prologue_address + state.prologue_index
    return state.address + state.second * parameters.double_offset


@compiled
def waits_here(state: State) -> bool:
    """True where watchers are tested: everywhere but inside a prologue that has begun."""
    return bool(state.prologue_left == 0 or state.prologue_index == 0)


@compiled
def limit_of(state: State, parameters: Parameters, loop: int) -> int:
    """Limit of ``loop`` on the present pass, the alternate limit included."""
    alternate = parameters.alternate_loop
    if (
        alternate
        and loop == parameters.alternate_target
        and state.index[alternate] == parameters.limit[alternate]
    ):
        return parameters.alternate_limit
    return parameters.limit[loop]


@compiled
def step(state: State, parameters: Parameters) -> int:
    """Go to the next element; return the bits of the blocks that have ended (0 in a prologue)."""
    if state.prologue_left:
        state.prologue_left -= 1
        state.prologue_index += 1
        state.begins = 0
        if state.prologue_left == 0:
            state.prologue_address += parameters.prologue_stride
            if state.prologue_address > parameters.prologue_last:
                state.prologue_address = parameters.prologue_base
        return 0
    ended = 1
    loop = 0
    while loop < parameters.loops:
        if state.index[loop] < limit_of(state, parameters, loop):
            state.index[loop] += 1
            state.address += parameters.step[loop]
            break
        state.address -= state.index[loop] * parameters.step[loop]
        state.index[loop] = 0
        loop += 1
        ended |= 1 << loop
    state.begins = ended
    if parameters.double_offset and (ended >> parameters.double_loop) & 1:
        state.second ^= 1
    if loop == parameters.loops:
        state.done = 1
        return _ALL_DEPTHS
    _enter(state, parameters)
    return ended


@compiled
def plain_steps(state: State, parameters: Parameters) -> int:
    """Steps to come of the innermost loop alone: no block ends but those of one element."""
    if state.done or state.prologue_left or _has_prologues_within(parameters):
        return 0
    return limit_of(state, parameters, parameters.inner) - state.index[parameters.inner]


@compiled
def _has_prologues_within(parameters: Parameters) -> bool:
    """A prologue stands before each element."""
    block = 2 << parameters.prologue_loop
    return bool(parameters.prologue_length and single_blocks(parameters) & block)


@compiled
def single_blocks(parameters: Parameters) -> int:
    """Bits of the blocks of one element, which begin and end with each step."""
    return (2 << parameters.inner) - 1


@compiled
def changes_side(parameters: Parameters) -> bool:
    """Whether each step goes to the other side of a double buffer."""
    return bool(parameters.double_offset and parameters.double_loop <= parameters.inner)


@compiled
def skip(state: State, parameters: Parameters, steps: int) -> None:
    """Do some of the ``plain_steps`` at once."""
    if steps:
        state.index[parameters.inner] += steps
        state.address += steps * parameters.step[parameters.inner]
        if changes_side(parameters):
            state.second ^= steps & 1
        state.begins = single_blocks(parameters)


@compiled
def before_end(state: State, parameters: Parameters, depth: int, most: int) -> int:
    """Steps up to the last element of the present block of ``depth``, without alternate limit;
    ``most`` if there are more."""
    steps = 0
    block = 1
    for loop in range(min(depth, parameters.loops)):
        steps += (parameters.limit[loop] - state.index[loop]) * block
        if steps >= most:
            return most
        block = min(block * (parameters.limit[loop] + 1), most)
    return steps


@compiled
def ends(state: State, parameters: Parameters, steps: int, depth: int) -> int:
    """Blocks of ``depth`` that end in so many steps, around again or not, without alternate limit
    and prologue."""
    for loop in range(min(depth, parameters.loops)):
        index = state.index[loop] + steps
        if index <= parameters.limit[loop]:
            # Mostly; to divide takes longer than all the rest.
            return 0
        steps = index // (parameters.limit[loop] + 1)
    return steps


@compiled
def advance(state: State, parameters: Parameters, steps: int) -> None:
    """Do so many steps, around again or not, without alternate limit and prologue.

    Where a double buffer has gone around, its side is not known; ``done`` stays as it is.
    """
    if parameters.double_offset:
        state.second ^= ends(state, parameters, steps, parameters.double_loop) & 1
    loop = 0
    while steps and loop < parameters.loops:
        index = state.index[loop] + steps
        steps = 0
        if index > parameters.limit[loop]:
            steps = index // (parameters.limit[loop] + 1)
            index -= steps * (parameters.limit[loop] + 1)
        state.address += (index - state.index[loop]) * parameters.step[loop]
        state.index[loop] = index
        loop += 1
    state.begins = 1
    for depth in range(1, parameters.loops):
        if state.index[depth - 1]:
            break
        state.begins |= 1 << depth


@compiled
def step_around(state: State, parameters: Parameters) -> int:
    """Like :func:`step`, but start again after the last element."""
    ended = step(state, parameters)
    if state.done:
        start(state, parameters)
    return ended


@compiled
def fill(addresses: NDArray[Any], state: State, parameters: Parameters) -> None:
    """Addresses of elements one after another, and around again, as many as there is place for.

    Leaves ``state`` anywhere.
    """
    start(state, parameters)
    if parameters.alternate_loop or parameters.prologue_length:
        for element in range(len(addresses)):
            addresses[element] = address(state, parameters)
            step_around(state, parameters)
        return
    # What loops 0 to d-1 walk comes again in loop d, a stride further.
    addresses[0] = parameters.base
    block = 1
    for loop in range(parameters.loops):
        for again in range(1, parameters.limit[loop] + 1):
            offset = again * parameters.step[loop]
            for element in range(again * block, min((again + 1) * block, len(addresses))):
                addresses[element] = addresses[element - again * block] + offset
            if again * block >= len(addresses):
                break
        block = min(block * (parameters.limit[loop] + 1), len(addresses))
    _fill_sides(addresses, parameters, block)
    for element in range(block, len(addresses)):
        addresses[element] = addresses[element - block]


@compiled
def _fill_sides(addresses: NDArray[Any], parameters: Parameters, elements: int) -> None:
    """Add the offset of the second buffer where it is walked; sides change with each block."""
    if not parameters.double_offset:
        return
    block = _elements(parameters, parameters.double_loop, elements)
    for first in range(0 if parameters.double_start else block, elements, 2 * block):
        for element in range(first, min(first + block, elements)):
            addresses[element] += parameters.double_offset


@compiled
def fill_ends(ended: NDArray[np.uint8], state: State, parameters: Parameters, depth: int) -> int:
    """For each element of a walk whether a block of ``depth`` ends with it; how many there are.

    ``ended`` has a place for each element or more, all 0. Leaves ``state`` anywhere.
    """
    if not (parameters.alternate_loop or parameters.prologue_length):
        count = _elements(parameters, MAX_LOOPS, len(ended))
        block = _elements(parameters, depth, count)
        ended[block - 1 : count : block] = np.uint8(1)
        return count
    start(state, parameters)
    count = 0
    while not state.done:
        ended[count] = (step(state, parameters) >> depth) & 1
        count += 1
    return count


@compiled
def _elements(parameters: Parameters, depth: int, most: int) -> int:
    """Elements of a block of ``depth``, without alternate limit and prologue; ``most`` if there are
    more, of which 64 bits may not hold the number."""
    count = 1
    for loop in range(min(depth, parameters.loops)):
        count = min(count * (parameters.limit[loop] + 1), most)
    return count
