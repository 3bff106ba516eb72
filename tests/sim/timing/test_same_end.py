"""Programs end alike in the functional model and in the event model, good or bad.

Random changes to programs by the instruction table. Where one model goes on and the other does not,
the program must leave open an order of units: then its end depends on the timing, and other timings
or orders show that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from random import Random
from typing import Any

import averaging_program
import pytest
from changed_programs import Changed, changed
from darwinn_formats.darwinn import Executable
from darwinn_formats.errors import FormatError
from darwinn_sim import chip, timing
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import (
    ChipFault,
    Deadlock,
    NotEnded,
    PageFault,
    SimulationError,
    UninitialisedRead,
    UnsupportedInstruction,
)
from darwinn_sim.host.buffers import DriverError, layer_bytes
from darwinn_sim.host.memory import PAGE_BYTES
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.timing import trace
from darwinn_testbench.compiler.network import random_convolution, random_dense
from darwinn_testbench.compiler.package import compile_network, compile_stand_alone
from nightly import nightly_seed, nightly_too, note
from random_timing import chip_of, random_chip, random_link

CASES = 60
NIGHTLY_CASES = 3000
WORK = 1 << 22
ROOM = {
    "host_fifo_bytes": chip.HOST_FIFO_BYTES,
    "ring_fifo_rows": chip.RING_FIFO_ROWS,
    "outfeed_rows": chip.RING_FIFO_ROWS,
}
"""As much as the functional model has: a program that needs more is a deadlock in both."""


@cache
def program(name: str) -> Executable:
    """A good program, of several that use all units between them."""
    if name == "averages":
        return averaging_program.executable()
    if name == "dense":
        return compile_stand_alone(random_dense((64, 64), 1)).executables[-1]
    return compile_network(random_convolution(8, 8, 4, 4, 3)).executables[-1]


def end_of(run: Callable[[], object]) -> str:
    """How a run ends: ``good``, or the kind of its fault.

    That outputs never come is seen by the driver in the functional model alone, which knows nothing
    of a link that waits for them; and so it is the same as a deadlock.
    """
    try:
        run()
    except FormatError:
        return "bad input"
    except (UnsupportedInstruction, DecodeError):
        return "refused"
    except (Deadlock, NotEnded):
        return "deadlock"
    except DriverError as error:
        return "deadlock" if "has not signalled" in str(error) else "fault"
    except SimulationError as error:
        assert not isinstance(error, UninitialisedRead), error
        return "fault"
    return "good"


def run(executable: Executable, schedule: int | None = None) -> None:
    """In the functional model, with zeros as inputs; ``schedule``: in another order of units."""
    inputs = {
        layer.name or "": bytes(layer_bytes(layer) * max(1, executable.batch_size))
        for layer in executable.input_layers
    }
    accelerator = Accelerator(work_limit=WORK, schedule=schedule)
    accelerator.run(executable, inputs, as_far_as_it_goes=True)


def leaves_an_order_open(executable: Executable, random: Random) -> bool:
    """Whether some timing, or some order that a run may take, ends the program in one way, and
    another in another."""
    timings, orders = set(), set()
    for _ in range(12):
        described, link = random_chip(random, **ROOM), random_link(random)
        timings.add(end_of(partial(timing.simulate, executable, described, link)))
        orders.add(end_of(partial(run, executable, random.getrandbits(32))))
    return len(timings) > 1 or len(orders) > 1


def check(case: Changed, random: Random) -> str:
    """Compare both ends; the end, or ``race`` where the program leaves it open."""
    functional = end_of(partial(run, case.executable))
    timed = end_of(partial(timing.simulate, case.executable, chip_of(**ROOM)))
    if functional == timed:
        return functional
    assert leaves_an_order_open(case.executable, random), (
        f"run: {functional}, cycles: {timed}, at any timing and in any order: {case.what}"
    )
    return "race"


OUTSIDE: dict[str, tuple[str, dict[str, Any]]] = {
    "a row that arrives": ("RingConsumerA", {"wide_write_base": 2080}),
    "a row that is sent": ("RingProducer", {"wide_read_base": 2080}),
    "parameters": ("TensorSum", {"parameter_read_base": 4 * 2080}),
    "results": ("TensorSum", averaging_program.line("narrow_write", 8, 16, 196_596, 4)),
    "words that are gathered": (
        "NarrowToWide",
        averaging_program.line("narrow_read", 6, 16, 49_140),
    ),
    "a row that is gathered": ("NarrowToWide", {"wide_write_base": 2080}),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_an_address_outside_a_memory_is_the_same_fault(what: str) -> None:
    name, fields = OUTSIDE[what]
    executable = averaging_program.executable(averaging_program.changed(name, **fields))
    faults = []
    for model in (run, timing.simulate):
        with pytest.raises(ChipFault) as caught:
            model(executable)
        fault = caught.value
        faults.append((fault.unit, fault.reason, fault.chunk, fault.pc, fault.tile))
    assert faults[0] == faults[1]


@pytest.mark.parametrize(
    ("size", "more", "error"),
    [
        (averaging_program.INPUT_BYTES, 1 << 20, PageFault),
        (averaging_program.INPUT_BYTES, -averaging_program.INPUT_BYTES, None),
        (averaging_program.OUTPUT_BYTES, 1 << 20, None),
    ],
)
def test_a_transfer_that_leaves_its_buffer_is_the_same_fault(
    size: int, more: int, error: type[SimulationError] | None
) -> None:
    program = averaging_program.operations()
    (place,) = [
        number
        for number, (_, fields) in enumerate(program)
        if fields.get("alu_destination") == 5 and fields.get("alu_b") == size
    ]
    program[place] = ("Scalar", program[place][1] | {"alu_b": size + more})
    executable = averaging_program.executable(program)
    ends = {end_of(partial(model, executable)) for model in (run, timing.simulate)}
    assert len(ends) == 1 and "good" not in ends
    if error is not None:
        for model in (run, timing.simulate):
            with pytest.raises(error):
                model(executable)


def test_bytes_that_are_taken_from_where_nothing_is_mapped_are_the_same_fault() -> None:
    """The instruction that takes inputs goes on to where no page is."""
    program = averaging_program.operations()
    size = averaging_program.INPUT_BYTES
    for number, (name, fields) in enumerate(program):
        if fields.get("alu_destination") == 5 and fields.get("alu_b") == size:
            program[number] = (name, fields | {"alu_b": size + (1 << 20)})
        if name == "PopInput":
            program[number] = (name, fields | averaging_program.line("buffer", 3, 2048, 0))
    executable = averaging_program.executable(program)
    for model in (run, timing.simulate):
        with pytest.raises(PageFault) as caught:
            model(executable)
        assert caught.value.address % PAGE_BYTES == 0


def test_a_program_that_cannot_be_linked_is_not_timed() -> None:
    executable = averaging_program.executable()
    (part,) = executable.instruction_bitstreams
    field = replace(part.field_offsets[0], offset_bit=part.field_offsets[0].offset_bit + 1)
    parts = (replace(part, field_offsets=(field, *part.field_offsets[1:])),)
    with pytest.raises(FormatError, match="offset_bit"):
        timing.simulate(replace(executable, instruction_bitstreams=parts))


@nightly_too
@pytest.mark.parametrize("name", ["averages", "dense", "convolution"])
def test_changed_programs_end_alike(
    name: str, nightly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "MAX_BUNDLES", WORK)
    first, cases = (nightly_seed(), NIGHTLY_CASES) if nightly else (0, CASES)
    ends: Counter[str] = Counter()
    for seed in range(first, first + cases):
        random = Random(f"{name} {seed}")
        case = changed(program(name), random)
        print(f"seed {seed}, {case.what}")
        end = check(case, random)
        print(f"  {end}")
        ends[end] += 1
    if nightly:
        note(f"ends of changed programs, {name}", cases, first)
    assert end_of(partial(run, program(name))) == "good"
    assert ends["good"] and len(ends) > 2, "changes of all kinds"
    assert ends["race"] * 20 <= cases
