"""An interpreter with the methods of LiteRT's whose Edge TPU is the simulated chip.

An application that makes ``ai_edge_litert.interpreter.Interpreter`` or
``tflite_runtime.interpreter.Interpreter`` with the Edge TPU's delegate makes this one without it,
and runs the whole model: the custom operators on the chip, the operators around them in LiteRT.
"""

from __future__ import annotations

import copy
import functools
import operator
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, SupportsIndex, TypeVar

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.darwinn.schema import IDENTIFIER as PACKAGE
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Content, content_of, name_of
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.litert import TIME_LIMIT, LiteRtProcess
from numpy.typing import ArrayLike

from darwinn_testbench.chip.model import port_of
from darwinn_testbench.chip.operators.chip_operator import operator_on
from darwinn_testbench.chip.operators.parts import PartedGraph
from darwinn_testbench.chip.session import Device
from darwinn_testbench.errors import InputError

Details = dict[str, Any]
"""What LiteRT says of a tensor: name, index, shape, dtype, quantization and more."""


Signatures = dict[str, dict[str, dict[str, int]]]
"""Of each signature ``inputs`` and ``outputs``: tensor indices by name."""

_RESOLVERS = ("AUTO", "BUILTIN", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
_SHOWN_CHARACTERS = 60

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Named(Protocol):
    """An enumeration's member, such as those of LiteRT's ``OpResolverType``."""

    @property
    def name(self) -> str:
        """Its name."""


def _takes(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_FLAG = (_takes(bool, np.bool_), "True or False")
_TAKES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "model_path": (_takes(str, os.PathLike, type(None)), "the path of a file"),
    "model_content": (_takes(bytes, bytearray, memoryview, type(None)), "bytes"),
    "experimental_delegates": (_takes(list, tuple, type(None)), "a list"),
    "num_threads": (
        lambda value: (
            value is None or (isinstance(value, int) and _is_number(value) and value >= 1)
        ),
        "an integer, 1 or more",
    ),
    "experimental_op_resolver_type": (
        lambda value: value is None or getattr(value, "name", None) in _RESOLVERS,
        f"one of LiteRT's OpResolverType: {', '.join(_RESOLVERS)}",
    ),
    "experimental_preserve_all_tensors": _FLAG,
    "strict": _FLAG,
    "assumptions": _FLAG,
    "device": (_takes(Device, type(None)), "a darwinn_testbench.chip.session.Device"),
    "time_limit": (
        lambda value: _is_number(value) and 0 < value <= threading.TIMEOUT_MAX,
        "a finite number of seconds above 0",
    ),
}
"""What each argument of an interpreter may be: whether a value is, and in words."""


def _shown(value: object) -> str:
    """A value of a wrong type, in short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"of type {type(value).__name__}"


def _one_at_a_time(
    method: Callable[Concatenate[Interpreter, Given], Result],
) -> Callable[Concatenate[Interpreter, Given], Result]:
    """A method that other threads wait for."""

    @functools.wraps(method)
    def alone(self: Interpreter, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return alone


class Interpreter:
    """A model of the Edge TPU compiler, or any other, with the methods of LiteRT's interpreter.

    Args:
        model_path: the model's file.
        model_content: its bytes, instead.
        experimental_delegates: none: what the Edge TPU's delegate does is done here.
        num_threads: of LiteRT.
        experimental_op_resolver_type: which kernels of LiteRT, by its ``OpResolverType``; its
            default ones if not given.
        experimental_preserve_all_tensors: keep all tensors between LiteRT's operators too.
        strict: reading memory of the chip that nothing has written is a fault.
        assumptions: False refuses programs with values whose meaning is assumed.
        device: the chip, which interpreters can share; otherwise each custom operator has its own.
        time_limit: seconds for one request to LiteRT.

    Methods raise ``ValueError`` for what LiteRT's raise it for: tensors that do not exist or do not
    fit, calls before ``allocate_tensors``. Threads may share an interpreter: each call is whole, as
    is each of a signature's runner, but what a thread sets another may set anew before it invokes.

    Raises:
        FormatError: the model is not valid.
        InputError: it does not fit the executable in it, or delegates are given.
        ModelError: LiteRT refuses it.
        OSError: the file cannot be read.
        ValueError: an argument is of another type, or out of its range.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[object] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Named | None = None,
        experimental_preserve_all_tensors: bool = False,
        *,
        strict: bool = False,
        assumptions: bool = True,
        device: Device | None = None,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        self._lock = threading.RLock()
        given = locals()
        for argument, (takes, what) in _TAKES.items():
            if not takes(given[argument]):
                raise ValueError(f"{argument} {_shown(given[argument])}: it is {what}")
        if model_path and model_content is not None:
            raise ValueError("model_path and model_content: only one of them can be given")
        source = model_path if model_content is None else bytes(model_content)
        if source is None or source == "":
            raise ValueError("one of model_path and model_content is needed")
        if experimental_delegates:
            raise InputError(
                "delegates: the chip is in this interpreter, it takes no delegate: "
                "leave experimental_delegates out"
            )
        data = Content(content_of(source), name_of(source))
        if data[4:8] == PACKAGE:
            reason = f"file identifier {PACKAGE!r} is not b'TFL3': a bare package: use Session"
            raise FormatError("Model", reason, offset=4, file=data.name)
        self._file, self._model = data.name, tflite.load(data)
        self._process = LiteRtProcess(self._file, time_limit)
        kernels = experimental_op_resolver_type
        self._parts = PartedGraph(
            data,
            self._model,
            self._file,
            lambda place: operator_on(
                place, device or Device(strict=strict, assumptions=assumptions)
            ),
            self._process,
            {
                "kernels": "AUTO" if kernels is None else kernels.name,
                "threads": num_threads,
                "preserve": experimental_preserve_all_tensors,
            },
            every_tensor=experimental_preserve_all_tensors,
        )
        self._graph = self._model.subgraphs[0]
        self._values = self._parts.values
        self._data = data
        self._details, self._signatures = self._described()
        self._allocated = False

    def _described(self) -> tuple[dict[int, Details], Signatures]:
        """What LiteRT says of tensors, by index, and of signatures."""
        data = np.frombuffer(self._data, np.uint8)
        described, _ = self._process.exchange({"request": "describe"}, [data])
        details = (_value(each) for each in described["tensors"])
        return {each["index"]: each for each in details}, described["signatures"]

    @_one_at_a_time
    def allocate_tensors(self) -> None:
        """Make everything ready: LiteRT's operators, and the chip with program and parameters.

        Raises:
            ModelError: LiteRT refuses an operator.
            SimulationError: the chip's program is refused, or the loading of its parameters fails.
        """
        if self._allocated:
            return
        for index, shape in self._parts.prepare().items():
            self._details[index]["shape"] = np.array(shape, np.int32)
        for index in (*self._graph.inputs, *self._parts.targets, *self._graph.outputs):
            self._values.setdefault(index, self._zeros(index))
        self._allocated = True

    def _zeros(self, index: int) -> AnyArray:
        port = port_of(self._graph.tensors[index])
        return np.zeros(tuple(self._details[index]["shape"]), port.dtype)

    @_one_at_a_time
    def reset_all_variables(self) -> None:
        """Give variables the value that they have before the first inference."""
        self._check_allocated()
        self._parts.reset()

    @_one_at_a_time
    def invoke(self) -> None:
        """One inference.

        Raises:
            ModelError: an operator fails in LiteRT.
            SimulationError: the chip's program fails.
        """
        self._check_allocated()
        self._parts.run()

    def get_input_details(self) -> list[Details]:
        """What is to be known of each input; see :meth:`get_tensor_details`."""
        return [self._detail(index) for index in self._graph.inputs]

    def get_output_details(self) -> list[Details]:
        """What is to be known of each output; see :meth:`get_tensor_details`."""
        return [self._detail(index) for index in self._graph.outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[Details]:
        """What LiteRT says of each tensor; ValueError for another graph than the first.

        Keys are ``name``, ``index``, ``shape`` and ``shape_signature`` (int32), ``dtype`` (a
        NumPy type), ``quantization`` (scale and zero point), ``quantization_parameters`` and
        ``sparsity_parameters``.
        """
        _check_first(subgraph_index)
        return [self._detail(index) for index in self._details]

    def _get_ops_details(self) -> list[Details]:
        """What LiteRT says of each operator of the model, before any is given to a delegate.

        Keys are ``index``, ``op_name``, ``inputs`` and ``outputs`` (tensor indices, int32),
        ``operand_types`` and ``result_types`` (NumPy types).
        """
        return [self._get_op_details(index) for index in range(len(self._graph.operators))]

    def _get_op_details(self, op_index: int) -> Details:
        node = self._graph.operators[op_index]
        code = self._model.code(node)
        is_custom = code.operator is tflite.BuiltinOperator.CUSTOM
        return {
            "index": op_index,
            "op_name": code.custom_code if is_custom else code.operator.name,
            "inputs": np.array(node.inputs, np.int32),
            "outputs": np.array(node.outputs, np.int32),
            "operand_types": [self._details[each]["dtype"] for each in node.inputs if each >= 0],
            "result_types": [self._details[each]["dtype"] for each in node.outputs if each >= 0],
        }

    @_one_at_a_time
    def set_tensor(self, tensor_index: int, value: ArrayLike) -> None:
        """Copy ``value`` into an input; ValueError if it is none, or of another type or shape."""
        self._check_allocated()
        index = self._checked(tensor_index)
        array, detail = np.asarray(value), self._details[index]
        name = detail["name"]
        if index not in self._graph.inputs and not self._graph.tensors[index].is_variable:
            raise ValueError(f"Cannot set tensor: {index} ({name}) is not an input")
        if array.dtype != detail["dtype"]:
            found, expected = array.dtype.name.upper(), np.dtype(detail["dtype"]).name.upper()
            raise ValueError(
                f"Cannot set tensor: Got value of type {found} but expected type {expected} "
                f"for input {index}, name: {name}"
            )
        if array.shape != tuple(detail["shape"]):
            raise ValueError(
                f"Cannot set tensor: Dimension mismatch. Got {list(array.shape)} but expected "
                f"{detail['shape'].tolist()} for input {index}, name: {name}"
            )
        np.copyto(self._values[index], array)

    @_one_at_a_time
    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> AnyArray:
        """A copy of a tensor: an input, an output, a constant, or what passes between chip and
        host; ValueError if it is not kept, or of another graph than the first."""
        _check_first(subgraph_index)
        return self._value_of(self._checked(tensor_index)).copy()

    def tensor(self, tensor_index: int) -> Callable[[], AnyArray]:
        """A function that gives a view of the tensor, which lasts until the next inference."""
        index = self._checked(tensor_index)
        return lambda: self._value_of(index)

    def resize_tensor_input(
        self, input_index: int, tensor_size: Sequence[int], strict: bool = False
    ) -> None:
        """Refuse another shape of an input with ValueError: the model runs with the one it has."""
        index = self._checked(input_index)
        shape = self._details[index]["shape"].tolist()
        try:
            asked = np.array(tensor_size, np.int32).tolist()
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"resize_tensor_input: tensor_size {_shown(tensor_size)}: it is a list of integers"
            ) from None
        if asked != shape:
            compiled = self._parts.has_custom_operators
            where = "executable" if compiled else "model, which is not compiled"
            raise ValueError(
                f"resize_tensor_input: input {index} ({self._details[index]['name']}) is "
                f"{shape} in the {where}, and cannot become {asked}"
            )

    def num_subgraphs(self) -> int:
        """Number of the model's graphs."""
        return len(self._model.subgraphs)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs of each signature."""
        return {
            key: {side: list(names) for side, names in signature.items()}
            for key, signature in self._signatures.items()
        }

    def _get_full_signature_list(self) -> Signatures:
        """As :meth:`get_signature_list` with tensor indices: the Coral library looks for it."""
        return copy.deepcopy(self._signatures)

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function of the signature's inputs; ValueError if there is no such signature."""
        if signature_key is None and len(self._signatures) == 1:
            (signature_key,) = self._signatures
        if signature_key is None or signature_key not in self._signatures:
            known = ", ".join(self._signatures) or "none"
            raise ValueError(f"Invalid signature_key provided: {signature_key!r} (known: {known})")
        return SignatureRunner(self, self._signatures[signature_key])

    def _detail(self, index: int) -> Details:
        detail = copy.deepcopy(self._details[index])
        if index in self._values:
            # Some operators decide the shapes of their outputs when they run.
            detail["shape"] = np.array(self._values[index].shape, np.int32)
        return detail

    def _checked(self, index: SupportsIndex) -> int:
        try:
            number = operator.index(index)
        except TypeError:
            raise TypeError(f"tensor index {_shown(index)}: it is an integer") from None
        if number not in self._details:
            raise ValueError(f"Invalid tensor index {number}, the model has {len(self._details)}")
        return number

    def _value_of(self, index: int) -> AnyArray:
        if index not in self._values:
            name = self._details[index]["name"]
            raise ValueError(
                f"Tensor data is null: {index} ({name}) is kept by no one. Run allocate_tensors() "
                "first; tensors inside LiteRT need experimental_preserve_all_tensors"
            )
        return self._values[index]

    def _check_allocated(self) -> None:
        if not self._allocated:
            raise ValueError("Tensor is unallocated. Try calling allocate_tensors() first")


class SignatureRunner:
    """Runs a model by the names of a signature."""

    def __init__(
        self, interpreter: Interpreter, signature: Mapping[str, Mapping[str, int]]
    ) -> None:
        self._interpreter = interpreter
        self._inputs, self._outputs = signature["inputs"], signature["outputs"]

    def __call__(self, **inputs: ArrayLike) -> dict[str, AnyArray]:
        """The outputs by name; ValueError unless exactly the signature's inputs are given."""
        if inputs.keys() != self._inputs.keys():
            raise ValueError(
                f"the inputs of the signature are {', '.join(self._inputs)}, "
                f"not {', '.join(inputs) or 'none'}"
            )
        with self._interpreter._lock:
            self._interpreter.allocate_tensors()
            for name, value in inputs.items():
                self._interpreter.set_tensor(self._inputs[name], value)
            self._interpreter.invoke()
            return {name: self._interpreter.get_tensor(k) for name, k in self._outputs.items()}

    def get_input_details(self) -> dict[str, Details]:
        """As of :meth:`Interpreter.get_input_details`, by name."""
        return self._details(self._inputs)

    def get_output_details(self) -> dict[str, Details]:
        """As of :meth:`Interpreter.get_output_details`, by name."""
        return self._details(self._outputs)

    def _details(self, indices: Mapping[str, int]) -> dict[str, Details]:
        known = {each["index"]: each for each in self._interpreter.get_tensor_details()}
        return {name: known[index] for name, index in indices.items()}


def _check_first(subgraph_index: int) -> None:
    if subgraph_index != 0:
        reason = "graphs that the first one calls are seen by LiteRT alone"
        raise ValueError(f"subgraph_index {subgraph_index}: {reason}")


def _value(sent: Any) -> Any:
    """What LiteRT says, from the JSON of its process (``litert_worker``)."""
    if isinstance(sent, list):
        return tuple(sent)
    if not isinstance(sent, dict):
        return sent
    if sent.keys() == {"array", "dtype"}:
        return np.array(sent["array"], sent["dtype"])
    if sent.keys() == {"type"}:
        return np.dtype(sent["type"]).type
    return {key: _value(value) for key, value in sent.items()}
