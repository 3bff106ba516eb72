"""ExecuTorch programs: operators, networks, state, control flow, several methods, quantised.

Needs PyTorch and ExecuTorch; they are imported when a program is made, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.conformance.subject import Call, Maker, Subject

Shape = tuple[int, ...]
Operator = tuple[Callable[..., Any], Sequence[Shape]]


def _torch() -> Any:
    import torch

    return torch


def _functional() -> Any:
    from torch.nn import functional

    return functional


PORTABLE: Mapping[str, Operator] = {
    "add": (lambda x, y: x + y, [(3, 4), (4,)]),
    "addmm": (lambda b, x, y: _torch().addmm(b, x, y), [(5,), (3, 4), (4, 5)]),
    "argmax": (lambda x: x.argmax(1), [(3, 7)]),
    "avg_pool2d": (lambda x: _functional().avg_pool2d(x, 3, 2, 1), [(1, 3, 9, 8)]),
    "bmm": (lambda x, y: x @ y, [(2, 3, 4), (2, 4, 5)]),
    "cat": (lambda x, y: _torch().cat([x, y], 1), [(2, 3), (2, 5)]),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), [(4, 5)]),
    "cumsum": (lambda x: x.cumsum(1), [(3, 6)]),
    "erf": (lambda x: x.erf(), [(4, 5)]),
    "gather": (lambda x, y: x.gather(1, (y > 0).long()), [(3, 4), (3, 4)]),
    "gelu": (lambda x: _functional().gelu(x), [(4, 5)]),
    "grid_sample": (
        lambda x, g: _functional().grid_sample(x, g.tanh(), align_corners=False),
        [(1, 2, 5, 6), (1, 4, 3, 2)],
    ),
    "index_select": (lambda x: x.index_select(0, _torch().tensor([2, 0])), [(3, 4)]),
    "interpolate": (
        lambda x: _functional().interpolate(x, size=(7, 9), mode="bilinear"),
        [(1, 2, 4, 5)],
    ),
    "layer_norm": (lambda x: _functional().layer_norm(x, (6,)), [(2, 3, 6)]),
    "logit": (lambda x: x.sigmoid().logit(), [(4, 5)]),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1.0), [(4, 5)]),
    "max_dim": (lambda x: x.max(1), [(3, 6)]),
    "max_pool2d": (lambda x: _functional().max_pool2d(x, 3, 2, 1), [(1, 3, 9, 8)]),
    "pad_reflect": (lambda x: _functional().pad(x, (2, 1, 1, 2), "reflect"), [(1, 2, 5, 5)]),
    "pixel_shuffle": (lambda x: _functional().pixel_shuffle(x, 2), [(1, 8, 3, 3)]),
    "pow": (lambda x, y: x.abs().pow(y), [(3, 4), (3, 4)]),
    "prod": (lambda x: x.prod(1), [(3, 6)]),
    "repeat": (lambda x: x.repeat(2, 3), [(2, 3)]),
    "roll": (lambda x: x.roll(2, 1), [(3, 5)]),
    "scatter_add": (
        lambda x, y: x.scatter_add(1, (y > 0).long(), y),
        [(3, 4), (3, 4)],
    ),
    "slice": (lambda x: x[:, 1:7:2], [(3, 9)]),
    "softmax": (lambda x: x.softmax(-1), [(3, 6)]),
    "split": (lambda x: x.split([2, 3], 1), [(2, 5)]),
    "topk": (lambda x: x.topk(3), [(2, 9)]),
    "tril": (lambda x: x.tril(), [(4, 5)]),
    "unfold": (lambda x: x.unfold(1, 3, 2), [(2, 9)]),
    "var_mean": (lambda x: _torch().var_mean(x, 1), [(3, 6)]),
    "where": (lambda x, y: _torch().where(x > y, x, y), [(3, 4), (3, 4)]),
}
"""Operators of the portable library: what is exported, and sizes of the inputs."""

XNNPACK: Mapping[str, Operator] = {
    "add_relu": (lambda x, y: (x + y).relu(), [(2, 5), (2, 5)]),
    "avg_pool2d": (lambda x: _functional().avg_pool2d(x, 2), [(1, 3, 8, 8)]),
    "bmm": (lambda x, y: _torch().bmm(x, y), [(2, 3, 4), (2, 4, 5)]),
    "cat5": (lambda *x: _torch().cat(x, 1), [(2, size) for size in (1, 2, 3, 4, 5)]),
    "div": (lambda x, y: x / (y.abs() + 1), [(3, 4), (3, 4)]),
    "elu": (lambda x: _functional().elu(x), [(3, 5)]),
    "exp_log": (lambda x: (x.exp() + 1).log(), [(3, 5)]),
    "gelu": (lambda x: _functional().gelu(x), [(3, 5)]),
    "hardswish": (lambda x: _functional().hardswish(x), [(3, 5)]),
    "interpolate": (
        lambda x: _functional().interpolate(x, size=(7, 9), mode="bilinear"),
        [(1, 2, 4, 5)],
    ),
    "leaky_relu": (lambda x: _functional().leaky_relu(x, 0.1), [(3, 5)]),
    "max_pool2d": (lambda x: _functional().max_pool2d(x, 2), [(1, 3, 8, 8)]),
    "minimum_maximum": (lambda x, y: x.minimum(y).maximum(-y), [(3, 4), (3, 4)]),
    "pad": (lambda x: _functional().pad(x, (1, 2, 0, 1)), [(1, 2, 3, 4)]),
    "permute": (lambda x: (x * 2).permute(0, 2, 1), [(2, 3, 4)]),
    "rsqrt": (lambda x: (x * x + 1).rsqrt(), [(3, 5)]),
    "sigmoid_tanh": (lambda x: x.sigmoid() * x.tanh(), [(3, 5)]),
    "sin_cos": (lambda x: x.sin() * x.cos(), [(3, 5)]),
    "softmax": (lambda x: x.softmax(-1), [(3, 6)]),
    "square_sqrt": (lambda x: (x * x).sqrt() - x.abs(), [(3, 5)]),
}
"""Operators that are given to XNNPACK."""

PORTABLE_NETWORKS = (
    *("resnet", "resnet18", "mobilenet_v3", "vit", "unet", "autoencoder", "branches"),
    *("recurrent", "feedforward", "decoder", "prefill", "rows"),
)
XNNPACK_NETWORKS = (
    *("resnet", "resnet18", "mobilenet_v3", "vit", "unet", "autoencoder", "branches"),
    *("recurrent", "feedforward", "decoder", "prefill"),
)
QUANTISED_NETWORKS = ("resnet", "resnet18", "mobilenet_v3", "autoencoder", "branches")
DYNAMIC_NETWORKS = ("vit", "feedforward", "branches")


def _arrays(tensors: Sequence[Any]) -> list[Any]:
    return [entry.detach().numpy() for entry in tensors]


def _calls(samples: Sequence[Sequence[Any]]) -> list[Call]:
    return [Call(_arrays(sample)) for sample in samples]


def _module(function: Callable[..., Any]) -> Any:
    from torch import nn

    class Wrapped(nn.Module):
        def forward(self, *given: Any) -> Any:
            result = function(*given)
            # Named tuples of PyTorch cannot be exported.
            return tuple(result) if isinstance(result, tuple) else result

    return Wrapped().eval()


def _program(
    modules: Mapping[str, tuple[Any, Sequence[Any]]],
    *,
    xnnpack: bool,
    dynamic: Any = None,
    config: Any = None,
) -> Any:
    """Methods by name, each a module and example inputs, as a program of ExecuTorch."""
    torch = _torch()
    from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower

    check = EdgeCompileConfig(_check_ir_validity=False)
    with torch.no_grad():
        exported = {
            name: torch.export.export(module, tuple(given), dynamic_shapes=dynamic, strict=False)
            for name, (module, given) in modules.items()
        }
        if xnnpack:
            from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

            edge = to_edge_transform_and_lower(
                exported, partitioner=[XnnpackPartitioner()], compile_config=check
            )
        else:
            edge = to_edge(exported, compile_config=check)
        return edge.to_executorch(config) if config is not None else edge.to_executorch()


def _operator(operator: Operator, xnnpack: bool) -> Subject:
    torch = _torch()
    torch.manual_seed(0)
    function, shapes = operator
    samples = [tuple(torch.randn(shape) * 2 for shape in shapes) for _ in range(3)]
    program = _program({"forward": (_module(function), samples[0])}, xnnpack=xnnpack)
    return Subject(bytes(program.buffer), _calls(samples))


def _network(name: str, xnnpack: bool) -> Subject:
    from benchmarks.conformance.networks import DYNAMIC, drawn

    network, samples = drawn(name)
    program = _program(
        {"forward": (network, samples[0])}, xnnpack=xnnpack, dynamic=DYNAMIC.get(name)
    )
    return Subject(bytes(program.buffer), _calls(samples))


def _quantised(name: str, xnnpack: bool, **options: Any) -> Subject:
    """A network quantised by XNNPACK's quantiser, calibrated with its own inputs."""
    torch = _torch()
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from benchmarks.conformance.networks import drawn

    network, samples = drawn(name)
    quantiser = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options))
    with torch.no_grad():
        captured = torch.export.export(network, samples[0], strict=False).module()
        prepared = prepare_pt2e(captured, quantiser)
        for sample in samples:
            prepared(*sample)
        converted = convert_pt2e(prepared)
    program = _program({"forward": (converted, samples[0])}, xnnpack=xnnpack)
    return Subject(bytes(program.buffer), _calls(samples))


def _intx(bits: str) -> Subject:
    """Rows of 8 bits quantised at run time, weights by torchao: 4 bits by group, 8 by channel."""
    torch = _torch()
    from torchao.quantization import (
        Int8DynamicActivationIntxWeightConfig,
        PerAxis,
        PerGroup,
        quantize_,
    )

    from benchmarks.conformance.networks import drawn

    network, samples = drawn("feedforward")
    granularity = PerGroup(32) if bits == "int4" else PerAxis(0)
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=getattr(torch, bits), weight_granularity=granularity
    )
    quantize_(network, config)
    program = _program({"forward": (network, samples[0])}, xnnpack=True)
    return Subject(bytes(program.buffer), _calls(samples))


def _embedding() -> Subject:
    """A table of words whose rows torchao quantised, read by the quantised library."""
    torch = _torch()
    # Registers the operator.
    from executorch.exir.passes import _quant_patterns_and_replacements  # noqa: F401
    from torch import nn
    from torchao.quantization import IntxWeightOnlyConfig, PerAxis, quantize_

    torch.manual_seed(0)
    table = nn.Sequential(nn.Embedding(40, 64)).eval()
    config = IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0))
    quantize_(table, config, lambda module, name: isinstance(module, nn.Embedding))
    weight = table[0].weight
    rows, scales = weight.qdata.clone(), weight.scale.flatten().clone()
    read = torch.ops.quantized_decomposed.embedding_byte
    samples = [(torch.randint(0, 40, (2, 3)),) for _ in range(3)]
    module = _module(lambda words: read(rows, scales, None, -128, 127, words))
    program = _program({"forward": (module, samples[0])}, xnnpack=False)
    return Subject(bytes(program.buffer), _calls(samples))


def _several(xnnpack: bool) -> Subject:
    """Two methods with weights in common."""
    torch = _torch()
    from torch import nn

    torch.manual_seed(0)
    down, up = nn.Linear(12, 4), nn.Linear(4, 12)
    given, inner = torch.randn(3, 12), torch.randn(3, 4)
    methods = {
        "encode": (_module(lambda x: down(x).relu()), (given,)),
        "decode": (_module(lambda x: up(x).tanh()), (inner,)),
    }
    program = _program(methods, xnnpack=xnnpack)
    calls = [Call(_arrays([given]), "encode"), Call(_arrays([inner]), "decode")]
    return Subject(bytes(program.buffer), calls)


def _external(xnnpack: bool) -> Subject:
    """Weights in a file of their own."""
    import tempfile
    from pathlib import Path

    from executorch.exir import ExecutorchBackendConfig

    from benchmarks.conformance.networks import drawn

    network, samples = drawn("branches")
    config = ExecutorchBackendConfig(external_constants=True)
    program = _program({"forward": (network, samples[0])}, xnnpack=xnnpack, config=config)
    with tempfile.TemporaryDirectory() as folder:
        program.write_tensor_data_to_file(folder)
        beside = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    return Subject(bytes(program.buffer), _calls(samples), beside=beside)


def _conditional() -> Subject:
    """A branch by the input, within one by its sum."""
    torch = _torch()
    torch.manual_seed(0)

    def inner(x: Any) -> Any:
        return torch.cond(x.max() > 2, lambda a: a - 2, lambda a: a * 3, (x,))

    module = _module(lambda x: torch.cond(x.sum() > 0, inner, lambda a: a.abs(), (x,)))
    samples = [(torch.randn(3, 4) * factor + shift,) for factor, shift in ((1, 1), (3, 1), (1, -2))]
    program = _program({"forward": (module, samples[0])}, xnnpack=False)
    return Subject(bytes(program.buffer), _calls(samples))


def _state() -> Subject:
    """A moving average, kept from call to call."""
    torch = _torch()
    from torch import nn

    class Average(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x: Any) -> Any:
            self.mean.mul_(0.5).add_(x * 0.5)
            return self.mean + 0

    torch.manual_seed(0)
    samples = [(torch.randn(4),) for _ in range(4)]
    program = _program({"forward": (Average().eval(), samples[0])}, xnnpack=False)
    return Subject(bytes(program.buffer), _calls(samples))


def programs() -> dict[str, Maker]:
    """What makes each program, by its name."""
    found: dict[str, Maker] = {}
    for name, operator in PORTABLE.items():
        found[f"operator {name}"] = partial(_operator, operator, False)
    for name, operator in XNNPACK.items():
        found[f"xnnpack operator {name}"] = partial(_operator, operator, True)
    for name in PORTABLE_NETWORKS:
        found[f"network {name}"] = partial(_network, name, False)
    for name in XNNPACK_NETWORKS:
        found[f"xnnpack network {name}"] = partial(_network, name, True)
    for name in QUANTISED_NETWORKS:
        for by_channel in (False, True):
            how = "channel" if by_channel else "tensor"
            make = partial(_quantised, name, True, is_per_channel=by_channel)
            found[f"xnnpack int8 by {how} {name}"] = make
    for name in ("resnet", "branches"):
        found[f"portable int8 {name}"] = partial(_quantised, name, False, is_per_channel=True)
    for name in DYNAMIC_NETWORKS:
        make = partial(_quantised, name, True, is_per_channel=True, is_dynamic=True)
        found[f"xnnpack int8 at run time {name}"] = make
    for bits in ("int4", "int8"):
        found[f"torchao {bits} linear, xnnpack"] = partial(_intx, bits)
    found["torchao int8 embedding"] = _embedding
    for xnnpack in (False, True):
        how = ", xnnpack" if xnnpack else ""
        found[f"several methods{how}"] = partial(_several, xnnpack)
        found[f"external weights{how}"] = partial(_external, xnnpack)
    found["control flow: branches"] = _conditional
    found["state: moving average"] = _state
    return found
