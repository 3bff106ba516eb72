"""The event model's entry: cycles of one run of an executable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_formats.limits import Clock
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.chips.selected import selected
from darwinn_sim.errors import ChipFault, Deadlock, NotEnded, SimulationError
from darwinn_sim.host.buffers import DriverError
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.kernel import state
from darwinn_sim.kernel.structure import Records, numbers
from darwinn_sim.machine import layers
from darwinn_sim.machine.completeness import awaits_chunk
from darwinn_sim.machine.lowering import LoweredProgram, lower_executable
from darwinn_sim.timing import engine, stations, transfers, turns, waiting
from darwinn_sim.timing import state as parts
from darwinn_sim.timing.description import ChipDescription, HostLink
from darwinn_sim.timing.host_buffers import HostBuffers
from darwinn_sim.timing.output_copies import output_copies
from darwinn_sim.timing.result import SPAN, LayerTiming, TimedTransfer, Timing
from darwinn_sim.timing.state import Machine
from darwinn_sim.timing.stations import CAUSES, Cause
from darwinn_sim.timing.stretches import stretches
from darwinn_sim.timing.turns import NEVER
from darwinn_sim.units import tensor_reach
from darwinn_sim.units.tensor_bounds import may_leave

DEFAULT_CYCLE_LIMIT = 1 << 36
"""Cycles after which a run is called endless: two minutes of the chip."""

_TURN_CYCLES = 1 << 22
"""Cycles between two looks at the clock: seconds at the most."""

_STATIONS_TOLD = 4
"""Units of a program that does not end whose places are told."""

_SPANS = 1 << 16


def simulate(
    executable: Executable,
    chip_parameters: ChipDescription | None = None,
    host: HostLink | None = None,
    *,
    spans: bool = False,
    limit: int = DEFAULT_CYCLE_LIMIT,
    assumptions: bool = True,
    program: LoweredProgram | None = None,
    chunk_bytes: Sequence[int] | None = None,
) -> Timing:
    """Time one run of ``executable``; the same arguments always give the same cycles.

    It is linked to buffers in the memory of a host, as for a run, so a program which leaves those
    fails here, too.

    Args:
        executable: what to run.
        chip_parameters: the chip (default: ``beagle-max``).
        host: the host link; None is one of endless speed.
        spans: record each execution of an instruction.
        limit: cycles after which the run is called endless.
        assumptions: as ``lowering.lower``.
        program: the executable, if it has been lowered already; it is linked in place. Its
            ``addresses`` are not needed.
        chunk_bytes: what each chunk takes to load, if other bytes than it has.

    Raises:
        FormatError: it has no instructions, or cannot be linked.
        UnsupportedInstruction, DecodeError: as ``lowering.lower``.
        Deadlock: nothing can go on; names who waits for what.
        NotEnded: it takes more cycles than ``limit``, or more seconds or memory than is allowed.
        ChipFault: an address outside of a memory, rows and words that do not fit together, a
            descriptor that the chip refuses, or the program leaves its chunk.
        PageFault, MemoryFault: a transfer leaves the buffers.
        DriverError: it ends without host interrupt 0, or raises it twice; or there is no place for
            its buffers.
    """
    if program is None:
        program = lower_executable(executable, assumptions=assumptions)
    buffers = HostBuffers(executable)
    buffers.link(program, assumptions=assumptions)
    run = _Run(program, chunk_bytes or program.sizes, chip_parameters, host, spans, buffers)
    run.execute(limit)
    timed = replace(run.timing(), output_copies=output_copies(executable))
    _require_completion(timed)
    buffers.check()
    return timed


def simulate_linked(
    program: LoweredProgram,
    chip_parameters: ChipDescription | None = None,
    host: HostLink | None = None,
) -> Timing:
    """As :func:`simulate`, for a program that a host of its own has linked to its own buffers.

    What its transfers reach there is not looked at: the chip that ran it has.
    """
    timed = simulate_program(program, program.sizes, chip_parameters, host)
    _require_completion(timed)
    return timed


def _require_completion(timed: Timing) -> None:
    """A run that ends has raised host interrupt 0 once: that is how the driver learns of it.

    Raises ``DriverError``, as the driver does.
    """
    if awaits_chunk(timed.program.chunks):
        return
    kinds = ((each.kind, each.number) for each in timed.transfers)
    signals = sum(each == (TransferKind.INTERRUPT, 0) for each in kinds)
    if not signals:
        raise DriverError("the device has not signalled completion of the request")
    if signals > 1:
        raise DriverError(f"{signals - 1} host interrupts 0 without a request")


def simulate_program(
    program: LoweredProgram,
    chunk_bytes: Sequence[int],
    chip_parameters: ChipDescription | None = None,
    host: HostLink | None = None,
    *,
    spans: bool = False,
    limit: int = DEFAULT_CYCLE_LIMIT,
) -> Timing:
    """As :func:`simulate`, for any lowered program, whose chunks take ``chunk_bytes`` to load.

    It has no buffers: its transfers may go anywhere, and need not end in an interrupt. What a user
    asks for is timed by the functions above.
    """
    run = _Run(program, chunk_bytes, chip_parameters, host, spans)
    run.execute(limit)
    return run.timing()


class _Run:
    """One run of the event model."""

    def __init__(
        self,
        program: LoweredProgram,
        sizes: Sequence[int],
        chip_parameters: ChipDescription | None,
        host: HostLink | None,
        spans: bool,
        buffers: HostBuffers | None = None,
    ) -> None:
        self.program = program
        described = chip_parameters or selected()
        self.chip = host.clocked(described) if host else described
        self.host = host
        self.recorded: list[Records[parts.Span]] = []
        _mark_faults(program)
        plan = transfers.plan(program, sizes, buffers)
        self.steps = plan.steps
        self.unreachable = plan.unreachable
        instructions = len(program.tables.opcode)
        self.machine = Machine(
            clock=_clock(),
            rates=_rates(self.chip, host),
            stations=_stations(),
            turns=turns.new(_first_turns(), stations.TURN_ORDER),
            counters=numbers(np.zeros(stations.COUNTERS, np.int64)),
            runs=parts.Run.zeros(stations.COUNTERS),
            first_waiter=numbers(np.full(stations.COUNTERS, -1, np.int64)),
            effects=parts.Effect.zeros(parts.MAX_EFFECTS),
            causes=stations.causes(),
            usage=np.zeros((stations.STATIONS, CAUSES), np.int64),
            usage_before=np.zeros((stations.STATIONS, CAUSES), np.int64),
            by_instruction=np.zeros((instructions, CAUSES), np.int64),
            executions=np.tile(np.array([0, NEVER, -1]), (instructions, 1)),
            tile_queue=_queues(chip.TILES, stations.TILE_PLACES),
            unit_queue=_queues(stations.STATIONS, stations.UNIT_PLACES),
            sides=parts.Sides.zeros(chip.TILES),
            flag_cycles=np.zeros((chip.TILES, parts.FLAG_CYCLES), np.int64),
            reserved=np.zeros((stations.STREAMS + 1, 2), np.int64),
            stretches=stretches(program.tables.tensor, program.tables.tensor_plan),
            steps=parts.Step.zeros(0),
            inbound=plan.inbound,
            outbound=plan.outbound,
            writes=parts.Write.zeros(int(self.chip.unanswered_writes.value)),
            spans=parts.Span.zeros(_SPANS if spans else 0),
        )

    def execute(self, limit: int) -> None:
        """Run to the end; raises ``Deadlock``, ``NotEnded``, ``ChipFault`` and ``PageFault``."""
        clock: Clock | None = None
        turn, moved = _TURN_CYCLES, 0
        while True:
            reason = engine.run(self.machine, self.program.tables, min(limit, turn))
            self._take_spans()
            if reason == engine.FAULT:
                raise self._fault()
            if reason == engine.STEPS_USED:
                self._next_steps()
            if reason == engine.LATE:
                if turn >= limit:
                    raise NotEnded(f"{limit} cycles", self._standing())
                turn += _TURN_CYCLES
            if reason == engine.QUIET:
                break
            if clock is None:
                # Not before the first turn, in which kernels may have to be compiled.
                clock = Clock()
            if (now_moved := self._moved()) > moved:
                moved = now_moved
                clock.seen()
            if passed := clock.passed():
                raise NotEnded(passed, self._standing())
        # All runs are over.
        runs = self.machine.runs
        self.machine.counters[:] += runs["rate"] * (runs["last"] - runs["first"])
        left = waiting.describe(self.machine, self.program) or waiting.left_behind(self.machine)
        if left and not (
            awaits_chunk(self.program.chunks) and waiting.core_has_ended(self.machine)
        ):
            raise Deadlock(left)

    def _next_steps(self) -> None:
        """Give the scalar core the next block of its trace."""
        block = next(self.steps, None)
        if block is None:
            self.machine.clock["more_steps"] = 0
        else:
            self.machine = self.machine._replace(steps=block)
            self.machine.stations[stations.CORE]["position"] = 0

    def _moved(self) -> int:
        """Transfers that the host has seen begin."""
        return int((self.machine.inbound["start"] >= 0).sum()) + int(
            (self.machine.outbound["start"] >= 0).sum()
        )

    def _standing(self) -> tuple[str, ...]:
        """How far it is, and where the first units stand."""
        clock = self.machine.clock[0]
        rows = f"{int(clock['ring_rows'])} ring rows in {int(clock['now'])} cycles"
        return rows, *waiting.describe(self.machine, self.program)[:_STATIONS_TOLD]

    def _take_spans(self) -> None:
        clock = self.machine.clock[0]
        self.recorded.append(self.machine.spans[: int(clock["spans"])].copy())
        clock["spans"] = 0

    def _fault(self) -> SimulationError:
        clock = self.machine.clock[0]
        if clock["fault"] == parts.UNREACHABLE:
            return self.unreachable[int(clock["fault_address"])]
        index = int(clock["fault_station"])
        unit, reason = state.FAULT_REASONS[int(clock["fault"])]
        chunk, pc = self.program.locate(
            int(self.program.tables.pc[int(clock["fault_instruction"])])
        )
        tile = index // stations.GROUP_STATIONS - stations.FIRST_TILE_GROUP
        return ChipFault(unit, reason, chunk, pc, tile, int(clock["fault_address"]))

    def timing(self) -> Timing:
        """The result."""
        machine = self.machine
        ends = (machine.inbound["end"], machine.outbound["end"], machine.stations["mark"])
        cycles = max(int(end.max(initial=0)) for end in ends)
        _book_unfinished(machine)
        usage = machine.usage.reshape(stations.GROUPS, stations.GROUP_STATIONS, CAUSES)
        # What is left of each station's time comes after its last instruction.
        usage[:, :, Cause.FINISHED] += cycles - usage.sum(axis=2)
        writers = usage[stations.FIRST_TILE_GROUP : stations.RING_GROUP, stations.WRITER]
        writers[:, Cause.COMPUTE] = writers[:, Cause.FINISHED]
        writers[:, Cause.FINISHED] = 0
        elements = machine.stations["elements"].reshape(stations.GROUPS, stations.GROUP_STATIONS)
        apart = slice(stations.LINK_IN_APART, stations.CHIP_STATIONS)
        elements[stations.CHIP_GROUP, stations.LINK_IN] += elements[
            stations.CHIP_GROUP, apart
        ].sum()
        tiles = slice(stations.FIRST_TILE_GROUP, stations.RING_GROUP)
        own = slice(0, len(stations.CHIP_STATION_NAMES))
        never = machine.executions[:, 0] == 0
        machine.executions[never, 1:] = -1
        return Timing(
            chip=self.chip,
            host=self.host,
            program=self.program,
            cycles=cycles,
            tile_usage=usage[tiles].copy(),
            chip_usage=usage[stations.CHIP_GROUP, own].copy(),
            tile_elements=elements[tiles].copy(),
            chip_elements=elements[stations.CHIP_GROUP, own].copy(),
            instructions=machine.by_instruction,
            executions=machine.executions,
            transfers=(*_timed(machine.inbound), *_timed(machine.outbound)),
            ring_rows=int(machine.clock[0]["ring_rows"]),
            ring_words=int(elements[stations.RING_GROUP, 0]),
            ring_busy=int(usage[stations.RING_GROUP, 0, Cause.BUSY]),
            layers=_layer_timings(machine, self.program),
            spans=self._spans(),
        )

    def _spans(self) -> NDArray[np.void]:
        recorded = np.concatenate(self.recorded)
        out = np.zeros(len(recorded), SPAN)
        group, station = np.divmod(recorded["station"], stations.GROUP_STATIONS)
        out["tile"] = np.where(group == stations.CHIP_GROUP, -1, group - stations.FIRST_TILE_GROUP)
        out["station"] = station
        for name in ("instruction", "start", "end"):
            out[name] = recorded[name]
        # A station's spans were recorded as they ended: what it spent is the growth since the last.
        order = np.argsort(recorded["station"], kind="stable")
        used, owner = recorded["usage"][order], recorded["station"][order]
        same = np.diff(owner, prepend=-1) == 0
        out["spent"][order] = used - np.where(same[:, None], np.roll(used, 1, axis=0), 0)
        return out[np.lexsort((out["station"], out["tile"], out["start"]))]


def _mark_faults(program: LoweredProgram) -> None:
    """Note which segments of tensor instructions reach beyond the memories."""
    tensor, plan = program.tables.tensor, program.tables.tensor_plan
    leave = np.flatnonzero(may_leave(tensor))
    if leave.size:
        tensor_reach.mark(tensor[leave], plan._replace(place=plan.place[leave]))


def _clock() -> Records[parts.Clock]:
    clock = parts.Clock.zeros(1)
    clock["more_steps"] = 1
    return clock


def _queues(queues_of: int, places: int) -> Records[Records[state.QueueEntry]]:
    queues: Any = np.zeros((queues_of, places), state.QueueEntry.dtype)
    return cast("Records[Records[state.QueueEntry]]", queues)


def _stations() -> Records[parts.Station]:
    table = parts.Station.zeros(stations.STATIONS)
    table["waits_on"] = table["next_waiter"] = -1
    table["instruction"] = parts.NO_INSTRUCTION
    table["cause"] = Cause.DISPATCH
    return table


def _first_turns() -> NDArray[np.int64]:
    """Stations that look for work at the beginning: all but those that others start."""
    first = np.full((stations.GROUPS, stations.GROUP_STATIONS), NEVER)
    first[stations.CHIP_GROUP, : stations.CHIP_STATIONS] = 0
    first[stations.FIRST_TILE_GROUP : stations.RING_GROUP, : stations.RECEIVE] = 0
    first[:, stations.WRITER][stations.FIRST_TILE_GROUP :] = NEVER
    return first.reshape(-1)


def _rates(chip_parameters: ChipDescription, host: HostLink | None) -> Records[parts.Rates]:
    rates = parts.Rates.zeros(1)
    for name in ChipDescription.parameters():
        if name in (parts.Rates.dtype.names or ()):
            rates[name] = int(getattr(chip_parameters, name).value)
    words = int(chip_parameters.result_queue_words.value)
    rates["result_queue_cycles"] = words // rates["result_words_per_cycle"]
    if host:
        for name, speed in (
            ("link_in_time", host.bytes_per_second_in),
            ("link_out_time", host.bytes_per_second_out),
        ):
            cycles_per_byte = chip_parameters.clock.value / speed.value
            rates[name] = round(cycles_per_byte * parts.LINK_UNITS)
        rates["link_on_request"] = int(host.on_request.value)
    return rates


_TRANSFER_KINDS = {
    parts.PARAMETERS: (TransferKind.PARAMETER, TransferDirection.INFEED),
    parts.ACTIVATIONS: (TransferKind.INPUT, TransferDirection.INFEED),
    parts.INSTRUCTIONS: (TransferKind.INSTRUCTION, TransferDirection.INFEED),
    parts.OUTPUT: (TransferKind.OUTPUT, TransferDirection.OUTFEED),
    parts.INTERRUPT: (TransferKind.INTERRUPT, TransferDirection.OUTFEED),
}


def _timed(transfers: Records[parts.Transfer]) -> tuple[TimedTransfer, ...]:
    return tuple(
        TimedTransfer(*_TRANSFER_KINDS[kind], size, number, issued, start, end)
        for kind, size, number, _, _, issued, start, end in transfers.tolist()
        if kind in _TRANSFER_KINDS
    )


def _book_unfinished(machine: Machine) -> None:
    """Book on instructions that have not ended what they have taken: a program may lack a part."""
    instructions = machine.stations["instruction"]
    under_way = instructions >= 0
    spent = (machine.usage - machine.usage_before)[under_way]
    np.add.at(machine.by_instruction, instructions[under_way], spent)


def _layer_timings(machine: Machine, program: LoweredProgram) -> tuple[LayerTiming, ...]:
    """The times of the layers of a program, all of which have instructions."""
    found = layers.find(program.chunks)
    if not found:
        return ()
    members = np.concatenate([layer.instructions for layer in found])
    begins = np.cumsum([0, *(len(layer.instructions) for layer in found[:-1])])
    runs, first, last = machine.executions[members].T
    rows = program.tables.row[members]
    spent = machine.by_instruction[members]
    per_run = np.where(runs > 0, spent[:, Cause.BUSY] // np.maximum(runs, 1), 0)
    iterations = program.tables.tensor_plan.place["iterations"][rows] * runs
    products = _products(program)[rows] * runs
    start = np.minimum.reduceat(np.where(runs > 0, first, NEVER), begins)
    columns = (
        np.where(start == NEVER, -1, start),
        np.maximum.reduceat(last, begins),
        np.maximum.reduceat(per_run, begins),
        np.add.reduceat(iterations, begins),
        np.add.reduceat(products, begins),
    )
    cycles = np.add.reduceat(spent, begins, axis=0)
    return tuple(
        LayerTiming(layer.number, start, end, own, busiest, iterations, products)
        for layer, own, start, end, busiest, iterations, products in zip(
            found, cycles, *(each.tolist() for each in columns), strict=True
        )
    )


def _products(program: LoweredProgram) -> NDArray[np.int64]:
    """8 x 8 bit products of one execution of each tensor instruction, by its row."""
    tensor = program.tables.tensor
    # As np.bitwise_count of the lanes that work, which NumPy 1.26 lacks.
    working = np.ascontiguousarray(tensor["working"], np.int64).view(np.uint8)
    bits = np.unpackbits(working.reshape(len(tensor), -1), axis=1).sum(axis=1, dtype=np.int64)
    products: NDArray[np.int64] = program.tables.tensor_plan.place["cells"] * bits
    return products
