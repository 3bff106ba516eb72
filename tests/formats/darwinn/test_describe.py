"""The summary of a file, field by field: of one that has everything, and of a stream."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from darwinn_formats import darwinn
from darwinn_formats.darwinn import (
    DataType,
    Description,
    Direction,
    DmaDescriptorHint,
    DmaHint,
    DmaHints,
    Executable,
    ExecutableType,
    FenceHint,
    FieldOffset,
    InputLayer,
    InstructionBitstream,
    InstructionHint,
    InterruptHint,
    InterruptType,
    Layer,
    Meta,
    NumericsConstants,
    OutputLayer,
    OutputLayout,
    OutputShapeInfo,
    Package,
    Position,
    Range,
    TensorLayout,
    TensorShape,
)
from darwinn_formats.darwinn.schema import SerializedPackage, figure_of
from darwinn_sim.isa.builder import build, frame
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.package import compile_network, edgetpu_model

IN = Meta(Description.BASE_ADDRESS_INPUT_ACTIVATION, 1, "in", Position.UPPER_32BIT)
BIG = TensorShape((Range(0, 1), Range(2, 6)))
HINTS = (
    DmaHint(InstructionHint(1), Direction.INFEED),
    DmaHint(DmaDescriptorHint(replace(IN, position=Position.LOWER_32BIT), 16, 24)),
    DmaHint(FenceHint(), Direction.OUTFEED),
    DmaHint(InterruptHint(InterruptType.SCALAR_CORE_INT_2), Direction.OUTFEED),
    DmaHint(None, Direction.OUTFEED),
)
FULL = Executable(
    version=3,
    name="full",
    serialized_model=bytes(7),
    batch_size=2,
    scratch_size_bytes=64,
    instruction_bitstreams=(
        InstructionBitstream(bytes(48), (FieldOffset(IN, 128 + 70),)),
        InstructionBitstream(bytes(16)),
    ),
    parameters=bytes(33),
    dma_hints=DmaHints(HINTS, fully_deterministic=True),
    input_layers=(
        Layer(
            *("in", 48, 2, 3, 4, NumericsConstants(5, 0.5), DataType.FIXED_POINT16, InputLayer()),
            execution_count_per_inference=3,
            cache_on_dram=True,
            shape=BIG,
        ),
    ),
    output_layers=(
        Layer(
            "laid",
            8,
            1,
            1,
            8,
            NumericsConstants(0, float("inf")),
            any_layer=OutputLayer(OutputLayout(linearized_tile_byte_offset=(0, 4, 8))),
        ),
        Layer(
            "cut",
            4,
            any_layer=OutputLayer(
                shape_info=OutputShapeInfo((TensorLayout(BIG, (5, 1)),) * 2, (0, 4))
            ),
        ),
    ),
    chip="beagle",
    estimated_cycles=11,
    used_narrow_memory_bytes_per_tile=12,
    type=ExecutableType.EXECUTION_ONLY,
    parameter_caching_token=0xAB,
    use_tpu_dram_for_parameters=True,
    estimated_cycles_64bit=13,
)
CACHING = Executable(
    name="caching", type=ExecutableType.PARAMETER_CACHING, parameter_caching_token=0xAB
)
NOTHING: dict[str, Any] = {
    "version": 0,
    "chip": "",
    "token": "0x00000000000000ab",
    "batch_size": 0,
    "parameter_bytes": 0,
    "scratch_bytes": 0,
    "serialized_model_bytes": 0,
    "used_narrow_memory_bytes_per_tile": 0,
    "use_tpu_dram_for_parameters": False,
    "estimated_cycles": 0,
    "estimated_cycles_64bit": 0,
    "chunks": [],
    "inputs": [],
    "outputs": [],
    "buffers": [],
    "dma_fully_deterministic": False,
    "dma_hints": [],
}
PLAIN_LAYER: dict[str, Any] = {
    "bytes": 8,
    "dimensions": {"y": 1, "x": 1, "z": 8},
    "shape": None,
    "data_type": "FIXED_POINT8",
    "zero_point": 0,
    "scale": "inf",
    "executions": 1,
    "cache_on_dram": False,
    "tiles": 3,
    "slices": None,
}
EXPECTED: dict[str, Any] = {
    "name": "full",
    "type": "EXECUTION_ONLY",
    "version": 3,
    "chip": "beagle",
    "token": "0x00000000000000ab",
    "batch_size": 2,
    "parameter_bytes": 33,
    "scratch_bytes": 64,
    "serialized_model_bytes": 7,
    "used_narrow_memory_bytes_per_tile": 12,
    "use_tpu_dram_for_parameters": True,
    "estimated_cycles": 11,
    "estimated_cycles_64bit": 13,
    "chunks": [
        {
            "bytes": 48,
            "bundles": 3,
            "relocations": [
                {
                    "bit": 198,
                    "bundle": 1,
                    "position": "UPPER_32BIT",
                    "base": "BASE_ADDRESS_INPUT_ACTIVATION",
                    "name": "in",
                    "batch": 1,
                }
            ],
        },
        {"bytes": 16, "bundles": 1, "relocations": []},
    ],
    "inputs": [
        {
            "name": "in",
            "bytes": 48,
            "dimensions": {"y": 2, "x": 3, "z": 4},
            "shape": [[0, 1], [2, 6]],
            "data_type": "FIXED_POINT16",
            "zero_point": 5,
            "scale": 0.5,
            "executions": 3,
            "cache_on_dram": True,
            "tiles": None,
            "slices": None,
        }
    ],
    "outputs": [
        {"name": "laid", **PLAIN_LAYER},
        {
            "name": "cut",
            **PLAIN_LAYER,
            "bytes": 4,
            "dimensions": {"y": 0, "x": 0, "z": 0},
            "zero_point": None,
            "scale": None,
            "tiles": None,
            "slices": 2,
        },
    ],
    "buffers": [{"base": "BASE_ADDRESS_INPUT_ACTIVATION", "name": "in", "batch": 1, "bytes": 144}],
    "dma_fully_deterministic": True,
    "dma_hints": [
        {"direction": "INFEED", "kind": "instructions", "chunk": 1},
        {
            "direction": "INFEED",
            "kind": "descriptor",
            "base": "BASE_ADDRESS_INPUT_ACTIVATION",
            "name": "in",
            "batch": 1,
            "offset": 16,
            "bytes": 24,
        },
        {"direction": "OUTFEED", "kind": "fence"},
        {"direction": "OUTFEED", "kind": "interrupt", "interrupt": 2},
        {"direction": "OUTFEED", "kind": "none"},
    ],
}


def same(found: Any, expected: Any) -> None:
    """As JSON, where a number is no truth value."""
    assert json.loads(json.dumps(found, allow_nan=False)) == expected
    assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)


def test_a_package_that_has_everything() -> None:
    inner = Package.of(
        CACHING,
        min_runtime_version=1,
        compiler_version="inner",
        signature=bytes(3),
        keypair_version=4,
        virtual_chip_id=5,
        model_identifier="six",
    )
    outer = replace(
        Package.of(FULL, CACHING, min_runtime_version=2),
        multi_chip_package=(SerializedPackage(inner), SerializedPackage(None)),
    )
    data = darwinn.dump(outer)
    summary = darwinn.describe(darwinn.load(data))
    executables = summary.pop("executables")
    same(executables[0], EXPECTED)
    for each in executables[1:]:
        same(each, {"name": "caching", "type": "PARAMETER_CACHING", **NOTHING})
    plain: dict[str, Any] = {"signature_bytes": 0, "keypair_version": 0, "multi_chip": []}
    same(
        summary,
        {
            "file": "<bytes>",
            "kind": "package",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "operators": [],
            "packages": [
                {
                    **plain,
                    "min_runtime_version": 2,
                    "compiler_version": "",
                    "virtual_chip_id": 0,
                    "model_identifier": "",
                    "executables": [0, 1],
                    "multi_chip": [
                        {
                            **plain,
                            "min_runtime_version": 1,
                            "compiler_version": "inner",
                            "signature_bytes": 3,
                            "keypair_version": 4,
                            "virtual_chip_id": 5,
                            "model_identifier": "six",
                            "executables": [2],
                        }
                    ],
                }
            ],
            "models": [{"inference": 0, "caching": 1, "token": "0x00000000000000ab"}],
            "stream": None,
        },
    )


def test_operators_of_a_model() -> None:
    network = random_dense([4, 5], 0)
    loaded = darwinn.load(edgetpu_model(network, compile_network(network)))
    summary = darwinn.describe(loaded)
    same(
        summary["operators"],
        [
            {
                "subgraph": 0,
                "operator": 0,
                "version": 0,
                "execution_preference": -1,
                "chip_versions": [18],
                "packages": 1,
                "deprecated_chip_name": None,
                "deprecated_bytes": 0,
            }
        ],
    )
    (model,) = loaded.models
    assert summary["models"] == [{"inference": 0, "caching": 1, "token": f"{model.token:#018x}"}]
    assert summary["kind"] == "tflite"


def test_a_stream() -> None:
    data = frame(build([("Scalar", {})] * 3), last=False) + frame(b"")
    summary = darwinn.describe(darwinn.load(data))
    sizes = [len(frame(build([("Scalar", {})] * 3), last=False)), len(frame(b""))]
    same(
        summary,
        {
            "file": "<bytes>",
            "kind": "stream",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            **{name: [] for name in ("operators", "packages", "executables", "models")},
            "stream": {
                "chunks": [
                    {"offset": 0, "bytes": sizes[0], "bundles": sizes[0] // 16},
                    {"offset": sizes[0], "bytes": sizes[1], "bundles": sizes[1] // 16},
                ]
            },
        },
    )


def test_figures_show_all_bytes() -> None:
    loaded = darwinn.load(darwinn.dump(Package.of(FULL, CACHING)))
    drawn = figure_of([FULL])
    for part, size in (
        *(("parameters", 33), ("instructions", 64), ("scratch", 64)),
        *(("inputs", 48), ("outputs", 12)),
    ):
        assert f"{part} {size}" in drawn
    assert "EXECUTION_ONLY" in drawn
    assert "bytes" in drawn
    assert FULL.figure() == drawn
    assert loaded.figure() == figure_of(loaded.executables)
    (model,) = loaded.models
    assert model.caching is not None
    assert model.figure() == figure_of([model.caching, model.inference])
    assert replace(model, caching=None).figure() == figure_of([model.inference])
