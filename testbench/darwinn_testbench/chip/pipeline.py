"""Segments of a model, one chip after another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from darwinn_testbench.chip.inputs import TensorMap, TensorPort
from darwinn_testbench.chip.model import BoundModel
from darwinn_testbench.chip.session import Inference, Session
from darwinn_testbench.errors import InputError
from darwinn_testbench.policy import AnyArray


class Pipeline:
    """Segments of a model, each on a chip of its own, in the order in which they run.

    A segment takes what any segment before it gives, or the first one takes, under the same name.

    Raises:
        InputError: a tensor that a segment takes is missing, given several times, or of another
            shape or type; or several segments give a result of one name.
    """

    def __init__(self, segments: Sequence[Session]) -> None:
        self.segments = tuple(segments)
        models = [segment.model for segment in self.segments]
        taken: set[str] = set()
        for k, model in enumerate(models[1:], 1):
            for port in model.ports:
                _check_given(port, model, models[:k], models[k:])
            taken |= {port.name for port in model.ports}
        self._results = _results_of(models, taken)

    def infer(self, tensors: TensorMap) -> tuple[Inference, ...]:
        """One inference on the inputs of the first segment: what each segment did.

        Raises:
            SimulationError: a program fails, or uses what the model of the chip lacks.
        """
        known = dict(tensors)
        done: list[Inference] = []
        for segment in self.segments:
            names = [port.name for port in segment.model.ports]
            done.append(segment.infer({name: known[name] for name in names}))
            known |= done[-1].outputs
        return tuple(done)

    def results(self, done: Sequence[Inference]) -> dict[str, AnyArray]:
        """The outputs of the whole: of the last segment, and of others what no segment takes."""
        return {
            name: tensor
            for names, inference in zip(self._results, done, strict=True)
            for name, tensor in inference.outputs.items()
            if name in names
        }


def _check_given(
    port: TensorPort, taker: BoundModel, before: Sequence[BoundModel], later: Sequence[BoundModel]
) -> None:
    """Raise ``InputError`` unless exactly one of the segments before gives what ``port`` takes."""
    first = before[0]
    givers = [(first.file, each) for each in first.ports if each.name == port.name]
    givers += [(model.file, each) for model in before for each in _outputs(model, port.name)]
    if not givers:
        files = ", ".join(model.file for model in before)
        text = f"{taker.file}: its input {port} is given by none before it ({files})"
        after = [model.file for model in later if _outputs(model, port.name)]
        raise InputError(f"{text}; {after[0]} gives it, but runs later" if after else text)
    if len(givers) > 1:
        files = " and ".join(file for file, _ in givers)
        raise InputError(f"{taker.file}: its input {port} is ambiguous: it comes from {files}")
    ((file, found),) = givers
    if (found.shape, found.dtype) != (port.shape, port.dtype):
        raise InputError(f"{taker.file}: its input {port} comes from {file} as {found}")


def _outputs(model: BoundModel, name: str) -> list[TensorPort]:
    return [item.port for item in model.outputs if item.port.name == name]


def _results_of(models: Sequence[BoundModel], taken: set[str]) -> list[set[str]]:
    """Names of each segment's outputs that leave the pipeline."""
    names = [{item.port.name for item in model.outputs} for model in models]
    results = [each - taken for each in names[:-1]] + [names[-1]]
    for (one, own), (other, others) in combinations(zip(models, results, strict=True), 2):
        for name in sorted(own & others):
            raise InputError(f"{one.file} and {other.file} both give a result {name}")
    return results
