"""TensorFlow Lite models are read as the schema's generated code reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as generated
from darwinn_formats import flatbuffer as fb
from darwinn_formats import tflite
from darwinn_formats.errors import FormatError

GRAPH_FIELDS = ("inputs", "outputs")
TENSOR_FIELDS = ("shape", "type", "buffer")
QUANTIZATION_FIELDS = ("scale", "zeroPoint", "quantizedDimension")


def plain(value: Any) -> Any:
    if value is None or isinstance(value, np.ndarray):
        return () if value is None else tuple(value.tolist())
    return tuple(value) if isinstance(value, list) else value


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def same(ours: Any, theirs: Any, names: tuple[str, ...]) -> None:
    for name in names:
        assert getattr(ours, snake(name)) == plain(getattr(theirs, name)), name


@pytest.fixture(scope="module")
def paths(corpus: Path) -> list[Path]:
    found = [*(corpus / "tflite").glob("*.tflite"), *(corpus / "darwinn").glob("*.tflite")]
    return sorted(path for path in found if path.stem != "model_invoking_error")


def test_real_models_equal_what_the_generated_code_reads(paths: list[Path]) -> None:
    options = set()
    for path in paths:
        model = tflite.load(path)
        other = generated.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
        assert len(model.buffers) == len(other.buffers)
        assert model.description == (other.description or b"").decode()
        for code, other_code in zip(model.operator_codes, other.operatorCodes, strict=True):
            same(code, other_code, ("deprecatedBuiltinCode", "builtinCode", "version"))
            assert code.custom_code == (other_code.customCode or b"").decode()
        for graph, other_graph in zip(model.subgraphs, other.subgraphs, strict=True):
            same(graph, other_graph, GRAPH_FIELDS)
            for tensor, other_tensor in zip(graph.tensors, other_graph.tensors, strict=True):
                same(tensor, other_tensor, TENSOR_FIELDS)
                assert tensor.name == other_tensor.name.decode()
                if tensor.quantization is not None:
                    same(tensor.quantization, other_tensor.quantization, QUANTIZATION_FIELDS)
            for node, other_node in zip(graph.operators, other_graph.operators, strict=True):
                same(node, other_node, ("opcodeIndex", "inputs", "outputs"))
                held, theirs = node.builtin_options, other_node.builtinOptions
                if held is None:
                    assert theirs is None
                    continue
                assert f"{type(held).__name__}T" == type(theirs).__name__
                options.add(type(held))
                for name in vars(theirs):
                    if hasattr(held, snake(name)):
                        assert getattr(held, snake(name)) == plain(getattr(theirs, name)), name
    assert len(options) >= 12
    assert fb.OpaqueTable not in options


def test_constants_have_their_shape(corpus: Path) -> None:
    model = tflite.load(corpus / "tflite" / "mobilenet_v1_0.25_128_quant.tflite")
    graph = model.subgraphs[0]
    first = graph.operators[0]
    assert model.code(first).operator is tflite.BuiltinOperator.CONV_2D
    image, weights, bias = (model.constant(graph.tensors[index]) for index in first.inputs)
    assert image is None
    assert weights is not None
    assert bias is not None
    assert (weights.shape, weights.dtype) == ((8, 3, 3, 3), np.dtype("u1"))
    assert (bias.shape, bias.dtype) == ((8,), np.dtype("<i4"))


def test_the_invalid_model_is_refused(corpus: Path) -> None:
    path = corpus / "tflite" / "model_invoking_error.tflite"
    with pytest.raises(FormatError, match=r"tensors\[0\]\.buffer: index 0 is not below 0") as info:
        tflite.load(path)
    assert info.value.file == str(path)
    assert info.value.offset is not None


def model_of(**changes: Any) -> tflite.Model:
    tensor = tflite.Tensor(shape=(2, 2), type=tflite.TensorType.INT16, buffer=1, name="t")
    node = tflite.Operator(inputs=(0, -1), outputs=(0,))
    parts: dict[str, Any] = {
        "tensors": (tensor,),
        "operators": (node,),
        "inputs": (0,),
        "outputs": (0,),
    }
    codes = changes.pop("operator_codes", (tflite.OperatorCode(builtin_code=3),))
    buffers = changes.pop("buffers", (tflite.Buffer(), tflite.Buffer(memoryview(bytes(8)))))
    graph = tflite.SubGraph(**(parts | changes))
    return tflite.Model(version=3, operator_codes=codes, subgraphs=(graph,), buffers=buffers)


def test_a_model_that_is_written_is_read() -> None:
    model = model_of()
    loaded = tflite.load(fb.write(model))
    assert loaded == model
    constant = loaded.constant(loaded.subgraphs[0].tensors[0])
    assert constant is not None
    assert constant.shape == (2, 2)


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"outputs": (1,)}, "outputs", "index 1 is not below 1"),
        ({"inputs": (-1,)}, "inputs", "index -1"),
        ({"operators": (tflite.Operator(opcode_index=1),)}, "opcode_index", "index 1"),
        ({"operators": (tflite.Operator(inputs=(-2,)),)}, "inputs", "index -2"),
        ({"operators": (tflite.Operator(large_custom_options_size=2),)}, "operators", "large"),
        ({"tensors": (tflite.Tensor(buffer=2),)}, "buffer", "index 2"),
        ({"tensors": (tflite.Tensor(external_buffer=1),)}, "tensors", "external"),
        ({"operator_codes": (tflite.OperatorCode(builtin_code=999),)}, "codes", "number 999"),
        ({"buffers": (tflite.Buffer(), tflite.Buffer(offset=64, size=9))}, "buffers", "outside"),
    ],
)
def test_indices_and_what_is_not_supported_are_refused(
    changes: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(FormatError, match=reason) as info:
        tflite.load(fb.write(model_of(**changes)))
    assert field in info.value.field
    assert info.value.offset


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (tflite.Tensor((3,), tflite.TensorType.INT16, 1), "8 bytes do not fill the shape"),
        (tflite.Tensor((-4,), tflite.TensorType.INT16, 1), "do not fill the shape"),
        (tflite.Tensor((8,), tflite.TensorType.INT4, 1), "type INT4 are not supported"),
        (
            tflite.Tensor((8,), tflite.TensorType.INT8, 1, sparsity=tflite.SparsityParameters()),
            "sparse tensors are not supported",
        ),
    ],
)
def test_constants_that_do_not_fit_are_refused(tensor: tflite.Tensor, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        model_of().constant(tensor)
