"""Processor time of whole networks in XNNPACK delegates, ours and the original's, with a bound.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.xnnpack [--repeat N] [--only WORD]

Needs the original runtime, PyTorch and torchvision: the networks are exported from torchvision with
weights drawn from a fixed seed. Both sides compute in one thread; the best of N runs counts, each
side in turn. Exits with 1 if ours takes more than 3 times the original's time on a network of
float32, or if results differ by more than is allowed. Half precision has no bound on time; over its
52 layers of rounded sums results may differ by 1 %.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.original import OriginalRuntime, unavailable
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import NAMED, FloatTolerance, Policy

from benchmarks.common import machine, parser, refuse, with_word

BOUND = 3.0
"""Our processor time by the original's, at most, of networks of float32."""
SIZE = 224

_SINGLE, _HALF = NAMED["float32-reassociated"], FloatTolerance(1e-2, 1e-2)
NETWORKS: Mapping[str, tuple[str, str, Policy]] = {
    "mobilenet_v2": ("mobilenet_v2", "float32", _SINGLE),
    "convnext_tiny": ("convnext_tiny", "float32", _SINGLE),
    "mobilenet_v2_fp16": ("mobilenet_v2", "float16", _HALF),
}
"""torchvision's name, element type, and how far results may differ."""


def exported(network: str, dtype: str) -> bytes:
    """A network of torchvision as a program whose operators XNNPACK has."""
    import torch

    exir: Any = importlib.import_module("executorch.exir")
    partition: Any = importlib.import_module(
        "executorch.backends.xnnpack.partition.xnnpack_partitioner"
    )
    models: Any = importlib.import_module("torchvision.models")
    torch.manual_seed(0)
    module, image = getattr(models, network)(), torch.randn(1, 3, SIZE, SIZE)
    # Batch norms take the numbers of one run, so that layers behind them get numbers of their size.
    for each in module.modules():
        if isinstance(each, torch.nn.BatchNorm2d):
            each.momentum = 1.0
    with torch.no_grad():
        module.train()(image.expand(2, -1, -1, -1) + torch.randn(2, 3, SIZE, SIZE))
    module = module.eval().to(getattr(torch, dtype))
    image = image.to(getattr(torch, dtype))
    program = exir.to_edge_transform_and_lower(
        torch.export.export(module, (image,)), partitioner=[partition.XnnpackPartitioner()]
    )
    data: bytes = program.to_executorch().buffer
    return data


def one_thread() -> None:
    """Let XNNPACK compute in one thread; BLAS takes the number from the environment."""
    bindings: Any = importlib.import_module("executorch.extension.pybindings.portable_lib")
    bindings._unsafe_reset_threadpool(1)


def best_of(repeat: int, runs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Least processor time of each, in turn."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeat):
        for name, run in runs.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


def measured(name: str, folder: Path, repeat: int) -> bool:
    """Measure one network and print its line; whether it keeps the bound and agrees."""
    network, dtype, policy = NETWORKS[name]
    path = folder / f"{name}.pte"
    path.write_bytes(exported(network, dtype))
    original, ours = OriginalRuntime(path), ExecutorchReference(path)
    image = np.random.default_rng(0).normal(size=(1, 3, SIZE, SIZE)).astype(dtype)
    found = compare(
        np.asarray(ours.run([image])[0].data), np.asarray(original.run([image])[0].data), policy
    )
    best = best_of(
        repeat, {"original": lambda: original.run([image]), "ours": lambda: ours.run([image])}
    )
    ratio = best["ours"] / best["original"]
    over = dtype == "float32" and ratio > BOUND
    bound = f"{BOUND:.1f}" if dtype == "float32" else ""
    words = "" if found.passed else f"  DIFFERENT: {found.reason}"
    print(
        f"{name:<20} {best['ours']:8.4f} {best['original']:10.4f} {ratio:6.2f} {bound:>6}"
        f"{'  EXCEEDED' if over else ''}{words}",
        flush=True,
    )
    return found.passed and not over


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", default="", metavar="WORD", help="networks with it in the name")
    arguments = options.parse_args()
    if reason := unavailable():
        refuse(reason)
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        refuse("set OPENBLAS_NUM_THREADS=1: the times are those of one thread")
    names = with_word(arguments.only, NETWORKS)
    one_thread()
    print(machine())
    print(f"{'network':<20} {'ours s':>8} {'original s':>10} {'ratio':>6} {'bound':>6}")
    with tempfile.TemporaryDirectory() as folder:
        kept = [measured(name, Path(folder), arguments.repeat) for name in names]
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
