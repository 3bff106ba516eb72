"""Payloads of the XNNPACK delegate: reading, writing, what is refused, what is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from damaged_files import MEGABYTES_64, changes, check, peak_memory
from darwinn_formats import executorch
from darwinn_formats.errors import FormatError
from darwinn_formats.executorch import xnnpack
from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import NO_VALUE, Datatype
from xnnpack_cases import NODES, cases
from xnnpack_graphs import GraphBuilder

FP32, QINT8 = Datatype.FP32, Datatype.QINT8
WEIGHTS = np.arange(6, dtype=np.int8).reshape(2, 3)
SCALES = (0.5, 0.25)


def nothing(key: str) -> memoryview:
    raise KeyError(key)


def load(payload: bytes) -> xnnpack.XnnpackGraph:
    return xnnpack.load(payload, nothing)


def small() -> GraphBuilder:
    """A fully connected layer with quantised weights, and a clamp behind it."""
    graph = GraphBuilder()
    x = graph.input(QINT8, (4, 3), (0.5, 1))
    weights = graph.value(Datatype.QCINT8, (2, 3), schema.PerChannelQuant(SCALES, 0), data=WEIGHTS)
    between = graph.value(QINT8, (4, 2), (1.0, 0))
    y = graph.output(QINT8, (4, 2), (1.0, 0))
    graph.node(schema.FullyConnected(x, weights, NO_VALUE, between))
    graph.node(schema.Clamp(between, y), (0.0, 6.0))
    return graph


def changed(**fields: Any) -> bytes:
    graph = small()
    return xnnpack.dump(replace(graph.graph(), **fields), graph.constants)


def with_value(index: int, quantisation: Any = None, **fields: Any) -> bytes:
    """The small graph with other fields of a value."""
    graph = small()
    value = graph.values[index]
    tensor = replace(value.tensor, **fields)
    graph.values[index] = schema.Value(
        schema.QuantizedTensorValue(tensor, quantisation or value.quantisation)
    )
    return graph.payload()


def with_node(index: int, operation: Any) -> bytes:
    graph = small()
    graph.nodes[index] = replace(graph.nodes[index], xnode_union=operation)
    return graph.payload()


def test_what_is_written_is_read() -> None:
    graph = small()
    loaded = load(graph.payload())
    assert loaded.root.xnodes == tuple(graph.nodes)
    assert loaded.root.xvalues == tuple(graph.values)
    assert bytes(loaded.constants[1]) == WEIGHTS.tobytes()
    assert loaded.data(loaded.values[0]) is None
    weights = loaded.data(loaded.values[1])
    assert weights is not None and bytes(weights) == WEIGHTS.tobytes()


@pytest.mark.parametrize("name", NODES)
def test_every_node_is_written_and_read(name: str) -> None:
    numbers = [at for at, entry in enumerate(NODES) if entry == name]
    before = sum(len(types) for _, types in list(NODES.values())[: numbers[0]])
    case = list(cases(3, before + 1))[-1]
    file = executorch.load(case.program)
    (delegate,) = file.program.execution_plan[0].delegates
    graph = file.xnnpack(delegate)
    assert graph is not None
    again = load(xnnpack.dump(graph.root, graph.constants[1:]))
    assert (again.root.xnodes, again.root.xvalues) == (graph.root.xnodes, graph.root.xvalues)
    assert list(map(bytes, again.constants)) == list(map(bytes, graph.constants))


def test_graphs_of_the_version_before_have_their_data_within() -> None:
    from darwinn_formats import flatbuffer as fb

    graph = small()
    data = schema.Buffer(fb.Span(memoryview(WEIGHTS.tobytes())))
    older = schema.OlderGraph(
        xnodes=tuple(graph.nodes),
        xvalues=tuple(graph.values),
        num_externs=2,
        constant_buffer=(schema.Buffer(), data),
    )
    loaded = load(fb.write(older))
    assert bytes(loaded.constants[1]) == WEIGHTS.tobytes()


def test_data_by_name_comes_from_the_program() -> None:
    graph = small()
    root = replace(
        graph.graph(),
        constant_data=(
            schema.ConstantDataOffset(),
            schema.ConstantDataOffset(schema.NAMED, 6, "weights"),
        ),
    )
    from darwinn_formats import flatbuffer as fb

    flat = fb.write(root)
    payload = xnnpack.dump(graph.graph(), graph.constants)
    start = 32
    header = bytearray(payload[:start])
    header[14:18] = len(flat).to_bytes(4, "little")
    header[18:22] = (start + len(flat)).to_bytes(4, "little")
    header[22:30] = bytes(8)
    named = bytes(header) + flat
    content = {"weights": memoryview(WEIGHTS.tobytes())}
    loaded = xnnpack.load(named, content.__getitem__)
    assert bytes(loaded.constants[1]) == WEIGHTS.tobytes()
    with pytest.raises(FormatError, match=r"constant_data\[1\].named_key: neither .* 'weights'"):
        load(named)
    with pytest.raises(FormatError, match=r"constant_data\[1\].size: 6 bytes of 3"):
        xnnpack.load(named, lambda key: memoryview(b"abc"))


FAULTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "identifier": (lambda: b"\0\0\0\0XN99" + bytes(24), "file identifier: b'XN99' is neither"),
    "short header": (lambda: small().payload()[:20], "XNNPACK header: the payload ends"),
    "graph past the end": (lambda: small().payload()[:60], "header.flatbuffer_offset: graph from"),
    "constants past the end": (
        lambda: small().payload()[:-12],
        "header.constant_data_offset: constants from",
    ),
    "type": (
        lambda: with_value(0, datatype=Datatype.INVALID),
        r"xvalues\[0\].datatype: values have no elements",
    ),
    "sizes": (lambda: with_value(0, num_dims=3), r"xvalues\[0\].dims: 2 of 3"),
    "rank": (
        lambda: with_value(0, num_dims=7, dims=(1,) * 7),
        r"xvalues\[0\].num_dims: 7 are more than 6",
    ),
    "huge": (
        lambda: with_value(0, dims=(2**31, 2**31)),
        r"xvalues\[0\].dims: a value of more elements",
    ),
    "external": (
        lambda: changed(num_externs=1),
        r"xvalues\[3\].external_id: 1 of 1 external values",
    ),
    "no constant": (
        lambda: with_value(1, constant_buffer_idx=2),
        r"xvalues\[1\].constant_buffer_idx: 2 of 2 constants",
    ),
    "little data": (
        lambda: with_value(1, dims=(2, 4)),
        r"xvalues\[1\].constant_buffer_idx: constant 1 has 6 bytes, the value 8",
    ),
    "id": (lambda: with_value(1, id_out=0), r"xvalues\[1\].id_out: 0 is taken"),
    "quantisation": (
        lambda: with_value(0, schema.PerTokenDynamicQuant(1)),
        r"xvalues\[0\].quant_params: qint8 goes with PerTensorQuant, not PerTokenDynamicQuant",
    ),
    "scale": (
        lambda: with_value(0, schema.PerTensorQuant(-1.0, 0)),
        r"quant_params.scale: -1.0 is no scale",
    ),
    "zero point": (
        lambda: with_value(0, schema.PerTensorQuant(1.0, 200)),
        "quant_params.zero_point: 200 is not within -128 to 127",
    ),
    "scales": (
        lambda: with_value(1, schema.PerChannelQuant((1.0,), 0)),
        "quant_params.scale: 1 scales, 2 needed",
    ),
    "channel": (
        lambda: with_value(1, schema.PerChannelQuant((1.0,), 2)),
        "quant_params.channel_dim: 2 of 2 dimensions",
    ),
    "stored scales": (
        lambda: with_value(1, schema.PerChannelQuant((), 0, 1, 2)),
        "quant_params.num_scales: 2 in 6 bytes, 2 needed",
    ),
    "node": (lambda: with_node(0, None), r"xnodes\[0\].xnode_union: the node is absent"),
    "unknown value": (
        lambda: with_node(1, schema.Clamp(9, 3)),
        r"xnodes\[1\].Clamp.input_id: no value 9",
    ),
    "written constant": (
        lambda: with_node(1, schema.Clamp(2, 1)),
        r"xnodes\[1\].Clamp.output_id: value 1 is constant",
    ),
    "order": (
        lambda: with_node(0, schema.FullyConnected(3, 1, NO_VALUE, 2)),
        r"xnodes\[0\].FullyConnected.input1_id: value 3 is not there when it is read",
    ),
    "output": (
        lambda: changed(xnodes=tuple(small().nodes[:1])),
        "output_ids: the output 3 is never written",
    ),
    "permutation": (
        lambda: with_node(1, schema.StaticTranspose(2, (0, 0), 2, 3)),
        r"StaticTranspose.perm: \[0, 0\] does not order 2",
    ),
    "shape": (
        lambda: with_node(1, schema.StaticReshape(3, (8,), 2, 3)),
        "StaticReshape.new_shape: 1 sizes of 3",
    ),
    "slice": (
        lambda: with_node(1, schema.StaticSlice(2, (0, 0), (1,), 2, 3)),
        "StaticSlice.offsets: 2 and 1 sizes of 2",
    ),
    "margins": (
        lambda: with_node(1, schema.StaticConstantPad((0, 0), (1,), 0.0, 2, 3)),
        "StaticConstantPad.pre_paddings: 2 margins, and 1 behind",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_with_their_offset(fault: str) -> None:
    make, reason = FAULTS[fault]
    with pytest.raises(FormatError, match=reason) as caught:
        load(make())
    assert caught.value.offset is not None


def test_changed_payloads_load_or_are_refused() -> None:
    payload = small().payload()
    results = [check(load, payload[:end]) for end in range(len(payload))]
    results += [check(load, data) for data in changes(payload, 3)]
    assert any(results)
    assert not all(results)
    for loaded in filter(None, results):
        xnnpack.describe(loaded)
        assert list(xnnpack.disassemble(loaded))


def test_memory_is_bounded() -> None:
    payload = small().payload()
    assert peak_memory(load, payload) < 2 * len(payload) + MEGABYTES_64


def test_the_program_names_file_and_place() -> None:
    data = small().program()
    at = data.index(b"XH00") + 6
    broken = data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :]
    file = executorch.load(broken)
    (delegate,) = file.program.execution_plan[0].delegates
    with pytest.raises(FormatError, match=r"delegate XnnpackBackend\.XNNPACK header") as caught:
        file.xnnpack(delegate)
    assert caught.value.offset == at
    assert caught.value.file == "<bytes>"


def test_summary_and_listing_show_the_graph() -> None:
    file = executorch.load(small().program())
    (method,) = executorch.describe(file)["methods"]
    (delegate,) = method["delegates"]
    assert delegate["graph"] == {
        "version": "0",
        "nodes": {"Clamp": 1, "FullyConnected": 1},
        "inputs": ["qint8[4, 3] scale 0.5 zero point 1 input 0"],
        "outputs": ["qint8[4, 2] scale 1 zero point 0 output 1"],
        "datatypes": {"qcint8": 1, "qint8": 3},
        "constants": 6,
    }
    lines = [line.strip() for line in executorch.disassemble(file)]
    assert "v1 = qcint8[2, 3] scales of dimension 0 data 1" in lines
    assert "0  v2 = FullyConnected(v0, v1, none)" in lines
    assert "1  v3 = Clamp(v2, within 0 to 6)" in lines
