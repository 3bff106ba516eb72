"""An ExecuTorch program on the CPU, behind the protocol of all references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from darwinn_formats import executorch
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch import ProgramFile, schema
from darwinn_formats.files import Source

from darwinn_reference.executorch import xnnpack
from darwinn_reference.executorch.indexing import index_limit
from darwinn_reference.executorch.interpreter import Backend, Method, refuse_missing
from darwinn_reference.executorch.looking import port_name
from darwinn_reference.executorch.natives import Native
from darwinn_reference.observation import Observer
from darwinn_reference.protocol import Datum, Output, Port, Steps, Tap

DEFAULT_METHOD = "forward"

BACKENDS: Mapping[str, Backend] = {
    xnnpack.BACKEND: lambda program: xnnpack.open_delegate(
        program.payload, program.named_data, program.offset
    )
}
"""Delegates that are executed without being given a backend."""


class Interface:
    """The methods that can be called, and what they take and give.

    Attributes:
        file: the program.
        functions: names of the methods in file order.
    """

    def __init__(self, file: ProgramFile) -> None:
        self.file = file
        self.functions = file.methods

    def inputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Inputs of a method; primitive ones have no type, for they must be what is stored."""
        return ports_of(self.file, self.name_of(function))[0]

    def outputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Outputs of a method."""
        return ports_of(self.file, self.name_of(function))[1]

    def name_of(self, function: str | None) -> str:
        """The name of a method; of None the only one, or ``forward``.

        Raises:
            ExecutionError: there is none.
        """
        known = ", ".join(self.functions)
        if function is None:
            function = self.functions[0] if len(self.functions) == 1 else DEFAULT_METHOD
            if function not in self.functions:
                raise ExecutionError(f"which method? {known} (--function NAME chooses)")
        if function not in self.functions:
            raise ExecutionError(f"no method {function!r}; there are: {known}")
        return function


class ExecutorchReference(Interface):
    """A program on the CPU (see ``protocol.Reference``). ``methods`` restricts what is loaded.

    Every method has values and memory of its own, as in the original runtime. With
    ``placeholders`` operators and delegates that are missing write zeros: a call then shows the
    operators, and its results mean nothing. ``natives`` are Python functions: operators by their
    full names, delegates by their ids.

    Raises:
        FormatError: the file is no valid program.
        Unsupported: operators, types of elements or delegates of any of the methods are missing;
            all are named.
        OSError: the file cannot be read.
    """

    observable = True

    def __init__(
        self,
        program: Source | ProgramFile,
        *,
        methods: Sequence[str] | None = None,
        backends: Mapping[str, Backend] | None = None,
        placeholders: bool = False,
        natives: Mapping[str, Native] | None = None,
    ) -> None:
        super().__init__(program if isinstance(program, ProgramFile) else executorch.load(program))
        wanted = self.functions if methods is None else methods
        plans = [self.file.method(self.name_of(name)) for name in wanted]
        available = {**BACKENDS, **(backends or {})}
        if not placeholders:
            refuse_missing(plans, natives or (), available)
        self.methods = {
            plan.name: Method(
                self.file, plan, available, placeholders=placeholders, natives=natives
            )
            for plan in plans
        }
        self.functions = tuple(self.methods)

    def run(
        self,
        inputs: Sequence[Datum],
        *,
        function: str | None = None,
        tap: Tap | None = None,
        observer: Observer | None = None,
    ) -> tuple[Output, ...]:
        """Call a method; see ``protocol.ObservableReference.run``."""
        name = self.name_of(function)
        results = self.methods[name].run(inputs, tap, observer)
        return tuple(
            Output(port.name, result, port.scale, port.zero_point)
            for port, result in zip(self.outputs(name), results, strict=True)
        )

    def reset(self) -> None:
        """Put every method back to what it was after loading."""
        for method in self.methods.values():
            method.reset()


def ports_of(file: ProgramFile, name: str) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Inputs and outputs of the method of a name."""
    plan = file.method(name)
    return (
        tuple(_port(plan, index, f"input{at}") for at, index in enumerate(plan.inputs)),
        tuple(_port(plan, index, f"output{at}") for at, index in enumerate(plan.outputs)),
    )


def _port(plan: schema.ExecutionPlan, index: int, fallback: str) -> Port:
    value = plan.values[index].val
    if not isinstance(value, schema.Tensor):
        return Port(fallback, None, None)
    is_bfloat16 = value.scalar_type is schema.ScalarType.BFLOAT16
    dtype = np.dtype(np.float32) if is_bfloat16 else schema.DTYPES.get(value.scalar_type)
    is_static = value.shape_dynamism is schema.TensorShapeDynamism.STATIC
    shape = tuple(size if is_static else None for size in value.sizes)
    scale, zero_point = _quantisation(plan, index)
    steps = _steps(plan, index) if dtype is not None and dtype.kind == "f" else None
    limit = index_limit(plan, index) if dtype is not None and dtype.kind in "iu" else None
    bounds = None if is_static else tuple(value.sizes)
    name = port_name(plan, index, fallback)
    return Port(name, dtype, shape, scale, zero_point, steps, bounds, limit)


_RESULT = -1
_WHOLE_TENSOR: Mapping[str, int] = {
    "quantized_decomposed::quantize_per_tensor.out": _RESULT,
    "cortex_m::quantize_per_tensor.out": _RESULT,
    "quantized_decomposed::dequantize_per_tensor.out": 0,
    "cortex_m::dequantize_per_tensor.out": 0,
}
"""Operators that quantise or dequantise a whole tensor, and which argument that tensor is."""

_LEAST = 4
"""Arguments of these: a tensor, its scale, its zero point, and the result."""


def _quantisation(plan: schema.ExecutionPlan, index: int) -> tuple[float | None, int | None]:
    """Scale and zero point of a tensor that the plan quantises or dequantises as a whole."""
    for args, place in _conversions(plan):
        if args[place] == index:
            scale, zero_point = (plan.values[entry].val for entry in args[1:3])
            if isinstance(scale, schema.Double) and isinstance(zero_point, schema.Int):
                return scale.double_val, zero_point.int_val
    return None, None


def _steps(plan: schema.ExecutionPlan, index: int) -> Steps | None:
    """What a floating point tensor is rounded to where the plan quantises or dequantises it."""
    for args, place in _conversions(plan):
        # The floating point tensor is at the other end of the arguments.
        if args[-1 - place] != index or (place == _RESULT and _is_read_as_float(plan, index)):
            continue
        stored = plan.values[args[place]].val
        scale, zero_point = _quantisation(plan, args[place])
        dtype = schema.DTYPES.get(stored.scalar_type) if isinstance(stored, schema.Tensor) else None
        if scale and zero_point is not None and dtype is not None and dtype.kind in "iu":
            return Steps(scale, zero_point, np.dtype(dtype))
    return None


def _is_read_as_float(plan: schema.ExecutionPlan, index: int) -> bool:
    """Whether a call other than one that quantises takes a tensor."""
    calls = (
        instruction.instr_args.args
        for chain in plan.chains
        for instruction in chain.instructions
        if isinstance(instruction.instr_args, schema.KernelCall | schema.DelegateCall)
    )
    quantising = [args for args, place in _conversions(plan) if place == _RESULT]
    return any(index in args and args not in quantising for args in calls)


def _conversions(plan: schema.ExecutionPlan) -> Iterator[tuple[Sequence[int], int]]:
    """Arguments of each call that quantises or dequantises, and the place of the integers."""
    for chain in plan.chains:
        for instruction in chain.instructions:
            step = instruction.instr_args
            if not isinstance(step, schema.KernelCall):
                continue
            name = plan.operators[step.op_index].full_name
            place = _WHOLE_TENSOR.get(name)
            # What is called with too few arguments is a fault where it is called.
            if place is not None and len(step.args) >= _LEAST:
                yield step.args, place
