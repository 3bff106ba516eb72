"""Compile every pair of folders with the open compiler, and compare with the vendor's executables.

    python -m benchmarks.compiler /corpus /wild

A pair is a model before compilation, ``tflite/NAME.tflite``, and the vendor's executable of it,
``darwinn/NAME_edgetpu.tflite``. For each it prints operators on the chip, bytes of instructions and
parameters, bytes of an inference over the host link (and their ratio), cycles of an inference by
the event model (ours, theirs, ratio), seconds, and the verdict. Ratios are only comparable where as
many operators are on the chip. It exits with 1 if something that was compiled is wrong.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from darwinn_formats import tflite
from darwinn_formats.darwinn import DmaDescriptorHint, ExecutableType, load
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.compilation.compile import CompileOptions, compile_model
from darwinn_testbench.explain.graph import graph_of
from darwinn_testbench.explain.placement import Place, placed


@dataclass(frozen=True)
class Side:
    """A compiled model: operators on the chip, bytes, and cycles of an inference.

    ``link`` are bytes over the host link in an inference.
    """

    operators: int
    instructions: int
    parameters: int
    link: int
    cycles: int


@dataclass(frozen=True)
class Pair:
    """A model and the vendor's executable of it."""

    name: str
    model: Path
    compiled: Path


def pairs(folders: Sequence[Path]) -> Iterator[Pair]:
    """All pairs of folders."""
    for folder in folders:
        for model in sorted((folder / "tflite").glob("*.tflite")):
            compiled = folder / "darwinn" / f"{model.stem}_edgetpu.tflite"
            if compiled.exists():
                yield Pair(model.stem, model, compiled)


def side(path: Path, operators: int) -> Side:
    """Bytes and cycles that a compiled model takes."""
    executables = load(path).executables
    caching = ExecutableType.PARAMETER_CACHING
    inference = [each for each in executables if each.type is not caching]
    rows = measure(path, chip_only=True).rows
    cycles = [row.cycles for row in rows if row.type != caching.name]
    instructions = sum(
        len(chunk.bitstream) for each in inference for chunk in each.instruction_bitstreams
    )
    hints = [hint.any_hint for each in inference for hint in each.dma_hints.hints]
    return Side(
        operators,
        instructions,
        sum(len(each.parameters) for each in executables),
        instructions
        + sum(each.size_in_bytes for each in hints if isinstance(each, DmaDescriptorHint)),
        sum(filter(None, cycles)),
    )


def theirs(pair: Pair) -> Side:
    """The vendor's side."""
    graph = graph_of(tflite.load(pair.model.read_bytes()))
    shell = graph_of(tflite.load(pair.compiled.read_bytes()))
    places, _ = placed(graph, shell)
    return side(pair.compiled, sum(place is Place.CHIP for place in places))


def line(pair: Pair, *, check: bool) -> tuple[str, bool, float | None]:
    """A line of the table, whether all is right, and the ratio of cycles if it means something."""
    result = compile_model(pair.model, CompileOptions(check=check))
    figures, verdict = result.report.figures, result.report.verdict
    other = theirs(pair)
    if not result.data:
        return f"| {pair.name} | 0 of {other.operators} | {verdict.value} |", check, None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model_edgetpu.tflite")
        path.write_bytes(result.data)
        own = side(path, figures["operators_on_chip"])
    ratio = own.cycles / other.cycles if other.cycles else math.nan
    same = own.operators == other.operators
    cells = (
        pair.name,
        f"{own.operators} / {other.operators}",
        f"{own.instructions:,} / {other.instructions:,}",
        f"{own.parameters:,} / {other.parameters:,}",
        f"{own.link:,} / {other.link:,} ({own.link / other.link:.2f})",
        f"{own.cycles:,} / {other.cycles:,}",
        f"{ratio:.2f}" if same else "",
        f"{figures['compile_seconds']:.1f}",
        verdict.value,
    )
    return f"| {' | '.join(cells)} |", not (check and verdict.failed), ratio if same else None


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="part of the names of models")
    parser.add_argument("--no-check", action="store_true", help="do not verify")
    arguments = parser.parse_args()
    print("| model | operators | instructions | parameters | link | cycles | ratio | s | verdict |")
    print("|---|---|---|---|---|---|---|---|---|")
    right, ratios = True, []
    for pair in pairs(arguments.folders):
        if arguments.only not in pair.name:
            continue
        text, is_right, ratio = line(pair, check=not arguments.no_check)
        print(text, flush=True)
        right &= is_right
        ratios += [ratio] if ratio else []
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean of {len(ratios)} ratios: {mean:.2f}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
