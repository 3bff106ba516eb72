"""Small files that between them have every member of every format, and what is done with them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bef_cases import CASES
from bef_flow_cases import FLOW
from bef_tensor_cases import TENSORS
from darwinn_formats import darwinn, executorch, iree, tfrt
from darwinn_formats.darwinn import schema as darwinn_schema
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_formats.iree import schema as iree_schema
from darwinn_formats.iree.container import BLOB_ALIGNMENT
from darwinn_formats.tfrt import model
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.interpreter import DelegateProgram, DelegateRunner
from darwinn_reference.iree import IreeReference
from darwinn_reference.tfrt import Driver, Options
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.dma_trace import compare_with_hints
from darwinn_testbench.compiler import (
    compile_network,
    compile_stand_alone,
    multi_chip,
    random_convolution,
    random_dense,
)
from executorch_files import WEIGHTS, parts
from iree_modules import FunctionSource, Source, definition, imports, module, rodata


@dataclass(frozen=True)
class Witness:
    """How files of a format are loaded, shown and executed; ``files`` are given as bytes."""

    files: Sequence[bytes]
    load: Callable[[bytes], Any]
    show: Callable[[Any], object]
    execute: Callable[[Any], object]


# --- ExecuTorch ----------------------------------------------------------------------------------


def _inline() -> bytes:
    """A program whose constants and whose delegate's data are within the flatbuffer."""
    root, segments = parts()
    data = (b"", WEIGHTS.tobytes())
    return executorch.dump(
        replace(
            root,
            constant_segment=None,
            constant_buffer=tuple(schema.Buffer(each) for each in data),
        ),
        segments,
    )


def _jumps() -> bytes:
    """A program that jumps, moves, frees and converts numbers."""
    program = ProgramBuilder()
    method = program.method()
    x = method.input(np.float32, (2, 3))
    y = method.tensor(np.float32, (2, 3))
    method.call("aten::relu.out", x, outputs=[y])
    method.call("other::op.out", x, 1.5, "text", outputs=[y])
    method.step(schema.JumpFalseCall(method.argument(True).index, 2))
    method.step(schema.MoveCall(y.index, y.index))
    method.step(schema.FreeCall(x.index))
    method.output(y)
    return program.build()


def _open(program: DelegateProgram) -> DelegateRunner:
    """A delegate that looks at all that it is given, and does nothing."""
    assert program.payload is not None and isinstance(program.compile_specs, Mapping)
    if program.id == "EdgeTpuBackend":
        program.named_data("weights")
    return lambda arguments: ()


def _run_executorch(file: executorch.ProgramFile) -> None:
    backends = {"EdgeTpuBackend": _open, "Other": _open}
    reference = ExecutorchReference(file, placeholders=True, backends=backends)
    for name in reference.functions:
        inputs = [
            np.zeros([size or 1 for size in port.shape or ()], port.dtype)
            for port in reference.inputs(name)
        ]
        with suppress(ExecutionError):
            reference.run(inputs, function=name)


def _show_executorch(file: executorch.ProgramFile) -> None:
    executorch.describe(file)
    list(executorch.disassemble(file))


# --- IREE ----------------------------------------------------------------------------------------


_PLACES = tuple(iree_schema.BytecodeLocation(place, 3) for place in range(20))


def _module() -> bytes:
    """A module with everything in it that the schema has."""
    source: list[Source] = [
        "start",
        ("const.ref.rodata", [0, 0x8000]),
        ("div.i32.s", [0, 0, 1]),
        ("return", [[1]]),
    ]
    made = definition(
        [FunctionSource("main", "0i_i", source, attributes={"key": "value"})],
        attributes=(iree_schema.Attribute("key", "value"),),
        dependencies=(iree_schema.ModuleDependency("hal", 1),),
        imported_functions=(
            replace(imports(("hal.absent", "0v_v"))[0], flags=int(iree_schema.Presence.OPTIONAL)),
        ),
        rodata_segments=rodata(b"text"),
        rwdata_segments=(iree_schema.RwdataSegment(4),),
        debug_database=iree_schema.DebugDatabase(
            (
                iree_schema.FileLocation("net.py", 1, 2),
                iree_schema.NameLocation("layer", 0),
                iree_schema.FusedLocation("fused", (0, 1)),
                iree_schema.CallSiteLocation(1, 2),
            ),
            (iree_schema.FunctionSourceMap("main", _PLACES),),
        ),
    )
    return iree.dump_definition(made)


def _external() -> bytes:
    """A module whose data are behind the flatbuffer."""
    segment = iree_schema.RodataSegment(external_data_offset=0, external_data_length=5)
    data = module(
        [FunctionSource("main", "0i_i", ["start", ("return", [[0]])])], rodata_segments=(segment,)
    )
    return data.ljust(-(-len(data) // BLOB_ALIGNMENT) * BLOB_ALIGNMENT, b"\0") + b"hello"


def _show_iree(file: iree.VmfbFile) -> None:
    iree.describe(file)
    list(iree.disassemble(file))


def _run_iree(file: iree.VmfbFile) -> None:
    with suppress(ExecutionError):
        IreeReference(file).run([0])


# --- DarwiNN -------------------------------------------------------------------------------------


_BOX = darwinn.TensorShape((darwinn.Range(0, 0), darwinn.Range(0, 0), darwinn.Range(0, 7)))
_SLICES = darwinn.OutputShapeInfo((darwinn.TensorLayout(_BOX, (8, 8, 1)),), (0,))
_TILES = darwinn.OutputLayout((0, 0), (0, 0), (0,), (0, 2), (0, 1), (4, 4))


def _layers() -> bytes:
    """Outputs in slices and in tiles, of an executable that cannot be run."""
    layers = (
        darwinn.Layer("slices", 8, 1, 1, 8, any_layer=darwinn.OutputLayer(shape_info=_SLICES)),
        darwinn.Layer("tiles", 8, 2, 2, 2, any_layer=darwinn.OutputLayer(_TILES)),
    )
    layers = (replace(layers[0], shape=_BOX), layers[1])
    return darwinn.dump(darwinn.Package.of(darwinn.Executable(output_layers=layers)))


def _packages() -> list[bytes]:
    caching = compile_network(random_dense((16, 8), 1))
    alone = compile_stand_alone(random_convolution(8, 8, 4, 8, 1))
    return [
        *(darwinn.dump(package) for package in (caching, alone, multi_chip([caching, alone]))),
        _layers(),
    ]


def _show_darwinn(file: darwinn.DarwinnFile) -> None:
    darwinn.describe(file)


def _take(layers: Sequence[darwinn.Layer]) -> None:
    """Make tensors of outputs without a run."""
    for layer in layers:
        darwinn.to_tensor(layer, bytes(layer.size_bytes))


def _run_darwinn(file: darwinn.DarwinnFile) -> None:
    for compiled_model in file.models:
        accelerator = Accelerator(strict=True)
        for executable in filter(None, [compiled_model.caching, compiled_model.inference]):
            if not executable.instruction_bitstreams:
                _take(executable.output_layers)
                continue
            inputs = {
                layer.name: darwinn.to_device_input(
                    layer,
                    np.zeros((layer.y_dim, layer.x_dim, layer.z_dim), darwinn.dtype_of(layer)),
                )
                for layer in executable.input_layers
            }
            result = accelerator.run(executable, inputs)
            for layer in executable.output_layers:
                darwinn.to_tensor(layer, result.outputs[layer.name])
            compare_with_hints(executable.dma_hints, result.transfers)


# --- TFRT ----------------------------------------------------------------------------------------


def _texts() -> Iterator[str]:
    for _, operations, _ in [*CASES, *TENSORS]:
        yield f"func.func @case() {{\n%ch = tfrt.new.chain\n{operations}\ntfrt.return\n}}"
    for _, text, _ in FLOW:
        yield text


_ATTRIBUTES = """
func.func @main() {
  "k"() {a = f32, b = #corert.shape<1x?>, c = #bef.func<"f">, d = #bef.symbol<1, ["a"], "unit">}
    : () -> ()
  tfrt.return
}
"""
_UNTYPED = "func.func @main() -> i32 { %a = tfrt.constant.i32 7 tfrt.return %a : i32 }"


def _befs() -> Iterator[bytes]:
    """Texts as files, then one with an unknown section, and one that ends after its functions."""
    for text in (*_texts(), _ATTRIBUTES):
        yield tfrt.dump(tfrt.from_text(text, "case.mlir"))
    yield tfrt.dump(tfrt.from_text(_UNTYPED)) + bytes.fromhex("2A 0A") + b"other"
    data = tfrt.dump(tfrt.from_text(_UNTYPED))
    yield next(data[:end] for end in range(len(data)) if _is_whole(data[:end]))


def _is_whole(data: bytes) -> bool:
    with suppress(FormatError):
        tfrt.load(data)
        return True
    return False


def _show_tfrt(file: tfrt.BefFile) -> None:
    tfrt.describe(file)
    list(tfrt.disassemble(file))


def _run_tfrt(file: tfrt.BefFile) -> None:
    with suppress(ExecutionError):
        Driver(file, "", Options(), io.StringIO(), io.StringIO(), sleep=lambda _: None).run()


def witnesses() -> Mapping[str, Witness]:
    """By the module that declares the tables of a format."""
    return {
        schema.__name__: Witness(
            [executorch.dump(*parts()), _inline(), _jumps()],
            executorch.load,
            _show_executorch,
            _run_executorch,
        ),
        iree_schema.__name__: Witness([_module(), _external()], iree.load, _show_iree, _run_iree),
        darwinn_schema.__name__: Witness(_packages(), darwinn.load, _show_darwinn, _run_darwinn),
        model.__name__: Witness(
            list(_befs()),
            tfrt.load,
            _show_tfrt,
            _run_tfrt,
        ),
    }
