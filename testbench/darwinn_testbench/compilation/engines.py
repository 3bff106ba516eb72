"""Whether all that execute a program agree: the chip, its lifted program, its times, the RTL.

The verdict of ``compile`` rests on runs on the simulated chip, on the proof and on the hazard
checker. Here the same inferences are made on the lifted program, the event model is asked twice,
and on demand the SystemVerilog harness runs the program, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from darwinn_formats.files import Content
from darwinn_sim import timing
from darwinn_sim.lifting.program import lift
from darwinn_sim.lifting.walk import NotLifted

from darwinn_testbench.chip.cycles import time_executable
from darwinn_testbench.chip.inputs import TensorMap, random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.engine import Engine

INFERENCES = 5
"""Inferences on the lifted program, one of each kind of inputs."""
TOLERANCE = 0.01
"""How far, relatively, the event model's cycles of the harness may be off (docs/timing.md)."""


@dataclass(frozen=True)
class Agreement:
    """What the engines found of a program.

    ``reason`` is the first difference; empty if there is none. ``cycles`` are those of the event
    model for an inference, parameters not included; ``rtl_cycles`` those of the RTL, if it ran.
    """

    reason: str = ""
    cycles: int = 0
    rtl_cycles: int | None = None


def compare_engines(
    compiled: bytes, before: bytes, name: str, *, seed: int = 0, rtl: bool = False
) -> Agreement:
    """Run a compiled model, nothing of which is on the CPU, on all engines.

    Args:
        compiled: the compiled model.
        before: the same before compilation.
        name: for messages.
        seed: of inputs.
        rtl: run the RTL, too.

    Raises:
        SimulationError: the program fails.
        Unavailable: the RTL cannot be built here.
    """
    (model,) = open_models(Content(compiled, name))
    cycles, reason = _times(model)
    reason = reason or _lifted(model, seed)
    if reason or not rtl:
        return Agreement(reason, cycles)
    found = verify(
        Content(compiled, name),
        Content(before, f"{name}, before compilation"),
        engine=Engine.RTL,
        assumptions=False,
        proof=False,
        hazards=False,
    )
    if found.verdict.failed:
        return Agreement(f"RTL: {found.headline}", cycles)
    measured = found.rows[0].rtl_cycles
    assert measured is not None
    return Agreement(_beside_rtl(model, measured), cycles, measured)


def _times(model: BoundModel) -> tuple[int, str]:
    """Cycles of an inference, and what is wrong with the times of the executables."""
    chip = timing.chip_description("beagle-max")
    link = timing.host_link(chip.host)
    cycles = 0
    for executable in filter(None, (model.compiled.caching, model.compiled.inference)):
        kind = executable.type.name
        rows = [time_executable(executable, kind, chip, link, assumptions=False) for _ in range(2)]
        if rows[0].cycles is None:
            return 0, f"event model, {kind}: {rows[0].message}"
        if rows[0].cycles != rows[1].cycles:
            return 0, f"event model, {kind}: {rows[0].cycles} and then {rows[1].cycles} cycles"
        cycles = rows[0].cycles
    return cycles, ""


def _lifted(model: BoundModel, seed: int) -> str:
    """Where the lifted program gives other bytes than runs of the program, of the same states."""
    session = Session(model, lifts=False)
    runs, sets = [], []
    for tensors in random_inputs(model.ports, seed, INFERENCES):
        sets.append(model.to_device({**session.states, **tensors}))
        runs.append(session.infer(tensors).outputs)
    try:
        program = lift(session.accelerator, model.compiled.inference)
    except NotLifted as error:
        return f"not lifted: {error}"
    for number, octets in enumerate(program.run(sets)):
        given = model.from_device(octets)
        for name in _differing(runs[number], given):
            return f"the lifted program gives other bytes of {name} in inference {number}"
    return ""


def _differing(one: TensorMap, other: TensorMap) -> Iterator[str]:
    return (name for name, each in one.items() if each.tobytes() != other[name].tobytes())


def _beside_rtl(model: BoundModel, measured: int) -> str:
    """Whether the event model predicts the cycles of the harness."""
    harness, link = timing.chip_description("harness"), timing.host_link("harness")
    predicted = timing.simulate(model.compiled.inference, harness, link).cycles
    if abs(predicted - measured) <= TOLERANCE * measured:
        return ""
    return f"the RTL takes {measured:,} cycles, the event model says {predicted:,}"
