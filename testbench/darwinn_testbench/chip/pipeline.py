"""Segments of a model, one chip after another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Protocol

from darwinn_reference.arrays import AnyArray
from darwinn_sim.accelerator import Accelerator

from darwinn_testbench.chip.inputs import TensorMap, TensorPort
from darwinn_testbench.chip.session import Inference, Session
from darwinn_testbench.errors import InputError


class SegmentInference(Protocol):
    """What came of one inference of a segment."""

    @property
    def outputs(self) -> dict[str, AnyArray]:
        """What it gives, by name."""

    @property
    def on_chip(self) -> tuple[Inference, ...]:
        """The runs of chips that it is made of."""

    @property
    def seconds(self) -> float:
        """Seconds of this machine for all of it."""

    @property
    def cpu_seconds(self) -> float:
        """Those of the operators that are the host's on a real machine, too."""


class Segment(Protocol):
    """What takes tensors and gives others: a model on a chip, with or without the host's part."""

    @property
    def file(self) -> str:
        """The model's file."""

    @property
    def ports(self) -> tuple[TensorPort, ...]:
        """The tensors that it takes."""

    @property
    def results(self) -> tuple[TensorPort, ...]:
        """The tensors that it gives."""

    @property
    def sessions(self) -> tuple[Session, ...]:
        """Models on chips, in the order in which they run."""

    def expect(self, sets: Sequence[TensorMap] | int, more: int = 0) -> None:
        """Say which inferences follow, or how many, as :meth:`Session.expect`."""

    def infer(self, tensors: TensorMap) -> SegmentInference:
        """One inference on ``tensors``, by name; SimulationError if a program fails."""

    def reset_states(self) -> None:
        """Give variables the value that they have before the first inference."""


class Pipeline:
    """Segments of a model, each on a chip of its own, in the order in which they run.

    A segment takes what any segment before it gives, or the first one takes, under the same name.

    Raises:
        InputError: a tensor that a segment takes is missing, given several times, or of another
            shape or type; or several segments give a result of one name.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        taken: set[str] = set()
        for k, segment in enumerate(self.segments[1:], 1):
            for port in segment.ports:
                _check_given(port, segment, self.segments[:k], self.segments[k:])
            taken |= {port.name for port in segment.ports}
        self._results = _results_of(self.segments, taken)

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The models on chips of all segments, in their order."""
        return tuple(session for segment in self.segments for session in segment.sessions)

    @property
    def accelerators(self) -> list[Accelerator]:
        """The chips, of which models may share one."""
        return list({id(each.accelerator): each.accelerator for each in self.sessions}.values())

    def power_up(self) -> None:
        """Power all chips up; variables have their first value."""
        for accelerator in self.accelerators:
            accelerator.power_up()
        for segment in self.segments:
            segment.reset_states()

    @property
    def ports(self) -> tuple[TensorPort, ...]:
        """The tensors that the whole gives, as :meth:`results` names them."""
        return tuple(
            port
            for names, segment in zip(self._results, self.segments, strict=True)
            for port in segment.results
            if port.name in names
        )

    def expect(self, sets: Sequence[TensorMap]) -> None:
        """Say that inferences on ``sets``, inputs of the first segment, follow in this order."""
        first, *others = self.segments
        first.expect(sets)
        for segment in others:
            segment.expect(len(sets))

    def infer(self, tensors: TensorMap) -> tuple[SegmentInference, ...]:
        """One inference on the inputs of the first segment: what each segment did.

        Raises:
            InputError: as of the first segment, but for names that it does not take.
            SimulationError: a program fails, or uses what the model of the chip lacks.
        """
        known = dict(tensors)
        done: list[SegmentInference] = []
        for segment in self.segments:
            names = [port.name for port in segment.ports]
            done.append(segment.infer({name: known[name] for name in names if name in known}))
            known |= done[-1].outputs
        return tuple(done)

    def results(self, done: Sequence[SegmentInference]) -> dict[str, AnyArray]:
        """The outputs of the whole: of the last segment, and of others what no segment takes."""
        return {
            name: tensor
            for names, inference in zip(self._results, done, strict=True)
            for name, tensor in inference.outputs.items()
            if name in names
        }

    @staticmethod
    def sent(done: Sequence[SegmentInference]) -> dict[str, AnyArray]:
        """All that the chips have sent to their hosts, by name."""
        return {
            name: tensor
            for inference in done
            for run in inference.on_chip
            for name, tensor in run.outputs.items()
        }


def _check_given(
    port: TensorPort, taker: Segment, before: Sequence[Segment], later: Sequence[Segment]
) -> None:
    """Raise ``InputError`` unless exactly one of the segments before gives what ``port`` takes."""
    first = before[0]
    givers = [(first.file, each) for each in first.ports if each.name == port.name]
    givers += [(model.file, each) for model in before for each in _outputs(model, port.name)]
    if not givers:
        files = ", ".join(model.file for model in before)
        text = f"{taker.file}: no model before it computes its input {port} ({files})"
        after = [model.file for model in later if _outputs(model, port.name)]
        raise InputError(f"{text}; {after[0]} computes it, but runs later" if after else text)
    if len(givers) > 1:
        files = " and ".join(file for file, _ in givers)
        raise InputError(f"{taker.file}: its input {port} is ambiguous: it comes from {files}")
    ((file, found),) = givers
    if (found.shape, found.dtype) != (port.shape, port.dtype):
        raise InputError(f"{taker.file}: its input {port} comes from {file} as {found}")


def _outputs(segment: Segment, name: str) -> list[TensorPort]:
    return [port for port in segment.results if port.name == name]


def _results_of(models: Sequence[Segment], taken: set[str]) -> list[set[str]]:
    """Names of each segment's outputs that leave the pipeline."""
    names = [{port.name for port in model.results} for model in models]
    results = [each - taken for each in names[:-1]] + [names[-1]]
    for (one, own), (other, others) in combinations(zip(models, results, strict=True), 2):
        for name in sorted(own & others):
            raise InputError(f"{one.file} and {other.file} both compute a result {name}")
    return results
