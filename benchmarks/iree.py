"""Seconds that IREE modules take in the reference, and in the original runtime if installed.

    python -m benchmarks.iree [--repeat N]

Reads modules and inputs from the folder that DARWINN_CORPUS names. With the compiler (extra `iree`)
also matrix products and a quantised MobileNet v1, as `linalg` on tensors. Seconds of the processor:
of the first call, in which functions are compiled, and the best of N later ones. Exits with 1 if a
later call takes longer than its bound or than the original, or gives other outputs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.files import Source
from darwinn_formats.iree import disassemble, load
from darwinn_reference.arrays import AnyArray
from darwinn_reference.iree import IreeReference, OriginalIree, why_not
from darwinn_reference.protocol import Datum, Reference
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import NAMED

from benchmarks.common import corpus, machine, parser
from benchmarks.iree_networks import mobilenet, product

BOUND = 5.0
"""Seconds for one call of a module."""
MODULES = ("matmul_i8_dyn.vmvx", "conv_stablehlo.vmvx", "qmatmul_const.vmvx", "tosa_mlp.vmvx")
SIZES = (64, 256)
EQUAL, CLOSE, DIFFERENT = "equal", "float32", "DIFFERENT"
"""Outputs of both: the same bytes, or within the policy of that name."""
GENERIC = "generic"
"""The processor that machine code is for: any of this kind."""
BELOW_NOISE = 0.01
"""A call that takes less than this is not held to the original: most of it is Python."""


@dataclass(frozen=True)
class Row:
    """A measurement in seconds: the first call and the best of later ones, the original's best, and
    how the outputs compare.
    """

    name: str
    first: float
    best: float
    theirs: float | None = None
    outputs: str = ""

    @property
    def failed(self) -> bool:
        slower = self.theirs is not None and self.best > max(self.theirs, BELOW_NOISE)
        return slower or self.best > BOUND or self.outputs == DIFFERENT


def processor_seconds(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def compared(
    name: str, program: Source, function: str | None, inputs: list[Datum], repeat: int
) -> Row:
    """Calls of a module in both runtimes."""
    given: list[list[AnyArray]] = []

    def timed(reference: Reference) -> tuple[float, float]:
        def call() -> None:
            outputs = reference.run(inputs, function=function)
            given.append([np.asarray(output.data) for output in outputs])

        return processor_seconds(call), min(processor_seconds(call) for _ in range(repeat))

    first, best = timed(IreeReference(program))
    ours = given[-1]
    if why_not() is not None:
        return Row(name, first, best)
    _, theirs = timed(OriginalIree(program))
    return Row(name, first, best, theirs, agreement(ours, given[-1]))


def agreement(ours: list[AnyArray], theirs: list[AnyArray]) -> str:
    pairs = list(zip(ours, theirs, strict=True))
    if all(left.tobytes() == right.tobytes() for left, right in pairs):
        return EQUAL
    # Functions of the C library differ by their last bits.
    passed = all(compare(left, right, NAMED["float32"]).passed for left, right in pairs)
    return CLOSE if passed else DIFFERENT


def rows(folder: Path, repeat: int) -> Iterator[Row]:
    path = folder / "conv_stablehlo.vmvx.vmfb"
    for name, action in (
        ("load, verified", lambda: load(path)),
        ("disassemble", lambda: list(disassemble(load(path)))),
    ):
        first = processor_seconds(action)
        yield Row(name, first, min(processor_seconds(action) for _ in range(repeat)))
    for name in MODULES:
        with np.load(folder / f"{name}.npz") as stored:
            function = str(stored["call0_fn"])
            inputs: list[Any] = [stored[key] for key in stored.files if key.startswith("call0_in")]
        yield compared(name, folder / f"{name}.vmfb", function, inputs, repeat)
    for size in SIZES:
        matrices: list[Any] = [np.ones((size, size), np.int8)] * 2
        name = f"matmul_i8_dyn.vmvx, {size}x{size}x{size}"
        yield compared(name, folder / "matmul_i8_dyn.vmvx.vmfb", None, matrices, repeat)


def module_of(text: str, target: str) -> bytes:
    """A module that IREE's compiler, the extra `iree`, makes of a text for a target."""
    from iree.compiler import tools

    generic = [f"--iree-llvmcpu-target-cpu={GENERIC}"] if target == "llvm-cpu" else []
    data: bytes = tools.compile_str(text, target_backends=[target], extra_args=generic)
    return data


def compiled_rows(repeat: int) -> Iterator[Row]:
    """Programs that IREE's compiler compiles here."""
    random = np.random.default_rng(0)
    for size in SIZES:
        floats: list[Any] = [
            random.standard_normal((size, size)).astype(np.float32) for _ in range(2)
        ]
        bytes_: list[Any] = [
            random.integers(-128, 128, (size, size)).astype(np.int8) for _ in range(2)
        ]
        for element, result, inputs in (("f32", "f32", floats), ("i8", "i32", bytes_)):
            name = f"linalg.matmul, {element}, {size}x{size}x{size}"
            yield compared(
                name, module_of(product(size, element, result), "vmvx"), None, inputs, repeat
            )
    image = random.integers(-128, 128, (1, 224, 224, 3)).astype(np.int8)
    yield compared("MobileNet v1 1.0 224, int8", module_of(mobilenet(), "vmvx"), None, [image], 1)


def measured(repeat: int) -> Iterator[Row]:
    yield from rows(corpus("vmfb") / "v17", repeat)
    if find_spec("iree") is not None and find_spec("iree.compiler") is not None:
        yield from compiled_rows(repeat)


def main() -> int:
    options = parser(__doc__).parse_args()
    print(machine())
    print(f"{'measurement':<32} {'first s':>9} {'best s':>9} {'original':>9}  outputs")
    failed = False
    for row in measured(options.repeat):
        failed |= row.failed
        theirs = "" if row.theirs is None else f"{row.theirs:.5f}"
        line = f"{row.name:<32} {row.first:9.5f} {row.best:9.5f} {theirs:>9}  {row.outputs}"
        print(f"{line}{'  EXCEEDED' if row.failed else ''}".rstrip(), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
