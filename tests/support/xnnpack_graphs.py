"""Programs with one XNNPACK delegate, put together value by value and node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from darwinn_formats import executorch
from darwinn_formats import flatbuffer as fb
from darwinn_formats.executorch import schema as program_schema
from darwinn_formats.executorch import xnnpack
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import NO_VALUE, Datatype
from numpy.typing import NDArray

DTYPES = {
    Datatype.FP32: np.float32,
    Datatype.FP16: np.float16,
    Datatype.QINT8: np.int8,
    Datatype.QUINT8: np.uint8,
    Datatype.INT32: np.int32,
}


class GraphBuilder:
    """A graph; inputs and outputs are arguments of the delegate in the order they are added.

    Inputs have to be added before outputs.
    """

    def __init__(self) -> None:
        self.values: list[schema.Value] = []
        self.nodes: list[schema.Node] = []
        self.constants: list[bytes] = []
        self.ports: list[schema.TensorValue] = []

    def value(
        self,
        datatype: Datatype,
        dims: Sequence[int],
        quantisation: Any = None,
        *,
        data: NDArray[Any] | None = None,
        flags: int = 0,
    ) -> int:
        """Add a value; ``quantisation`` may be scale and zero point. Returns its id."""
        if isinstance(quantisation, tuple):
            quantisation = schema.PerTensorQuant(*quantisation)
        index = len(self.values)
        constant = 0 if data is None else self.constant(data)
        tensor = schema.TensorValue(
            datatype,
            len(dims),
            tuple(dims),
            constant,
            len(self.ports) if flags else NO_VALUE,
            flags,
            index,
        )
        if flags:
            self.ports.append(tensor)
        self.values.append(
            schema.Value(
                tensor
                if quantisation is None
                else schema.QuantizedTensorValue(tensor, quantisation)
            )
        )
        return index

    def constant(self, data: NDArray[Any]) -> int:
        """Add constant data; returns its index."""
        self.constants.append(np.ascontiguousarray(data).tobytes())
        return len(self.constants)

    def input(self, datatype: Datatype, dims: Sequence[int], quantisation: Any = None) -> int:
        return self.value(datatype, dims, quantisation, flags=schema.EXTERNAL_INPUT)

    def output(self, datatype: Datatype, dims: Sequence[int], quantisation: Any = None) -> int:
        return self.value(datatype, dims, quantisation, flags=schema.EXTERNAL_OUTPUT)

    def node(self, operation: Any, limits: tuple[float, float] | None = None) -> None:
        bounds = None if limits is None else schema.OutputMinMax(*limits)
        self.nodes.append(schema.Node(operation, output_min_max=bounds))

    def graph(self) -> schema.Graph:
        def ids(flag: int) -> tuple[int, ...]:
            return tuple(entry.external_id for entry in self.ports if entry.flags & flag)

        return schema.Graph(
            "0",
            tuple(self.nodes),
            tuple(self.values),
            len(self.ports),
            ids(schema.EXTERNAL_INPUT),
            ids(schema.EXTERNAL_OUTPUT),
        )

    def payload(self) -> bytes:
        return xnnpack.dump(self.graph(), self.constants)

    def program(self) -> bytes:
        """A program whose method is one call of the delegate."""
        return program_of(self.payload(), self.ports)


def program_of(payload: bytes, ports: Sequence[schema.TensorValue]) -> bytes:
    """A program that calls a delegate of a payload on tensors like its external values."""
    program = ProgramBuilder()
    method = program.method()
    arguments = []
    for port in ports:
        dtype = DTYPES[port.datatype]
        if port.flags & schema.EXTERNAL_INPUT:
            arguments.append(method.input(dtype, port.dims))
        else:
            arguments.append(method.tensor(dtype, port.dims))
            method.output(arguments[-1])
    method.delegates.append(
        program_schema.BackendDelegate(
            "XnnpackBackend",
            program_schema.BackendDelegateDataReference(program_schema.DataLocation.INLINE, 0),
        )
    )
    method.step(program_schema.DelegateCall(0, tuple(entry.index for entry in arguments)))
    root, segments = program.program()
    data = program_schema.BackendDelegateInlineData(fb.Span(memoryview(payload)))
    fields = {name: getattr(root, name) for name in ("version", "execution_plan", "segments")}
    return executorch.dump(
        program_schema.Program(
            **fields,
            constant_segment=root.constant_segment,
            backend_delegate_data=(data,),
        ),
        segments,
    )
