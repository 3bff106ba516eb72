"""Compiled models on a simulated chip: parameters loaded once, then any number of inferences."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darwinn_formats.brief import brief
from darwinn_formats.darwinn import CompiledModel, Executable
from darwinn_reference.arrays import AnyArray
from darwinn_sim.accelerator import Accelerator, RunResult, compile_kernels
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.machine.examine import StopPoint, Tap
from darwinn_sim.machine.lowering import LoweredProgram

from darwinn_testbench.chip.ahead import Ahead, Lifted, number_of, what_follows
from darwinn_testbench.chip.inputs import TensorMap, TensorPort, require_mapping
from darwinn_testbench.chip.model import BoundModel
from darwinn_testbench.chip.preload import Preload
from darwinn_testbench.errors import InputError


@brief
@dataclass(frozen=True)
class Inference:
    """One inference: output tensors by name, what the chip did, and the seconds it took here.

    The seconds are those of the run: without compilation, decoding and the loading of parameters.
    """

    outputs: dict[str, AnyArray]
    result: RunResult
    seconds: float

    cpu_seconds: ClassVar[float] = 0.0

    @property
    def on_chip(self) -> tuple[Inference, ...]:
        """The runs of chips that it is made of (see :class:`segment.Inferred`)."""
        return (self,)


class Device:
    """A chip, and the parameters that are cached on it.

    Models that were compiled together carry the same token and have their parameters in different
    places, so all of them stay cached; a model with another token makes all be loaded anew.
    ``strict`` makes reading memory that nothing has written a fault; ``seed`` fills such memory.
    ``preloads`` are in wide memory before anything runs. Without ``assumptions`` a program that
    holds assumed values is refused. ``accelerator`` is the chip itself, if it is to be another one.
    Sessions that share it may be in several threads: ``lock`` is for one inference at a time.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        seed: int = 0,
        preloads: Sequence[Preload] = (),
        assumptions: bool = True,
        accelerator: Accelerator | None = None,
    ) -> None:
        self.accelerator = accelerator or Accelerator(
            strict=strict, seed=seed, assumptions=assumptions
        )
        self.lock = threading.RLock()
        self.preloads = tuple(preloads)
        self._power_ups = 0
        self._token: int | None = None
        self._cached: list[Executable] = []

    def cache(self, model: CompiledModel) -> RunResult | None:
        """Make the chip ready for ``model``; None if its parameters are there, or it has none.

        Raises:
            SimulationError: the parameter-caching executable fails.
        """
        if self._power_ups != self.accelerator.power_ups:
            self._power_ups = self.accelerator.power_ups
            self._token = None
            for preload in self.preloads:
                preload.apply(self.accelerator)
        if self._token != model.token:
            self._token, self._cached = model.token, []
        caching = model.caching
        if caching is None or any(caching is each for each in self._cached):
            return None
        result = self.accelerator.run(caching, {}, number=model.caching_number)
        self._cached.append(caching)
        return result


class Session:
    """A model on a chip, which keeps its state from one inference to the next.

    ``states`` are the variables of the model, by port name: what an inference returns as
    ``X_variable_output`` is X in the next one, as the vendor's runtime does it.

    Sessions can share a ``device``; without one the session has a chip of its own, made with the
    other arguments (see :class:`Device`). Without ``lifts`` each inference is a run of the program,
    however many there are.

    Raises:
        InputError: ``model`` is no model of ``open_models``.
    """

    def __init__(
        self,
        model: BoundModel,
        *,
        device: Device | None = None,
        lifts: bool = True,
        strict: bool = False,
        seed: int = 0,
        preloads: Sequence[Preload] = (),
        assumptions: bool = True,
    ) -> None:
        if not isinstance(model, BoundModel):
            raise InputError(
                "a session is of one of the models that open_models gives of a file, "
                f"Session(open_models(file)[0]); given is {_shown(model)}"
            )
        self.model = model
        self.device = device or Device(
            strict=strict, seed=seed, preloads=preloads, assumptions=assumptions
        )
        self.lifts = lifts
        self.caching: RunResult | None = None
        self.states: dict[str, AnyArray] = {}
        self.reset_states()
        self._ahead = Ahead(model, self.device.accelerator)
        self._looked_inside = False

    def reset_states(self) -> None:
        """Give variables the value that they have before the first inference."""
        self.states = {
            item.port.name: item.constant
            for item in self.model.states.values()
            if item.constant is not None
        }

    @property
    def file(self) -> str:
        """The model's file."""
        return self.model.file

    @property
    def ports(self) -> tuple[TensorPort, ...]:
        """The tensors that a caller supplies."""
        return self.model.ports

    @property
    def results(self) -> tuple[TensorPort, ...]:
        """The tensors that are given."""
        return tuple(item.port for item in self.model.outputs)

    @property
    def sessions(self) -> tuple[Session, ...]:
        """This one: a segment of a pipeline may have several."""
        return (self,)

    @property
    def accelerator(self) -> Accelerator:
        """The chip."""
        return self.device.accelerator

    @property
    def assumed(self) -> tuple[Assumption, ...]:
        """What the results of the chip rest on without evidence; see ``Accelerator.assumed``."""
        return self.accelerator.assumed

    @property
    def program(self) -> LoweredProgram:
        """The inference's program as the chip executes it; see :meth:`Accelerator.load`."""
        return self.accelerator.load(self.model.compiled.inference)

    def prepare(self) -> None:
        """What an inference needs and is no part of it: kernels, program and parameters.

        Raises:
            SimulationError: as :meth:`infer`.
        """
        with self.device.lock:
            # First, so that what is refused does not wait for the kernels.
            _ = self.program
            compile_kernels()
            self.load_parameters()

    def load_parameters(self) -> RunResult | None:
        """Run the parameter-caching executable unless the chip holds its parameters.

        Returns what its last run did; None if it never ran here.

        Raises:
            SimulationError: the program fails, or uses what the model of the chip lacks.
        """
        self.caching = self.device.cache(self.model.compiled) or self.caching
        return self.caching

    def expect(self, sets: Sequence[TensorMap] | int, more: int = 0) -> None:
        """Say that inferences on ``sets`` (by port name) follow, in this order, or how many will;
        and about how many ``more``, here or in other processes.

        Where they are many, they are made on a lifted program (:mod:`ahead`), known inputs many at
        once, and :meth:`infer` gives what it would have given; ``lifted`` says what came of that.
        It makes no difference for models with variables, nor where something is asked for that
        needs a run of each inference. An inference on other inputs than the next of these is made
        by itself, and these wait for it to come.

        Raises:
            InputError: neither a sequence of sets of inputs nor a number of inferences. Of a list
                or a tuple all sets are looked at, of another sequence the first.
        """
        known, unknown = what_follows(sets, self.model.require)
        self._ahead.expect(known, unknown + number_of(more))

    @property
    def _runs_each(self) -> str:
        """Why each inference is a run of the program; empty if it may be lifted."""
        accelerator = self.accelerator
        reasons = (
            (not self.lifts, "the session is one that does not lift"),
            (bool(self.model.states), "variables go from one inference to the next"),
            (accelerator.strict, "a strict chip looks at each run"),
            (not accelerator.liftable, "what is asked of the chip needs a run of each"),
        )
        return next((reason for holds, reason in reasons if holds), "")

    @property
    def lifted(self) -> Lifted | None:
        """What has come of lifting the program, or why it is not tried where many inferences are
        expected; None if it was not tried, for few."""
        if self._ahead.lifted != Lifted():
            return self._ahead.lifted
        looked = "stop points and taps look at each run" if self._looked_inside else ""
        reason = self._runs_each or looked
        return Lifted(reason=reason) if reason and self._ahead.are_many else None

    def infer(
        self,
        tensors: TensorMap,
        *,
        until: StopPoint | None = None,
        taps: Sequence[Tap] = (),
        as_far_as_it_goes: bool = False,
    ) -> Inference:
        """One inference on ``tensors`` (by port name), prepared first if need be.

        Variables have the values that the inference before has left, unless ``tensors`` says
        otherwise. The options are those of :meth:`Accelerator.run`. After many inferences the
        program is lifted, as if they had been expected.

        Raises:
            InputError: ``tensors`` are no set of inputs (:meth:`BoundModel.require`), or there is
                nothing that ``until`` or ``taps`` name.
            SimulationError: the program fails, or uses what the model of the chip lacks.
        """
        with self.device.lock:
            return self._infer(tensors, until, taps, as_far_as_it_goes)

    def _infer(
        self,
        tensors: TensorMap,
        until: StopPoint | None,
        taps: Sequence[Tap],
        as_far_as_it_goes: bool,
    ) -> Inference:
        given = require_mapping(tensors, self.model.ports)
        inputs = self.model.to_device({**self.states, **given})
        self.prepare()
        self._looked_inside |= bool(until or taps)
        ahead = None if until or self._runs_each else self._ahead
        if ahead is not None:
            if not taps and (made := ahead.take(inputs)) is not None:
                return Inference(self.model.from_device(made[0].outputs), *made)
            ahead.begins()
        begin = time.perf_counter()
        try:
            result = self.accelerator.run(
                self.model.compiled.inference,
                inputs,
                until=until,
                taps=taps,
                as_far_as_it_goes=as_far_as_it_goes,
                number=self.model.compiled.number,
            )
        except ValueError as error:
            if isinstance(error, DecodeError) or not (until or taps):
                raise
            # A stop point or a tap that this program does not have, seen before it runs.
            raise InputError(str(error)) from error
        seconds = time.perf_counter() - begin
        if ahead is not None:
            ahead.ran(inputs, result)
        outputs = self.model.from_device(result.outputs)
        for name, variable in self.model.states.items():
            if name in outputs and variable.port.name in self.states:
                # A copy: outputs are the caller's, who may write into them.
                self.states[variable.port.name] = outputs[name].reshape(variable.port.shape).copy()
        return Inference(outputs, result, seconds)


def _shown(given: object) -> str:
    """What was given for a model, briefly."""
    return (
        repr(given) if isinstance(given, str | os.PathLike) else f"of type {type(given).__name__}"
    )
