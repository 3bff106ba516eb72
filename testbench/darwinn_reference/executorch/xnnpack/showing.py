"""The nodes of a graph as a tap and an observer see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from darwinn_formats.errors import ExecutionError

from darwinn_reference.executorch.looking import Look, tensor_place
from darwinn_reference.executorch.values import TensorValue
from darwinn_reference.executorch.xnnpack.operands import Operand
from darwinn_reference.executorch.xnnpack.plan import Step
from darwinn_reference.observation import Operator, Place
from darwinn_reference.protocol import Intermediate

Values = dict[int, Operand]


@dataclass(frozen=True)
class Showing:
    """Shows the nodes of one call: node N of the instruction ``forward.3`` is ``forward.3.N``.

    Values within the graph are called by their id in it, ``forward.3%ID``. Those that are
    arguments of the call (``external``, by id) are the caller's: it shows what was written to them.
    ``constants`` are the ids of values that the graph brings along.
    """

    look: Look
    external: Mapping[int, TensorValue]
    constants: Collection[int]

    def node(self, step: Step, values: Values, run: Callable[[Step, Values], None]) -> None:
        """Run a node, which leaves its results in ``values``."""
        observer = self.look.observer
        if observer is None:
            run(step, values)
        else:
            observer.begin(self._operator(step))
            run(step, values)
            ends = step.inputs, step.outputs
            observer.end(lambda: (self._places(ends[0], values), self._places(ends[1], values)))
        self._tap(step, values)

    def _operator(self, step: Step) -> Operator:
        caller = self.look.caller
        return Operator(f"{caller.name}.{step.number}", step.name, caller.location)

    def _places(self, ids: Iterable[int], values: Values) -> Iterator[Place]:
        for index in ids:
            held, argument = values.get(index), self.external.get(index)
            if held is None:
                continue
            if argument is not None and argument.memory is not None:
                yield tensor_place(argument, argument.memory)
                continue
            array, memory = held.array, (self.look.caller.name, index)
            constant = index in self.constants
            yield Place(memory, 0, array.nbytes, str(array.dtype), array.shape, constant)

    def _tap(self, step: Step, values: Values) -> None:
        tap = self.look.tap
        for index in step.outputs if tap is not None else ():
            held = values.get(index)
            if tap is None or held is None or index in self.external:
                continue
            name = f"{self.look.caller.name}%{index}"
            given = Intermediate(
                name, self.look.step, step.name, held.array, self.look.caller.location
            )
            replacement = tap(given)
            if replacement is None:
                continue
            if replacement.shape != held.array.shape or replacement.dtype != held.array.dtype:
                raise ExecutionError(f"{name}: the replacement is of another shape or type")
            values[index] = replace(held, array=replacement)
