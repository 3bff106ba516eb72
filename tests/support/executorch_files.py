"""Small files of the ExecuTorch formats with everything in them that the schemas have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from darwinn_formats import darwinn, executorch
from darwinn_formats import flatbuffer as fb
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)
STATE = np.array([1, -2, 3], np.int32)


def package() -> bytes:
    """A DarwiNN package, as the payload of a delegate."""
    return darwinn.dump(darwinn.Package.of(darwinn.Executable(name="on the chip")))


def parts() -> tuple[schema.Program, tuple[bytes, ...]]:
    """A program with two methods, all kinds of values and instructions, and its segments."""
    program = ProgramBuilder()
    method = program.method("forward")
    x = method.input(np.float32, (2, 3), is_bound=True, name="x")
    y = method.tensor(np.float32, (2, 3), dim_order=(1, 0))
    state = method.state(STATE, name="state")
    method.call("aten::add.out", x, program.constant(WEIGHTS), 1, outputs=[y])
    condition = method.argument(True)
    index = method.value(schema.OptionalTensorList((state.index, -1)))
    method.step(schema.JumpFalseCall(condition.index, 3))
    method.step(schema.MoveCall(y.index, y.index))
    method.delegates.append(
        schema.BackendDelegate(
            "EdgeTpuBackend",
            schema.BackendDelegateDataReference(schema.DataLocation.SEGMENT, 2),
            (schema.CompileSpec("chip", b"beagle"),),
        )
    )
    method.delegates.append(schema.BackendDelegate("Other", schema.BackendDelegateDataReference()))
    method.step(schema.DelegateCall(0, (x.index, y.index)))
    method.step(schema.FreeCall(y.index))
    for content in (1.5, "text", None, [1, 2], [0.5], [True, False], [x, y]):
        method.argument(content)
    method.output(y, index)
    getter = program.method("get")
    getter.output(getter.argument(42))
    root, segments = program.program()
    forward = root.execution_plan[0]
    (chain,) = forward.chains
    frames = schema.FrameList((schema.Frame("net.py", 7, "forward", "y = x + w"),))
    chain = replace(
        chain,
        inputs=(x.index,),
        outputs=(y.index,),
        stacktrace=(frames,) * len(chain.instructions),
    )
    forward = replace(
        forward,
        chains=(chain,),
        container_meta_type=schema.ContainerMetadata("[1]", "[1]"),
        non_const_buffer_device=(schema.NonConstBufferDevice(1),),
    )
    root = replace(
        root,
        execution_plan=(forward, root.execution_plan[1]),
        backend_delegate_data=(schema.BackendDelegateInlineData(fb.Span(memoryview(b"blob"))),),
        named_data=(schema.NamedData("weights", 2),),
    )
    return root, (*segments, package())


def program_bytes() -> bytes:
    """The file of ``parts``."""
    return executorch.dump(*parts())


def changed(**fields: Any) -> bytes:
    """The file of ``parts`` with fields of the first method replaced."""
    root, segments = parts()
    forward = replace(root.execution_plan[0], **fields)
    return executorch.dump(
        replace(root, execution_plan=(forward, *root.execution_plan[1:])), segments
    )


def with_value(index: int, **fields: Any) -> bytes:
    """The file of ``parts`` with fields of a value of the first method replaced."""
    values = list(parts()[0].execution_plan[0].values)
    content: Any = values[index].val
    values[index] = schema.EValue(replace(content, **fields))
    return changed(values=tuple(values))


def with_step(position: int, step: Any) -> bytes:
    """The file of ``parts`` with an instruction of the first method replaced."""
    (chain,) = parts()[0].execution_plan[0].chains
    steps = list(chain.instructions)
    steps[position] = schema.Instruction(step)
    return changed(chains=(replace(chain, instructions=tuple(steps)),))


def data_bytes(name: str = "linear.weight", **layout: Any) -> bytes:
    """A file of external data with WEIGHTS and with something that is no tensor."""
    described = schema.TensorLayout(schema.ScalarType.FLOAT32, (2, 3), (0, 1))
    root = schema.FlatTensor(
        named_data=(
            schema.ExternalData(name, 0, replace(described, **layout)),
            schema.ExternalData("blob", 1),
        )
    )
    return executorch.dump_data(root, (WEIGHTS.tobytes(), b"blob"))


def external_program() -> bytes:
    """A program that adds external data to its input."""
    program = ProgramBuilder()
    method = program.method()
    x = method.input(np.float32, (2, 3))
    y = method.tensor(np.float32, (2, 3))
    info = schema.ExtraTensorInfo(
        fully_qualified_name="linear.weight", location=schema.TensorDataLocation.EXTERNAL
    )
    weight = method.value(
        schema.Tensor(
            schema.ScalarType.FLOAT32, sizes=(2, 3), dim_order=(0, 1), extra_tensor_info=info
        )
    )
    method.call("aten::add.out", x, weight, 1, outputs=[y])
    method.output(y)
    return program.build()


def bundle_bytes(program: bytes | None = None, method: str = "forward", **tensor: Any) -> bytes:
    """A bundled program with one test case, which holds."""
    inner = program_bytes() if program is None else program
    stored = schema.BundledTensor(
        schema.ScalarType.FLOAT32, (2, 3), WEIGHTS.tobytes(), dim_order=(0, 1)
    )
    case = schema.MethodTestCase(
        (schema.BundledValue(replace(stored, **tensor)), schema.BundledValue(schema.BundledInt(1))),
        (
            schema.BundledValue(schema.BundledDouble(0.5)),
            schema.BundledValue(schema.BundledBool(True)),
            schema.BundledValue(),
        ),
    )
    suite = schema.MethodTestSuite(method, (case,))
    return fb.write(schema.BundledProgram(2, (suite,), fb.Span(memoryview(inner))))
