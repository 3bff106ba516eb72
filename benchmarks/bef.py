"""Kernels per second of the BEF executor, on chains of kernels that each wait for the last one.

    python -m benchmarks.bef [--kernels N] [--repeat N]

Times are the best of N runs; loading and preparing the function is measured apart. Exits with 1
if the executor is slower than the bound.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from functools import partial

from darwinn_formats.tfrt import dump, from_text
from darwinn_reference.tfrt import TfrtReference

from benchmarks.common import machine_and_load, parser, positive, seconds_of

BOUND = 200_000
"""Kernels per second."""


def additions(count: int) -> str:
    """Each adds a constant to the result of the last."""
    lines = ["%v0 = tfrt.constant.i32 0", "%one = tfrt.constant.i32 1"]
    lines += [f"%v{n + 1} = tfrt.add.i32 %v{n}, %one" for n in range(count)]
    return function(lines, f"%v{count}", "i32")


def chains(count: int) -> str:
    """Each merges the chain of the last with a first chain."""
    lines = ["%v0 = tfrt.new.chain"]
    lines += [
        f"%v{n + 1} = tfrt.merge.chains %v{n}, %v0 : !tfrt.chain, !tfrt.chain" for n in range(count)
    ]
    return function(lines, f"%v{count}", "!tfrt.chain")


def repeated(count: int) -> str:
    """A loop with one addition in each iteration."""
    lines = [
        "%v0 = tfrt.constant.i32 0",
        f"%count = tfrt.constant.i32 {count // 2}",
        "%sum = tfrt.repeat.i32 %count, %v0 : i32 {",
        "%one = tfrt.constant.i32 1",
        "%next = tfrt.add.i32 %v0, %one",
        "tfrt.return %next : i32",
        "}",
    ]
    return function(lines, "%sum", "i32")


def function(lines: list[str], result: str, kind: str) -> str:
    body = "\n".join(lines)
    return f"func.func @main() -> {kind} {{\n{body}\ntfrt.return {result} : {kind}\n}}"


CASES: dict[str, tuple[Callable[[int], str], int | None]] = {
    "chain of additions": (additions, BOUND),
    "chain of chains": (chains, BOUND),
    "loop, two kernels a call": (repeated, None),
}


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--kernels", type=positive, default=50_000, metavar="N")
    options = arguments.parse_args()
    print(machine_and_load())
    print(f"{'case':<26} {'kernels/s':>10} {'bound':>8} {'load s':>8}")
    slow = False
    for name, (text, bound) in CASES.items():
        data = dump(from_text(text(options.kernels)))
        begin = time.perf_counter()
        reference = TfrtReference(data, output=io.StringIO())
        loading = time.perf_counter() - begin
        rate = options.kernels / min(seconds_of(partial(reference.run, []), options.repeat))
        slow |= bound is not None and rate < bound
        print(f"{name:<26} {rate:10.0f} {bound or '':>8} {loading:8.2f}", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
