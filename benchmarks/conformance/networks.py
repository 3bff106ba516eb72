"""Small networks of the kinds that users export, with random weights, as ExecuTorch programs.

Needs PyTorch and ExecuTorch, which are no dependencies: import it only where they are installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, to_edge
from torch import nn
from torch._higher_order_ops.map import map as each_row
from torch.nn import functional as F  # noqa: N812


class Residual(nn.Module):
    """ResNet: strided convolutions with batch norms, a residual block, global average."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.first = nn.Sequential(
            nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16))
        self.shortcut = nn.Conv2d(8, 16, 1, 2)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.stem(x))
        x = F.relu(self.second(self.first(x)) + self.shortcut(x))
        return self.head(torch.flatten(self.average(x), 1))


class Attention(nn.Module):
    """Multi-head attention over a sequence."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.project(x).chunk(3, dim=-1)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        attended = F.scaled_dot_product_attention(q, k, v)
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))


class Vision(nn.Module):
    """Vision transformer: patches, class token, positions, blocks of attention and MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.positions = nn.Parameter(torch.randn(1, 17, 16))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(3))
        self.attention = Attention(16, 4)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        x = x + self.attention(self.norms[0](x))
        x = x + self.mlp(self.norms[1](x))
        return F.softmax(self.head(self.norms[2](x)[:, 0]), dim=-1)


class Unet(nn.Module):
    """U-Net: down by pooling, up by transposed convolution and by interpolation, skips."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.middle = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.LeakyReLU(0.1))
        self.bottom = nn.Sequential(nn.Conv2d(8, 8, 3, padding=2, dilation=2), nn.InstanceNorm2d(8))
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.merge = nn.Conv2d(16, 4, 3, padding=1)
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.down(x)
        second = self.middle(F.max_pool2d(first, 2))
        bottom = F.elu(self.bottom(F.avg_pool2d(second, 2)))
        x = F.hardtanh(self.merge(torch.cat([self.up(bottom), second], 1)))
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        x = x + F.interpolate(second[:, :4], size=first.shape[-2:], mode="nearest")
        return torch.sigmoid(self.last(torch.cat([F.pad(x, (0, 0, 0, 0)), first], 1)))


class Decoder(nn.Module):
    """Decoder-only transformer: RMS norms, rotary positions, grouped heads, key/value caches."""

    def __init__(self, length: int = 8, width: int = 16, heads: int = 4, shared: int = 2) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.embed = nn.Embedding(32, width)
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * shared * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 32, bias=False)
        self.lift = nn.Linear(width, 32, bias=False)
        self.drop = nn.Linear(32, width, bias=False)
        self.head = nn.Linear(width, 32, bias=False)
        self.register_buffer("keys", torch.zeros(1, shared, length, self.size))
        self.register_buffer("values", torch.zeros(1, shared, length, self.size))
        angles = torch.outer(torch.arange(length), 1 / 10000 ** (torch.arange(0, self.size, 2) / 4))
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())
        self.register_buffer("order", torch.arange(length))

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

    def turn(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        cosine, sine = self.cosines[at], self.sines[at]
        turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1)
        return turned.flatten(-2)

    def forward(self, token: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embed(token)
        hidden = self.norm(x)
        q = self.turn(self.q(hidden).view(1, 1, self.heads, self.size).transpose(1, 2), at)
        k, v = self.kv(hidden).view(1, 1, 2 * self.shared, self.size).transpose(1, 2).chunk(2, 1)
        self.keys[:, :, at] = self.turn(k, at)
        self.values[:, :, at] = v
        keys = self.keys.repeat_interleave(self.heads // self.shared, 1)
        values = self.values.repeat_interleave(self.heads // self.shared, 1)
        scores = q @ keys.transpose(-1, -2) / math.sqrt(self.size)
        scores = scores.masked_fill(self.order > at, float("-inf"))
        attended = (F.softmax(scores, -1) @ values).transpose(1, 2).reshape(1, 1, -1)
        x = x + self.out(attended)
        hidden = self.norm(x)
        x = x + self.drop(F.silu(self.gate(hidden)) * self.lift(hidden))
        logits = self.head(self.norm(x))
        return logits, logits.argmax(-1)


class Prefill(nn.Module):
    """A transformer over a prompt of any length, which is not known when it is exported."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.norm = nn.LayerNorm(16)
        self.attention = Attention(16, 4)
        self.head = nn.Linear(16, 32)
        self.register_buffer("positions", torch.randn(1, 16, 16))

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        x = self.embed(token) + self.positions[:, : token.shape[1]]
        return self.head(x + self.attention(self.norm(x)))


class Squeeze(nn.Module):
    """Weights for channels, from their averages, as MobileNet v3 has them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(width, max(width // 4, 4), 1)
        self.up = nn.Conv2d(max(width // 4, 4), width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        means = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.up(F.relu(self.down(means))))


class Inverted(nn.Module):
    """Inverted residual: wider, depthwise, weights for channels, narrower."""

    def __init__(
        self, width: int, wide: int, out: int, size: int, step: int, squeeze: bool, hard: bool
    ) -> None:
        super().__init__()
        activation = nn.Hardswish if hard else nn.ReLU
        self.body = nn.Sequential(
            *(nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide), activation()),
            nn.Conv2d(wide, wide, size, step, size // 2, groups=wide, bias=False),
            *(nn.BatchNorm2d(wide), activation()),
            *((Squeeze(wide),) if squeeze else ()),
            *(nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out)),
        )
        self.is_residual = step == 1 and width == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.is_residual else self.body(x)


class MobileNetV3(nn.Module):
    """MobileNet v3, small: the table of the paper (Howard et al., 2019), 100 classes."""

    ROWS = (
        (16, 16, 3, 2, True, False),
        (72, 24, 3, 2, False, False),
        (88, 24, 3, 1, False, False),
        (96, 40, 5, 2, True, True),
        (240, 40, 5, 1, True, True),
        (120, 48, 5, 1, True, True),
        (144, 48, 5, 1, True, True),
        (288, 96, 5, 2, True, True),
        (576, 96, 5, 1, True, True),
    )

    def __init__(self) -> None:
        super().__init__()
        stem = (nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        blocks, width = [], 16
        for wide, out, size, step, squeeze, hard in self.ROWS:
            blocks.append(Inverted(width, wide, out, size, step, squeeze, hard))
            width = out
        last = (nn.Conv2d(width, 576, 1, bias=False), nn.BatchNorm2d(576), nn.Hardswish())
        self.features = nn.Sequential(*stem, *blocks, *last)
        self.head = nn.Sequential(nn.Linear(576, 1024), nn.Hardswish(), nn.Linear(1024, 100))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


class Block(nn.Module):
    """Two convolutions and a shortcut, of ResNet-18."""

    def __init__(self, width: int, out: int, step: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, out, 3, step, 1, bias=False)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(out) for _ in range(2))
        self.short: nn.Module = nn.Identity()
        if step != 1 or width != out:
            self.short = nn.Sequential(
                nn.Conv2d(width, out, 1, step, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(inner)) + self.short(x))


class ResNet18(nn.Module):
    """ResNet-18 (He et al., 2015), 100 classes."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            *(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()),
            nn.MaxPool2d(3, 2, 1),
        ]
        width = 64
        for out, step in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Block(width, out, step), Block(out, out, 1)]
            width = out
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(512, 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class Recurrent(nn.Module):
    """Two layers of LSTM and one of GRU, over a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.long = nn.LSTM(8, 16, 2, batch_first=True)
        self.gated = nn.GRU(16, 12, batch_first=True)
        self.head = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gated(self.long(x)[0])[0][:, -1])


class Feedforward(nn.Module):
    """Three linear layers of sizes that group-wise quantisation takes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 32)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Autoencoder(nn.Module):
    """Convolutions down, transposed convolutions up."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU6(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()),
            *(nn.ConvTranspose2d(32, 16, 2, 2), nn.ELU(), nn.ConvTranspose2d(16, 3, 2, 2)),
            nn.Tanh(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class Branches(nn.Module):
    """Paths of different filters side by side, concatenated, as in Inception."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(3, 8, 1)
        self.three = nn.Conv2d(3, 8, 3, padding=1)
        self.five = nn.Conv2d(3, 8, 5, padding=2)
        self.last = nn.Conv2d(27, 10, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.max_pool2d(x, 3, 1, 1)
        parts = [F.relu(layer(x)) for layer in (self.one, self.three, self.five)]
        return self.last(torch.cat([*parts, pooled], 1)).mean((2, 3), keepdim=True)


class Rows(nn.Module):
    """Control flow: a loop over rows, and a branch in it."""

    def forward(self, rows: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        mapped = each_row(lambda row, factor: row + factor * factor.sum(), rows, x)
        return torch.cond(mapped.sum() > 0, lambda a: a * 2, lambda a: a - 1, (mapped,))


def _image(channels: int, size: int) -> Callable[[], list[tuple[Any, ...]]]:
    return lambda: [(torch.randn(1, channels, size, size),) for _ in range(2)]


def _tokens() -> list[tuple[Any, ...]]:
    return [(torch.tensor([[3 * at + 1]]), torch.tensor([at])) for at in range(5)]


NETWORKS: dict[str, tuple[type[nn.Module], Callable[[], list[tuple[Any, ...]]]]] = {
    "resnet": (Residual, _image(3, 32)),
    "vit": (Vision, _image(3, 32)),
    "unet": (Unet, _image(1, 16)),
    "decoder": (Decoder, _tokens),
    "prefill": (Prefill, lambda: [(torch.randint(0, 32, (1, size)),) for size in (4, 2, 16, 9)]),
    "resnet18": (ResNet18, _image(3, 64)),
    "mobilenet_v3": (MobileNetV3, _image(3, 64)),
    "autoencoder": (Autoencoder, _image(3, 16)),
    "branches": (Branches, _image(3, 12)),
    "recurrent": (Recurrent, lambda: [(torch.randn(2, 6, 8),) for _ in range(2)]),
    "feedforward": (Feedforward, lambda: [(torch.randn(3, 64),) for _ in range(3)]),
    "rows": (Rows, lambda: [(sign * torch.rand(3, 4), torch.rand(4)) for sign in (1, -9)]),
}
"""Networks, and the inputs of calls on one instance."""

DYNAMIC = {"prefill": {"token": {1: torch.export.Dim("length", min=2, max=16)}}}
"""Sizes that differ from call to call."""


def drawn(name: str) -> tuple[nn.Module, list[tuple[Any, ...]]]:
    """A network with random weights, and the inputs of its calls."""
    torch.manual_seed(0)
    module, samples = NETWORKS[name]
    network = module().eval()
    for part in network.modules():
        # Statistics as of training, so that a norm does something.
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.uniform_(-0.2, 0.2)
            part.running_var.uniform_(0.5, 1.5)
    return network, samples()


def export(name: str) -> tuple[bytes, list[list[Any]]]:
    """A portable program with random weights, and the inputs of its calls as arrays."""
    network, calls = drawn(name)
    with torch.no_grad():
        exported = torch.export.export(
            network, calls[0], dynamic_shapes=DYNAMIC.get(name), strict=False
        )
        config = EdgeCompileConfig(_check_ir_validity=False)
        program = to_edge(exported, compile_config=config).to_executorch()
    return bytes(program.buffer), [[entry.numpy() for entry in call] for call in calls]
