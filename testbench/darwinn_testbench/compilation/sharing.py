"""Whether programs that share a chip leave each other's parameters alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darwinn_formats.files import Content
from darwinn_reference.arrays import AnyArray

from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Device, Session

_SEED = 1


def check_sharing(compiled: Sequence[bytes]) -> str:
    """Run compiled models in turn on one chip, and each alone.

    Returns:
        the first difference; empty if all outputs are equal, and each model that keeps parameters
        on the chip loads them once.

    Raises:
        SimulationError: a program fails.
    """
    models = [
        open_models(Content(data, f"piece {number}"))[0] for number, data in enumerate(compiled)
    ]
    expected = [_outputs(Session(model, lifts=False)) for model in models]
    device = Device()
    sessions = [Session(model, device=device, lifts=False) for model in models]
    loads = [0] * len(models)
    for turn in range(2):
        for number, session in enumerate(sessions):
            before = device.accelerator.runs
            found = _outputs(session)
            loads[number] += device.accelerator.runs - before - 1
            for name, each in expected[number].items():
                if each.tobytes() != found[name].tobytes():
                    return f"piece {number} gives other bytes of {name} in turn {turn} of a chip"
    again = [number for number, count in enumerate(loads) if count > 1]
    if again and all(_shares(model) for model in models):
        return f"piece {again[0]} loads its parameters {loads[again[0]]} times"
    return ""


def _shares(model: BoundModel) -> bool:
    """Whether a model keeps parameters on the chip."""
    return model.compiled.caching is not None


def _outputs(session: Session) -> Mapping[str, AnyArray]:
    """Those of one inference from the states that a model begins with."""
    session.reset_states()
    (tensors,) = random_inputs(session.model.ports, _SEED, 1)
    return session.infer(tensors).outputs
