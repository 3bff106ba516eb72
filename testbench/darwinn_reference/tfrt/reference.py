"""A BEF file that runs on the CPU, behind the protocol of all references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.files import Source
from darwinn_formats.tfrt import BefFile, DType, load
from darwinn_formats.tfrt.encoding import DTYPE_OF_TEXT, DTYPES, INTEGERS
from darwinn_formats.tfrt.text.operations import CHAIN as CHAIN_TYPE
from darwinn_formats.tfrt.text.type_names import OLD_TENSOR
from darwinn_formats.tfrt.text.type_names import TENSOR as TENSOR_TYPE

from darwinn_reference.errors import names_of
from darwinn_reference.observation import INPUT, OUTPUT, Observer, show_port
from darwinn_reference.protocol import Datum, Output, Port, Tap
from darwinn_reference.tfrt.definition import KernelDefinition
from darwinn_reference.tfrt.executor import execute
from darwinn_reference.tfrt.host import Host
from darwinn_reference.tfrt.kernels.native import native_functions
from darwinn_reference.tfrt.kernels.tensors import DenseHostTensor
from darwinn_reference.tfrt.plan import FunctionPlan, NativeFunction
from darwinn_reference.tfrt.preparation import prepare
from darwinn_reference.tfrt.registry import KERNELS
from darwinn_reference.tfrt.seeing import KernelTap, KernelWatch, value_places
from darwinn_reference.tfrt.values import CHAIN, ErrorValue, Value

STRING_TYPE: Final = "!tfrt.string"
_DEFAULT_FUNCTIONS: Final = ("forward", "main")
_DTYPES: Final = {
    np.dtype(np.bool_ if dtype is DType.I1 else DTYPES[dtype].numpy): dtype
    # Quantised integers and bfloat16 lie in memory as plain ones do, which come before them.
    for dtype in reversed(DTYPES)
    if DTYPES[dtype].numpy
}


def dense(array: Any) -> DenseHostTensor:
    """A dense tensor with a copy of an array.

    Raises:
        ExecutionError: for an element type that dense tensors do not have.
    """
    data = np.array(array, order="C")
    dtype = _DTYPES.get(data.dtype)
    if dtype is None:
        raise ExecutionError(f"a dense tensor cannot hold elements of type {data.dtype}")
    return DenseHostTensor(dtype, data)


class TfrtReference:
    """Functions of a BEF file.

    Chains are not inputs or outputs: they are passed and dropped. Tensors
    (``!tfrt_tensor.tensor``) are arrays. ``natives`` are native functions by name; they take and
    give the values of kernels, dense tensors as ``DenseHostTensor`` (see ``dense``), and raise
    KernelError. ``kernels`` are kernels besides those of the registry.
    """

    observable = True

    def __init__(
        self,
        program: BefFile | Source,
        *,
        natives: Mapping[str, NativeFunction] | None = None,
        kernels: Mapping[str, KernelDefinition] | None = None,
        output: TextIO | None = None,
        workers: int | None = None,
        init_function: str | None = None,
        print_error_code: bool = False,
    ) -> None:
        """Prepare all functions.

        ``workers`` are threads of the work queue, ``init_function`` is called once, before any
        other; with ``print_error_code`` errors of results show their code.

        Raises:
            FormatError: the file is not valid.
            Unsupported: naming all kernels, or native functions, that are missing.
        """
        self.file = program if isinstance(program, BefFile) else load(program)
        self.host = Host(output=output, workers=workers)
        known = {**native_functions(self.host), **(natives or {})}
        plans = prepare(self.file, self.host, {**KERNELS, **(kernels or {})}, known)
        self._plans = {plan.name: plan for plan in plans if plan.name}
        self._first = init_function
        self._print_error_code = print_error_code

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of all functions, in the order of the file."""
        return tuple(self._plans)

    def inputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Arguments of a function, without chains."""
        return _ports("arg", self._plan(function).argument_types)

    def outputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Results of a function, without chains."""
        return _ports("result", self._plan(function).result_types)

    def reset(self) -> None:
        """Nothing: a function leaves no state to the next call."""

    def run(
        self,
        inputs: Sequence[Datum],
        *,
        function: str | None = None,
        tap: Tap | None = None,
        observer: Observer | None = None,
    ) -> tuple[Output, ...]:
        """Call a function.

        Raises:
            ExecutionError: the inputs do not fit, or a result is an error.
        """
        if self._first is not None:
            first, self._first = self._first, None
            self.run([], function=first)
        plan = self._plan(function)
        arguments = _arguments(plan, inputs)
        self.host.tap = None if tap is None else KernelTap(tap)
        self.host.watch = None if observer is None else KernelWatch(observer)
        _show(observer, INPUT, _ports("arg", plan.argument_types, True), arguments)
        try:
            with self.host.session():
                values = self.host.wait(execute(self.host, plan, arguments))
        finally:
            self.host.tap = self.host.watch = None
        _show(observer, OUTPUT, _ports("result", plan.result_types, True), values)
        outputs = []
        for port, value in zip(_ports("result", plan.result_types, True), values, strict=True):
            if isinstance(value, ErrorValue):
                code = f", code: {value.code}" if self._print_error_code else ""
                raise ExecutionError(f"{plan.name}: {port.name}: {value.message}{code}")
            if value is not CHAIN:
                outputs.append(Output(port.name, _datum(value)))
        return tuple(outputs)

    def _plan(self, function: str | None) -> FunctionPlan:
        if function is None:
            runnable = [name for name, plan in self._plans.items() if plan.native is None]
            defaults = [name for name in _DEFAULT_FUNCTIONS if name in runnable]
            if len(runnable) != 1 and not defaults:
                known = names_of(runnable)
                raise ExecutionError(f"which function? {known} (--function NAME chooses)")
            function = runnable[0] if len(runnable) == 1 else defaults[0]
        if function not in self._plans:
            known = names_of(self._plans)
            raise ExecutionError(f"there is no function {function!r}, only {known}")
        return self._plans[function]


def _show(
    observer: Observer | None, kind: str, ports: Sequence[Port], values: Sequence[Value]
) -> None:
    """Tell of inputs or outputs, but of no chains."""
    for port, value in zip(ports, values, strict=True):
        if observer is not None and value is not CHAIN:
            show_port(observer, kind, port.name, value_places([(port.name, value)]))


def _ports(prefix: str, types: tuple[str, ...], chains: bool = False) -> tuple[Port, ...]:
    return tuple(
        _port(f"{prefix}{number}", text)
        for number, text in enumerate(types)
        if chains or text != CHAIN_TYPE
    )


def _port(name: str, text: str) -> Port:
    dtype = DTYPE_OF_TEXT.get(text)
    if dtype is None or not DTYPES[dtype].numpy:
        return Port(name, None, None)
    return Port(name, np.dtype(np.bool_ if dtype is DType.I1 else DTYPES[dtype].numpy), ())


def _arguments(plan: FunctionPlan, inputs: Sequence[Datum]) -> list[Value]:
    wanted = [text for text in plan.argument_types if text != CHAIN_TYPE]
    if len(wanted) != len(inputs):
        raise ExecutionError(f"{plan.name}: {len(wanted)} inputs are needed, not {len(inputs)}")
    given = iter(inputs)
    return [
        CHAIN if text == CHAIN_TYPE else _argument(f"{plan.name}: arg{number}", text, next(given))
        for number, text in enumerate(plan.argument_types)
    ]


def _argument(name: str, text: str, value: Datum) -> Value:
    if text in (TENSOR_TYPE, OLD_TENSOR):
        return dense(value)
    if text == STRING_TYPE and isinstance(value, str):
        return value
    dtype = DTYPE_OF_TEXT.get(text)
    if dtype is None or value is None or isinstance(value, str) or np.ndim(value) != 0:
        raise ExecutionError(f"{name}: {text} cannot be given as {type(value).__name__}")
    number = np.asarray(value).item()
    if dtype is DType.I1:
        return bool(number)
    if dtype in INTEGERS:
        limits = np.iinfo(DTYPES[dtype].numpy)
        if not isinstance(number, int) or not limits.min <= number <= limits.max:
            raise ExecutionError(f"{name}: {number} is not an {text}")
        return number
    return np.float32(number) if dtype is DType.F32 else number


def _datum(value: Value) -> Datum:
    if isinstance(value, DenseHostTensor):
        return value.data
    if value is None or isinstance(value, bool | int | float | str | np.ndarray | np.generic):
        return value.item() if isinstance(value, np.generic) else value
    return str(value)
