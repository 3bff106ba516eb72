"""From a network to files: executables with their layers, packages, and the Edge TPU ``.tflite``.

A compiled model is a pair of executables that carry the same token. The parameter-caching one is
run once and leaves the parameters in the tiles; the other one is run for every input. A stand-alone
executable does both in every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from darwinn_formats import darwinn
from darwinn_formats.darwinn import (
    DataType,
    Executable,
    ExecutableType,
    InputLayer,
    Layer,
    NumericsConstants,
    OutputLayer,
    OutputLayout,
    OutputShapeInfo,
    Package,
    Range,
    SerializedPackage,
    TensorLayout,
    TensorShape,
)
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.darwinn.schema import MULTIPLE_CHIPS
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from flatbuffers import flexbuffers

from darwinn_testbench.compiler import convolution_program, dense_program
from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.network import Convolution, DenseNetwork, Quantisation, Sample
from darwinn_testbench.compiler.parameters import SIGN_OFFSET, Block, blob, sign_offset
from darwinn_testbench.compiler.program import barrier, begin, end, load_parameters
from darwinn_testbench.compiler.uncompiled import GraphWriter, add_activations

_CHIP_VERSION = 18
RUNTIME_VERSION = 14
"""Least version of the runtime; that of the public models."""
_COMPILER = "darwinn-testbench sample"
_CACHING_TAG = 0x8000


@dataclass(frozen=True, eq=False)
class Plan:
    """A network that has been placed on the chip.

    ``output`` has an ``OutputLayout``; ``slices`` say the same in the other form. ``infer`` writes
    the instructions of the inference. ``narrow_bytes`` are the bytes of narrow memory in use.
    """

    name: str
    blocks: tuple[Block, ...]
    input: Layer
    output: Layer
    slices: OutputShapeInfo
    infer: Callable[[Assembler], None]
    narrow_bytes: int


def compile_network(network: Sample, *, shape_info: bool = False) -> Package:
    """Compile a network to a package with a parameter-caching executable and its partner.

    Args:
        network: the network.
        shape_info: describe the output by ``OutputShapeInfo``, not by ``OutputLayout``.

    Raises:
        ValueError: the sample cannot place a network of this size.
    """
    plan = plan_network(network, shape_info=shape_info)
    caching, inference = Assembler(_CACHING_TAG), Assembler()
    begin(caching)
    load_parameters(caching, plan.blocks)
    end(caching)
    begin(inference)
    plan.infer(inference)
    end(inference)
    parameters = blob(plan.blocks)
    token = token_of(parameters, inference.chunk().bitstream)
    return _package(
        _executable(plan, inference, ExecutableType.EXECUTION_ONLY, parameter_caching_token=token),
        replace(
            _executable(plan, caching, ExecutableType.PARAMETER_CACHING),
            parameters=parameters,
            parameter_caching_token=token,
            input_layers=(),
            output_layers=(),
            used_narrow_memory_bytes_per_tile=0,
        ),
    )


def compile_stand_alone(network: Sample) -> Package:
    """Compile a network to one executable that loads the parameters and infers; as above."""
    plan = plan_network(network)
    program = Assembler()
    begin(program)
    load_parameters(program, plan.blocks)
    barrier(program)
    plan.infer(program)
    end(program)
    parameters = blob(plan.blocks)
    return _package(_executable(plan, program, ExecutableType.STAND_ALONE, parameters=parameters))


def multi_chip(packages: Sequence[Package]) -> Package:
    """A package that holds those of several chips, chip 0 first."""
    numbered = (replace(package, virtual_chip_id=chip) for chip, package in enumerate(packages))
    return Package(
        min_runtime_version=RUNTIME_VERSION,
        compiler_version=_COMPILER,
        virtual_chip_id=MULTIPLE_CHIPS,
        multi_chip_package=tuple(SerializedPackage(package) for package in numbered),
    )


def edgetpu_model(network: Sample, package: Package) -> bytes:
    """The Edge TPU ``.tflite`` of a compiled network: a graph of one custom operator."""
    writer = GraphWriter()
    source, result = add_activations(writer, network)
    options = custom_options(darwinn.dump(package))
    writer.custom_operator(CUSTOM_OPERATOR, (source,), result, options)
    return writer.finish()


def custom_options(package: bytes) -> bytes:
    """Options of the custom operator: docs/formats-darwinn.md, "Custom operator"."""
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("1")
        builder.Int(0)
        builder.Key("4")
        # The package is a string of binary data; the builder's own String takes text only.
        builder._WriteBlob(package, append_zero=True, type_=flexbuffers.Type.STRING)
        builder.Key("5")
        builder.Int(-1)
        builder.Key("6")
        # The vendor's runtime reads an untyped vector only, and refuses a vector of integers.
        builder.VectorFromElements([_CHIP_VERSION])
    return bytes(builder.Finish())


def _package(*executables: Executable) -> Package:
    return Package.of(*executables, min_runtime_version=RUNTIME_VERSION, compiler_version=_COMPILER)


def _executable(plan: Plan, program: Assembler, kind: ExecutableType, **fields: Any) -> Executable:
    return Executable(
        name=plan.name,
        batch_size=1,
        chip=chip.PROGRAM_NAME,
        type=kind,
        instruction_bitstreams=(program.chunk(),),
        dma_hints=program.hints(),
        input_layers=(plan.input,),
        output_layers=(plan.output,),
        used_narrow_memory_bytes_per_tile=plan.narrow_bytes,
        **fields,
    )


def token_of(*contents: bytes) -> int:
    """A token that no other model has: programs and parameters decide it."""
    digest = hashlib.sha256(b"".join(contents)).digest()
    return int.from_bytes(digest[:8], "little")


# --- layers -------------------------------------------------------------------------------------


def plan_network(network: Sample, *, shape_info: bool = False) -> Plan:
    """Place a network on the chip and describe its input and output; see `compile_network`."""
    plan = _plan(network)
    if not shape_info:
        return plan
    return replace(plan, output=replace(plan.output, any_layer=OutputLayer(shape_info=plan.slices)))


def _plan(network: Sample) -> Plan:
    if isinstance(network, DenseNetwork):
        return _plan_dense(network)
    return _plan_convolution(network)


def _plan_dense(network: DenseNetwork) -> Plan:
    layers = dense_program.place(network)
    inputs, outputs = network.layers[0].inputs, network.layers[-1].outputs
    sent = {block.tile: block.lanes for block in layers[-1].blocks}
    size = sum(sent.values())
    firsts = [tile * chip.LANES for tile in sent]
    slices = tuple(
        TensorLayout(box((0, 1), (first, min(chip.LANES, outputs - first))), (size, 1))
        for first in firsts
    )
    signed = DataType.SIGNED_FIXED_POINT8
    return Plan(
        name=network.name,
        blocks=tuple(block for layer in layers for block in layer.blocks),
        input=Layer(
            network.source,
            layers[0].inputs,
            *(1, 1, inputs),
            _numerics(network.input, SIGN_OFFSET),
            signed,
            InputLayer(),
        ),
        output=Layer(
            network.result,
            size,
            *(1, 1, outputs),
            _numerics(network.layers[-1].output, SIGN_OFFSET),
            signed,
            OutputLayer(_tile_layout((1, 1), (1, 1), sent[0], sent)),
            shape=box((0, 1), (0, outputs)),
        ),
        slices=OutputShapeInfo(slices, tuple(firsts)),
        infer=lambda program: dense_program.infer(program, layers, network.source, network.result),
        narrow_bytes=dense_program.narrow_bytes(layers),
    )


def _plan_convolution(network: Convolution) -> Plan:
    placement = convolution_program.place(network)
    height, width, lanes = placement.height, placement.width, placement.block.lanes
    size = placement.result_words * WORD_BYTES
    sent = dict.fromkeys(placement.tiles, size)
    strides = (size * len(sent), width * lanes, lanes, 1)
    slices = tuple(
        TensorLayout(
            box(
                (0, 1),
                (tile // chip.GRID_COLUMNS * height, height),
                (tile % chip.GRID_COLUMNS * width, width),
                (0, network.outputs),
            ),
            strides,
        )
        for tile in sent
    )
    image = (network.height, network.width)
    offset = sign_offset(network)
    dtype = DataType.SIGNED_FIXED_POINT8 if network.is_signed else DataType.FIXED_POINT8
    return Plan(
        name=network.name,
        blocks=(placement.block,),
        input=Layer(
            network.source,
            placement.input_bytes,
            *(*image, network.inputs),
            _numerics(network.input, offset),
            dtype,
            InputLayer(),
        ),
        output=Layer(
            network.result,
            size * len(sent),
            *(*image, network.outputs),
            _numerics(network.output, offset),
            dtype,
            OutputLayer(_tile_layout(image, (height, width), lanes, sent)),
            shape=box((0, 1), (0, network.height), (0, network.width), (0, network.outputs)),
        ),
        slices=OutputShapeInfo(slices, tuple(range(0, size * len(sent), size))),
        infer=lambda program: convolution_program.infer(
            program, placement, network.source, network.result
        ),
        narrow_bytes=convolution_program.narrow_bytes(placement),
    )


def _numerics(quantisation: Quantisation, offset: int) -> NumericsConstants:
    """Quantisation as the chip sees it: signed values are held unsigned, ``offset`` above."""
    return NumericsConstants(quantisation.zero_point + offset, float(quantisation.scale))


def box(*ranges: tuple[int, int]) -> TensorShape:
    """The shape of (first, count) along each dimension."""
    return TensorShape(tuple(Range(first, first + count - 1) for first, count in ranges))


def _tile_layout(
    image: tuple[int, int], part: tuple[int, int], pixel_bytes: int, sent: Mapping[int, int]
) -> OutputLayout:
    """Where the pixels of an output are in what the tiles send one after another.

    Args:
        image: height and width of the output, in pixels.
        part: those of the part of one tile.
        pixel_bytes: bytes from pixel to pixel of a part.
        sent: bytes that each tile sends, in the order in which they send.
    """
    (rows, columns), (height, width) = image, part
    order = [sent.get(tile, 0) for tile in range(chip.TILES)]
    return OutputLayout(
        y_coordinate_to_linear_tile_id_map=tuple(
            y // height * chip.GRID_COLUMNS for y in range(rows)
        ),
        x_coordinate_to_linear_tile_id_map=tuple(x // width for x in range(columns)),
        linearized_tile_byte_offset=tuple(sum(order[:tile]) for tile in range(chip.TILES)),
        x_coordinate_to_local_byte_offset=tuple(x % width * pixel_bytes for x in range(columns)),
        y_coordinate_to_local_y_offset=tuple(y % height for y in range(rows)),
        x_coordinate_to_local_y_row_size=(width * pixel_bytes,) * columns,
    )
