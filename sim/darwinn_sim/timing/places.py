"""What units reach for has a place: of memories, the event model has their bounds alone.

A station that reaches further is a fault of the run.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.kernel import state, traversal
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.instructions import WideToNarrow
from darwinn_sim.timing.state import Machine
from darwinn_sim.units import memories

FIRST_STAYS, SECOND_STAYS = 1, 2
"""Bits of ``Station.stays``."""


@inner
def check(machine: Machine, index: int, holds: bool, fault: int, address: int) -> None:
    """Unless it ``holds``, the instruction of a station is at fault."""
    clock = machine.clock[0]
    if not holds and not clock.fault:
        clock.fault = fault
        clock.fault_station = index
        clock.fault_instruction = machine.stations[index].instruction
        clock.fault_address = address


@inner
def stays(position: traversal.State, parameters: traversal.Parameters, places: int) -> int:
    """1 if no address from where a traversal starts can be beyond a memory of so many places.

    It may be 0 if none is: then each is looked at.
    """
    least = greatest = position.address
    for loop in range(parameters.loops):
        limit = parameters.limit[loop]
        if parameters.alternate_loop and loop == parameters.alternate_target:
            limit = max(limit, parameters.alternate_limit)
        least += min(limit * parameters.step[loop], 0)
        greatest += max(limit * parameters.step[loop], 0)
    least += min(parameters.double_offset, 0)
    greatest += max(parameters.double_offset, 0)
    if parameters.prologue_length:
        if parameters.prologue_stride < 0:
            return 0
        last = max(parameters.prologue_base, parameters.prologue_last)
        least = min(least, parameters.prologue_base)
        greatest = max(greatest, last + parameters.prologue_length - 1)
    return int(least >= 0 and greatest < places)


@inner
def check_first_row(machine: Machine, index: int, parameters: traversal.Parameters) -> None:
    """Wide memory has the row that the first traversal of a station is at."""
    station = machine.stations[index]
    if not station.stays & FIRST_STAYS:
        check_row(machine, index, station.first, parameters)


@inner
def check_first_words(
    machine: Machine, index: int, parameters: traversal.Parameters, elements: int
) -> None:
    """Narrow memory has the words of the next ``elements`` of the first traversal of a station."""
    station = machine.stations[index]
    if station.stays & FIRST_STAYS:
        return
    if elements == 1:
        check_word(machine, index, station.first, parameters)
    else:
        check_words(machine, index, station.first, parameters, elements)


@inner
def check_row(
    machine: Machine, index: int, position: traversal.State, parameters: traversal.Parameters
) -> None:
    """Wide memory has the row that a traversal is at."""
    row = traversal.address(position, parameters)
    check(machine, index, not memories.lacks_row(row), state.FAULT_WIDE_ADDRESS, row)


@inner
def check_word(
    machine: Machine, index: int, position: traversal.State, parameters: traversal.Parameters
) -> None:
    """Narrow memory has the word that a traversal is at."""
    address = memories.word_address(position, parameters)
    lacks = memories.lacks_word(address)
    check(machine, index, not lacks, state.FAULT_NARROW_ADDRESS, chip.WORD_BYTES * address)


@inner
def _other_side(position: traversal.State, parameters: traversal.Parameters) -> int:
    """How far the next step's address lies off for the sides of a double buffer."""
    if traversal.changes_side(parameters):
        return -parameters.double_offset if position.second else parameters.double_offset
    return 0


@inner
def check_words(
    machine: Machine,
    index: int,
    position: traversal.State,
    parameters: traversal.Parameters,
    elements: int,
) -> None:
    """The same for ``elements`` plain steps from where a traversal is, outside its prologue."""
    step = parameters.step[parameters.inner]
    first = traversal.address(position, parameters)
    other = _other_side(position, parameters)
    if elements == 0 or (other == 0 and memories.has_words(first, first + (elements - 1) * step)):
        return
    for k in range(elements):
        address = memories.wrapped(first + k * step + (k & 1) * other)
        if memories.lacks_word(address):
            byte = chip.WORD_BYTES * address
            check(machine, index, False, state.FAULT_NARROW_ADDRESS, byte)
            return


@inner
def check_scales(
    machine: Machine,
    index: int,
    position: traversal.State,
    parameters: traversal.Parameters,
    elements: int,
) -> None:
    """The scale/bias buffer has the words of ``elements`` plain steps of a traversal."""
    other = _other_side(position, parameters)
    for k in range(elements):
        address = (
            traversal.address(position, parameters)
            + k * parameters.step[parameters.inner]
            + (k & 1) * other
        )
        lacks = memories.lacks_scales(address)
        check(machine, index, not lacks, state.FAULT_SCALE_BIAS_ADDRESS, address)


@inner
def check_write(machine: Machine, index: int, parameters: WideToNarrow, elements: int) -> None:
    """The memory has the places of the next ``elements`` words of wide-to-narrow."""
    write = machine.stations[index].second
    if machine.stations[index].stays & SECOND_STAYS:
        return
    if parameters.scale_bias:
        check_scales(machine, index, write, parameters.narrow_write, elements)
    elif elements == 1:
        check_word(machine, index, write, parameters.narrow_write)
    else:
        check_words(machine, index, write, parameters.narrow_write, elements)
