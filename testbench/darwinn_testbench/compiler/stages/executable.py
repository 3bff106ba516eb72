"""Layers, executable and package of a placed graph, and the model with the custom operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from darwinn_formats import darwinn, flatbuffer, tflite
from darwinn_formats.darwinn import (
    DataType,
    Executable,
    ExecutableType,
    InputLayer,
    Layer,
    NumericsConstants,
    OutputLayer,
    OutputLayout,
    Package,
)
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.tflite import BuiltinOperator
from darwinn_sim import chip

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.package import (
    RUNTIME_VERSION,
    box,
    custom_options,
    token_of,
)
from darwinn_testbench.compiler.parameters import blob
from darwinn_testbench.compiler.program import begin, end, load_parameters
from darwinn_testbench.compiler.stages.cache import Cache
from darwinn_testbench.compiler.stages.host import input_bytes, output_shares, share_bytes
from darwinn_testbench.compiler.stages.operations import IntegerGraph, Port
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.storage import Spread, length

COMPILER = "darwinn-testbench compile"


_CACHING_TAG = 0x8000


def package_of(
    name: str,
    graph: IntegerGraph,
    placement: Placement,
    program: Assembler,
    parameters: bytes,
    cache: Cache,
    token: int | None = None,
) -> Package:
    """The package of a program: one executable, or two if parameters stay on the chip.

    Programs that share the chip's memory have one ``token``; without one it has its own.
    """
    inference = Executable(
        name=name,
        batch_size=1,
        chip=chip.PROGRAM_NAME,
        type=ExecutableType.STAND_ALONE,
        instruction_bitstreams=program.chunks(),
        dma_hints=program.hints(),
        parameters=parameters,
        input_layers=tuple(_input_layer(port) for port in graph.inputs),
        output_layers=tuple(_output_layer(port, placement) for port in graph.outputs),
        used_narrow_memory_bytes_per_tile=placement.narrow_bytes,
    )
    executables = [inference] if cache.is_empty else _pair(inference, cache, token)
    return Package.of(*executables, min_runtime_version=RUNTIME_VERSION, compiler_version=COMPILER)


def _pair(inference: Executable, cache: Cache, token: int | None) -> list[Executable]:
    """The inference, and what brings the parameters that stay; both have the same token."""
    program = Assembler(_CACHING_TAG)
    begin(program)
    load_parameters(program, cache.blocks)
    end(program)
    kept = blob(cache.blocks)
    bitstreams = [each.bitstream for each in inference.instruction_bitstreams]
    token = token_of(kept, *bitstreams) if token is None else token
    caching = Executable(
        name=inference.name,
        batch_size=1,
        chip=chip.PROGRAM_NAME,
        type=ExecutableType.PARAMETER_CACHING,
        instruction_bitstreams=program.chunks(),
        dma_hints=program.hints(),
        parameters=kept,
        parameter_caching_token=token,
    )
    pair = replace(inference, type=ExecutableType.EXECUTION_ONLY, parameter_caching_token=token)
    return [pair, caching]


def _numerics(port: Port) -> NumericsConstants:
    return NumericsConstants(port.image.zero_point, float(port.image.scale))


def _type(port: Port) -> DataType:
    if port.image.element_bytes > 1:
        return DataType.SIGNED_FIXED_POINT16
    return DataType.SIGNED_FIXED_POINT8 if port.signed else DataType.FIXED_POINT8


def _input_layer(port: Port) -> Layer:
    image = port.image
    return Layer(
        port.name,
        input_bytes(port),
        image.height,
        image.width,
        image.channels // image.element_bytes,
        _numerics(port),
        _type(port),
        InputLayer(),
    )


def _output_layer(port: Port, placement: Placement) -> Layer:
    image = port.image
    return Layer(
        port.name,
        sum(map(share_bytes, output_shares(port, placement))),
        image.height,
        image.width,
        image.channels // image.element_bytes,
        _numerics(port),
        _type(port),
        OutputLayer(_layout(port, placement)),
        shape=box(*((0, size) for size in port.shape)),
    )


def _layout(port: Port, placement: Placement) -> OutputLayout:
    """Where the pixels of an output are in what the tiles send one after another."""
    storage, pitch = placement.of(port.image), port.image.pitch
    shares = output_shares(port, placement)
    sent = {share.tile: share_bytes(share) for share in shares}
    order = [sent.get(tile, 0) for tile in range(chip.TILES)]
    rows = [_place(storage.rows, y) for y in range(port.image.height)]
    columns = [_place(storage.columns, x) for x in range(port.image.width)]
    return OutputLayout(
        y_coordinate_to_linear_tile_id_map=tuple(chip.GRID_COLUMNS * place for place, _ in rows),
        x_coordinate_to_linear_tile_id_map=tuple(place for place, _ in columns),
        linearized_tile_byte_offset=tuple(sum(order[:tile]) for tile in range(chip.TILES)),
        x_coordinate_to_local_byte_offset=tuple(offset * pitch for _, offset in columns),
        y_coordinate_to_local_y_offset=tuple(offset for _, offset in rows),
        x_coordinate_to_local_y_row_size=tuple(
            length(storage.columns.own[place]) * pitch for place, _ in columns
        ),
    )


def _place(spread: Spread, index: int) -> tuple[int, int]:
    """Place of the grid that has an element, and its number there."""
    for place, (first, behind) in enumerate(spread.own):
        if first <= index < behind:
            return place, index - first
    raise AssertionError(f"element {index} of {spread.size} has no place")


# --- the model ----------------------------------------------------------------------------------


Part = tuple[IntegerGraph, Package, frozenset[int]]
"""A piece of a model: its graph, what the chip runs for it, and the numbers of its operators."""


def with_custom_operators(model: tflite.Model, parts: Sequence[Part]) -> bytes:
    """The model in which each part has become one custom operator.

    Operators run as soon as their inputs are there, those of the CPU in their order. What makes
    constants alone (``folding``) goes.
    """
    source = model.subgraphs[0]
    on_chip = frozenset().union(*(numbers for _, _, numbers in parts))
    nodes = [
        (number, operator)
        for number, operator in enumerate(source.operators)
        if number not in on_chip
        and not (operator.outputs and all(_is_constant(model, k) for k in operator.outputs))
    ]
    for graph, package, numbers in parts:
        model, custom = _with_code(model, graph, package)
        nodes.append((max(numbers), custom))
    return _rewritten(model, _in_order(nodes), source.inputs, source.outputs)


def _in_order(nodes: Sequence[tuple[int, tflite.Operator]]) -> list[tflite.Operator]:
    """Operators so that each stands behind those it reads, else by number."""
    left = sorted(nodes, key=lambda node: node[0])
    missing = {index for _, operator in left for index in operator.outputs}
    found: list[tflite.Operator] = []
    while left:
        node = next(node for node in left if missing.isdisjoint(node[1].inputs))
        left.remove(node)
        missing.difference_update(node[1].outputs)
        found.append(node[1])
    return found


def chips_part(
    model: tflite.Model, graph: IntegerGraph, package: Package, on_chip: frozenset[int]
) -> tuple[bytes, bytes]:
    """The operators ``on_chip`` as a model of their own, and the same compiled."""
    source = model.subgraphs[0]
    extended, custom = _with_code(model, graph, package)
    chosen = [source.operators[k] for k in sorted(on_chip)]
    return (
        _rewritten(model, chosen, custom.inputs, custom.outputs),
        _rewritten(extended, [custom], custom.inputs, custom.outputs),
    )


def submodel(model: tflite.Model, numbers: Sequence[int]) -> bytes:
    """Some operators of a model as a model of their own.

    Its inputs are tensors that come from elsewhere, its outputs those that others need.
    """
    source = model.subgraphs[0]
    chosen = [source.operators[number] for number in numbers]
    made = {index for operator in chosen for index in operator.outputs}
    others = [each for number, each in enumerate(source.operators) if number not in set(numbers)]
    wanted = {*source.outputs, *(index for operator in others for index in operator.inputs)}
    read = dict.fromkeys(index for operator in chosen for index in operator.inputs if index >= 0)
    inputs = [index for index in read if index not in made and not _is_constant(model, index)]
    outputs = [index for operator in chosen for index in operator.outputs if index in wanted]
    return _rewritten(model, chosen, inputs, outputs)


def _is_constant(model: tflite.Model, index: int) -> bool:
    tensor = model.subgraphs[0].tensors[index]
    return len(model.buffers[tensor.buffer].data) > 0


def _with_code(
    model: tflite.Model, graph: IntegerGraph, package: Package
) -> tuple[tflite.Model, tflite.Operator]:
    """The model that knows the custom operator, and the operator."""
    code = tflite.OperatorCode(
        int(BuiltinOperator.CUSTOM), CUSTOM_OPERATOR, 1, int(BuiltinOperator.CUSTOM)
    )
    codes = model.operator_codes if code in model.operator_codes else (*model.operator_codes, code)
    options = flatbuffer.Span(memoryview(custom_options(darwinn.dump(package))))
    custom = tflite.Operator(
        codes.index(code),
        tuple(port.index for port in graph.inputs),
        tuple(port.index for port in graph.outputs if not port.state),
        custom_options=options,
    )
    return replace(model, operator_codes=codes), custom


def _rewritten(
    model: tflite.Model,
    operators: Sequence[tflite.Operator],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> bytes:
    """A model of other operators, without tensors, buffers and codes that none of them uses.

    Variables are no inputs of it: it has their values itself.
    """
    source = model.subgraphs[0]
    inputs = [index for index in inputs if not source.tensors[index].is_variable]
    used = {
        k
        for each in operators
        for k in (*each.inputs, *each.outputs, *each.intermediates)
        if k >= 0
    }
    kept = sorted(used | {*inputs, *outputs})
    new = {old: number for number, old in enumerate(kept)} | {-1: -1}
    buffers = [tflite.Buffer(memoryview(b""))]
    tensors = []
    for index in kept:
        tensor = source.tensors[index]
        data = model.buffers[tensor.buffer]
        if len(data.data):
            buffers.append(data)
        tensors.append(replace(tensor, buffer=len(buffers) - 1 if len(data.data) else 0))
    in_use = sorted({each.opcode_index for each in operators})
    new_code = {old: number for number, old in enumerate(in_use)}
    rewritten = replace(
        source,
        tensors=tuple(tensors),
        inputs=tuple(new[k] for k in inputs),
        outputs=tuple(new[k] for k in outputs),
        operators=tuple(
            replace(
                each,
                opcode_index=new_code[each.opcode_index],
                inputs=tuple(new[k] for k in each.inputs),
                outputs=tuple(new[k] for k in each.outputs),
                intermediates=tuple(new[k] for k in each.intermediates),
            )
            for each in operators
        ),
    )
    return flatbuffer.write(
        tflite.Model(
            model.version,
            tuple(model.operator_codes[k] for k in in_use),
            (rewritten,),
            model.description,
            tuple(buffers),
        )
    )
