"""Points on IREE: releases, and types of arguments."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_reference.arrays import AnyArray
from darwinn_reference.bfloat16 import from_bfloat16, to_bfloat16
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference
from darwinn_reference.iree.import_history import RELEASES

from benchmarks.conformance.iree_releases import (
    DIFFERENT,
    EQUAL,
    REFUSED,
    SHARE,
    THEIRS,
    Row,
    examined,
    installed,
    published,
    tool_of,
)
from benchmarks.other_formats.figure import Counted, Figure, MissingError, Settings

FIRST = "20231004.665"
"""The oldest release that has to run or to be refused for a reason."""
_UNSIGNED = (8, 16, 32, 64)


def releases(settings: Settings) -> Iterator[Figure]:
    """Modules of every release, compared with the runtime of the same release."""
    known = RELEASES[RELEASES.index(FIRST) :]
    chosen = list(settings.releases) or [*known, *published()]
    rows = []
    for row in examined(chosen, settings.cache, ""):
        rows.append(row)
        yield _release(row)
    if not rows:
        raise MissingError(f"IREE's compilers {chosen[0]} to {chosen[-1]}: pip cannot install them")
    if missing := sorted(set(chosen) - {row.release for row in rows}):
        yield Figure("releases that pip cannot install", ", ".join(missing))
    good = sum(_is_whole(row) for row in rows)
    yield Figure("releases that run whole", f"{good} of {len(rows)}", good >= SHARE * len(rows))


def _is_whole(row: Row) -> bool:
    """Whether all modules run here, equal where the release has a runtime to compare with."""
    executed = row.outcomes[EQUAL] + row.outcomes[THEIRS]
    return bool(executed) and not row.outcomes[REFUSED] + row.outcomes[DIFFERENT]


def _release(row: Row) -> Figure:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in row.outcomes.items())
    notes = [f"{outcome}: {why}" for outcome, why in row.reasons.items()]
    return Figure(f"release {row.release}", counts, not row.outcomes[DIFFERENT], notes)


# --- types ----------------------------------------------------------------------------------------


def unsigned(settings: Settings) -> Iterator[Figure]:
    """Unsigned arguments, against their definition in NumPy."""
    random, failures = np.random.default_rng(0), []
    for bits in _UNSIGNED:
        limits = np.iinfo(f"u{bits // 8}")
        pair = [random.integers(0, limits.max, 6, limits.dtype, endpoint=True) for _ in range(2)]
        module = settings.compiled(_greatest(f"ui{bits}"), "--iree-input-type=stablehlo")
        failures += _wrong(f"ui{bits}", module, pair, np.maximum(*pair))
    yield Counted(failures, len(_UNSIGNED)).figure("unsigned arguments, ui8 to ui64")


def bfloat16(settings: Settings) -> Iterator[Figure]:
    """Arguments of bfloat16, which come back reversed."""
    drawn = np.random.default_rng(0).normal(size=6).astype(np.float32)
    floats = from_bfloat16(to_bfloat16(drawn))
    module = settings.compiled(_REVERSED, "--iree-input-type=stablehlo")
    yield Counted(_wrong("bf16", module, [floats], floats[::-1]), 1).figure("bf16 arguments")


def parameters(settings: Settings) -> Iterator[Figure]:
    """A value that a file of parameters holds, added to the argument."""
    module, values = settings.compiled(_PARAMETER), _parameters(settings)
    given = np.random.default_rng(0).normal(size=6).astype(np.float32)
    failures = _wrong("parameters", module, [given], given + np.float32(_VALUE), values)
    yield Counted(failures, 1).figure("parameters of an .irpa file")


def _greatest(element: str) -> str:
    """The greater elements of two tensors: signs decide it."""
    kind = f"tensor<6x{element}>"
    return (
        f"func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{\n"
        f"  %r = stablehlo.maximum %a, %b : {kind}\n  return %r : {kind}\n}}"
    )


_PARAMETER = """
util.global private @w = #flow.parameter.named<"model"::"weights"> : tensor<6xf32>
func.func @main(%a: tensor<6xf32>) -> tensor<6xf32> {
  %w = util.global.load @w : tensor<6xf32>
  %r = arith.addf %a, %w : tensor<6xf32>
  return %r : tensor<6xf32>
}"""


_REVERSED = """
func.func @main(%a: tensor<6xbf16>) -> tensor<6xbf16> {
  %r = stablehlo.reverse %a, dims = [0] : tensor<6xbf16>
  return %r : tensor<6xbf16>
}"""
_VALUE = 0.75


def _parameters(settings: Settings) -> Path:
    """A file of parameters that the newest release's own tool makes."""
    release = RELEASES[-1]
    target = installed(release, settings.cache)
    tool = None if target is None else tool_of(target, "iree-create-parameters")
    if tool is None:
        raise MissingError(f"the tool iree-create-parameters of IREE {release}")
    values = settings.folder / "model.irpa"
    command = [str(tool), f"--splat=weights=6xf32={_VALUE}", f"--output={values}"]
    subprocess.run(command, check=True, capture_output=True)
    return values


def _wrong(
    what: str, module: Path, inputs: list[AnyArray], wanted: AnyArray, *parameters: Path
) -> list[str]:
    """Why a call does not give what it should; nothing if it does."""
    try:
        (output,) = IreeReference(module, parameters=parameters).run(inputs)
    except (Unsupported, ExecutionError, FormatError) as error:
        return [f"{what}: {error}"]
    found = np.asarray(output.data)
    same = found.dtype == wanted.dtype and np.array_equal(found, wanted)
    return [] if same else [f"{what}: {found} instead of {wanted}"]
