"""A trial for each value of the formats' enumerations, and for each refusal of a member.

A trial makes the smallest file, or part of one, that has the value, and executes what there is to
execute; it raises what the project raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from darwinn_formats import darwinn, executorch, iree, tfrt
from darwinn_formats.darwinn import schema as darwinn_schema
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_formats.iree.schema import Feature, ModuleDependency, Presence
from darwinn_formats.tfrt import DType, FunctionKind, Kind
from darwinn_formats.tfrt.attributes import AttributeReader
from darwinn_formats.tfrt.cursor import Cursor
from darwinn_formats.tfrt.encoding import ARRAY_FLAG, DTYPES, LocationKind, SectionId
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.iree import IMPORTS, IreeReference
from darwinn_reference.tfrt import TfrtReference
from darwinn_sim.host.dma_trace import expected_entry
from darwinn_testbench.compiler import compile_network, compile_stand_alone, random_dense
from executorch_files import changed, data_bytes, external_program, program_bytes, with_value
from iree_modules import FunctionSource, imports, module

# --- DarwiNN -------------------------------------------------------------------------------------


def _layer_type(value: darwinn_schema.DataType) -> object:
    item = (
        1 if value is darwinn_schema.DataType.BFLOAT else darwinn.dtype_of(_layer(value)).itemsize
    )
    return darwinn.to_tensor(replace(_layer(value), size_bytes=item), bytes(item))


def _layer(value: darwinn_schema.DataType) -> darwinn.Layer:
    return darwinn.Layer("out", 1, 1, 1, 1, data_type=value)


_MOVE = 32 << 6 | 15 << 54 | 1 << 59
"""A scalar move of an immediate; its 32 bits start at bit 70."""
_PLACE = 70


def _linked(desc: Any, position: Any = darwinn_schema.Position.LOWER_32BIT) -> object:
    """An instruction into which the address of a buffer of the given kind is written."""
    is_activation = "ACTIVATION" in desc.name
    meta = darwinn.Meta(desc, 0, "layer" if is_activation else None, position)
    chunk = darwinn.InstructionBitstream(
        _MOVE.to_bytes(16, "little"), (darwinn.FieldOffset(meta, _PLACE),)
    )
    layers = (darwinn.Layer("layer", 8),)
    executable = darwinn.Executable(
        scratch_size_bytes=8,
        parameters=bytes(8),
        instruction_bitstreams=(chunk,),
        input_layers=layers,
        output_layers=layers,
    )
    address = 0x12345678_9ABCDEF0
    (linked,) = darwinn.link(executable, {darwinn.buffer_of(meta): address})
    half = address >> (32 if position is darwinn_schema.Position.UPPER_32BIT else 0) & 0xFFFFFFFF
    assert int.from_bytes(linked, "little") == _MOVE | half << _PLACE
    return linked


def _hint(content: Any, direction: Any = darwinn_schema.Direction.INFEED) -> object:
    return expected_entry(darwinn_schema.DmaHint(content, direction))


def _executable_type(value: darwinn_schema.ExecutableType) -> object:
    network = random_dense((16, 8), 1)
    packages = (compile_network(network), compile_stand_alone(network))
    models = [darwinn.load(darwinn.dump(package)).models[0] for package in packages]
    used = [each for model in models for each in (model.caching, model.inference) if each]
    assert value in {each.type for each in used}
    return used


# --- ExecuTorch ----------------------------------------------------------------------------------


def _program_run(data: bytes) -> object:
    return ExecutorchReference(executorch.load(data), placeholders=True)


def _typed(value: schema.ScalarType) -> object:
    """A program that copies a tensor of a type; types without arithmetic are taken as bytes."""
    program = ProgramBuilder()
    method = program.method()
    tensors = [method.input(np.uint8, (2,)), method.tensor(np.uint8, (2,))]
    for tensor in tensors:
        held = method.values[tensor.index]
        assert isinstance(held, schema.Tensor)
        method.values[tensor.index] = replace(held, scalar_type=value, allocation_info=None)
    method.call("aten::alias_copy.out", tensors[0], outputs=[tensors[1]])
    method.output(tensors[1])
    reference = ExecutorchReference(executorch.load(program.build()))
    (port,) = reference.inputs()
    return reference.run([np.ones(2, port.dtype)])


def _with_info(**fields: Any) -> object:
    return _program_run(with_value(0, extra_tensor_info=schema.ExtraTensorInfo(**fields)))


def _delegated(value: schema.DataLocation) -> object:
    index = 0 if value is schema.DataLocation.INLINE else 2
    place = schema.BackendDelegateDataReference(value, index)
    file = executorch.load(
        changed(delegates=(schema.BackendDelegate("EdgeTpuBackend", place),) * 2)
    )
    return file.payload(file.program.execution_plan[0].delegates[0])


def _tensor_data(value: schema.TensorDataLocation) -> object:
    if value is schema.TensorDataLocation.SEGMENT:
        return _program_run(program_bytes())
    file = executorch.load(external_program(), external=[data_bytes()])
    return ExecutorchReference(file).run([np.ones((2, 3), np.float32)])


# --- IREE ----------------------------------------------------------------------------------------

_SAME = FunctionSource("main", "0i_i", ["start", ("return", [[0]])])


def _iree_run(**tables: Any) -> object:
    return IreeReference(iree.load(module([_SAME], **tables))).run([1])


def _imported(value: Presence) -> object:
    absent = value is Presence.OPTIONAL
    name, convention = ("absent.function", "0v_v") if absent else next(iter(IMPORTS))
    (entry,) = imports((name, convention))
    return _iree_run(imported_functions=(replace(entry, flags=int(value)),))


# --- TFRT ----------------------------------------------------------------------------------------

_FUNCTIONS = {
    FunctionKind.ASYNC: "func.func @main() -> i32 "
    "{ %a = tfrt.constant.i32 7 tfrt.return %a : i32 }",
    FunctionKind.SYNC: "func.func @main() -> i32 attributes {tfrt.sync} "
    "{ %a = tfrt.constant_s.i32 7 tfrt.return %a : i32 }",
    FunctionKind.NATIVE: "func.func @seven() -> i32 attributes {tfrt.native}\n"
    "func.func @main() -> i32 { %a = tfrt.call @seven() : () -> i32 tfrt.return %a : i32 }",
}


def _bef_run(text: str) -> object:
    reference = TfrtReference(
        tfrt.load(tfrt.dump(tfrt.from_text(text))), natives={"seven": lambda: 7}
    )
    (output,) = reference.run([], function="main")
    assert output.data == 7
    return output


def _function(value: FunctionKind) -> object:
    file = tfrt.from_text(_FUNCTIONS[value])
    assert value in {function.kind for function in file.functions}
    return _bef_run(_FUNCTIONS[value])


_PLACES = {
    LocationKind.UNKNOWN: "unknown",
    LocationKind.FILE_LINE_COLUMN: '"f":1:2',
    LocationKind.NAME: '"name"',
    LocationKind.CALL_SITE: 'callsite("a" at "f":1:2)',
    LocationKind.FUSED: 'fused["a", "b"]',
}


def _location(value: LocationKind) -> object:
    return _bef_run(
        "func.func @main() -> i32 { %a = tfrt.constant.i32 7 "
        f"loc({_PLACES[value]}) tfrt.return %a : i32 }}"
    )


def _section(value: SectionId) -> object:
    data = tfrt.dump(tfrt.from_text(_FUNCTIONS[FunctionKind.ASYNC]))
    assert bytes([value]) in data
    return _bef_run(_FUNCTIONS[FunctionKind.ASYNC])


def _attribute(value: DType | Kind) -> object:
    """An attribute of a type of elements, or an array of them, or one in the text form."""
    if value in _TEXTS:
        return tfrt.load(tfrt.dump(tfrt.from_text(_with_attribute(_TEXTS[value]))))
    size = DTYPES[DType(value)].size
    # The elements are at byte 8, to which all of them are aligned.
    data = bytes(4) + bytes([1, 0, 0, 0]) + bytes(max(size, 1))
    cursor = Cursor(data, 0, len(data), "attributes")
    return AttributeReader(cursor).read(4, value | ARRAY_FLAG, "attribute")


_TEXTS: Mapping[Any, str] = {
    DType.STRING: '"text"',
    Kind.TYPE: "f32",
    Kind.FUNCTION: '#bef.func<"f">',
    Kind.SHAPE: "#corert.shape<1x?>",
    Kind.DENSE: "dense<[1, 2]> : tensor<2xi32>",
    Kind.SYMBOL: '#bef.symbol<0, ["a"], "unit">',
    Kind.AGGREGATE: '[1, "x"]',
}


def _with_attribute(text: str) -> str:
    return f'func.func @main() {{ "k"() {{a = {text}}} : () -> () tfrt.return }}'


TRIALS: Mapping[str, Callable[[Any], object]] = {
    "Description": _linked,
    "Position": lambda value: _linked(darwinn_schema.Description.BASE_ADDRESS_PARAMETER, value),
    "InterruptType": lambda value: _hint(darwinn_schema.InterruptHint(value)),
    "Direction": lambda value: _hint(darwinn_schema.FenceHint(), value),
    "DataType": _layer_type,
    "ExecutableType": _executable_type,
    "ScalarType": _typed,
    "TensorShapeDynamism": lambda value: _program_run(with_value(0, shape_dynamism=value)),
    "DataLocation": _delegated,
    "TensorDataLocation": _tensor_data,
    "DeviceType": lambda value: _with_info(device_type=value),
    "FeatureBits": lambda value: _iree_run(requirements=int(value | Feature.EXT_F32)),
    "ModuleDependencyFlagBits": lambda value: _iree_run(
        dependencies=(ModuleDependency("absent", 1, int(value)),)
    ),
    "ImportFlagBits": _imported,
    "section": _section,
    "function kind": _function,
    "location kind": _location,
    "element type of an attribute": _attribute,
    "attribute type": _attribute,
}
"""By the name of the enumeration in its document."""

REFUSED_FIELDS: Mapping[tuple[type[Any], str], Callable[[], object]] = {
    (schema.Tensor, "storage_offset"): lambda: _program_run(with_value(0, storage_offset=1)),
    (schema.ExtraTensorInfo, "device_type"): lambda: _with_info(device_type=schema.DeviceType.CUDA),
    (schema.NonConstBufferDevice, "device_type"): lambda: _program_run(
        changed(non_const_buffer_device=(schema.NonConstBufferDevice(1, schema.DeviceType.CUDA),))
    ),
}
"""Files with a value of a field that is refused."""


def _replaced(data: bytes, start: int, new: bytes) -> bytes:
    return data[:start] + new + data[start + len(new) :]


REFUSED_PARTS: Mapping[str, Callable[[], object]] = {
    "[0..3] offset of the root table": lambda: executorch.load(
        _replaced(program_bytes(), 0, b"\2\0\0\0")
    ),
    "[4..7] magic": lambda: executorch.load(_replaced(program_bytes(), 4, b"ET99")),
    "FORMAT_VERSION_NUMBER": lambda: tfrt.load(
        _replaced(tfrt.dump(tfrt.from_text(_FUNCTIONS[FunctionKind.ASYNC])), 2, b"\1")
    ),
}
"""Files with a part that is refused, by the name of the part or of its section."""
