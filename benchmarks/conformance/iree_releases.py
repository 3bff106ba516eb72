"""Modules of every release of IREE, in our reference and in the runtime of the same release.

    python -m benchmarks.conformance.iree_releases [--releases A B ...] [--folder DIR] [--only WORD]

Installs the compiler and the runtime of each release with pip into a folder of its own under DIR
(by default a temporary one), compiles the modules of ``iree_modules`` for VMVX with that compiler,
calls each in our reference and in that runtime, and compares all outputs: integers exactly, floats
within the policy ``float32-reassociated``. Prints a row for each release: how many modules are
equal, different, refused here (with the reason), or not made by that compiler.

Exits with 1 if an output differs or fewer than nine of ten releases run whole, with 2 if none could
be installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference
from darwinn_reference.iree.import_history import RELEASES
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import NAMED

from benchmarks.conformance.iree_modules import CALLS, MODULES, Input, drawn

EQUAL, DIFFERENT, REFUSED = "equal", "different", "refused here"
UNMADE, THEIRS = "not made", "refused by the original"
SHARE = 0.9
_SECONDS = 120


@dataclass
class Row:
    """A release: how many modules had each outcome, and the first of each reason."""

    release: str
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> bool:
        """Whether every module that its own tools make and run is equal here."""
        return bool(self.outcomes[EQUAL]) and not self.outcomes[REFUSED] + self.outcomes[DIFFERENT]


def installed(release: str, folder: Path) -> Path | None:
    """The folder of a release's compiler and runtime, which pip fills where it is not there."""
    target = folder / release
    if target.is_dir():
        return target
    base = "" if release.startswith("20") else "base-"
    for names in ([f"iree-{base}compiler", f"iree-{base}runtime"], [f"iree-{base}compiler"]):
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
        command += ["--target", str(target), *(f"{name}=={release}" for name in names)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return target
    return None


def published() -> list[str]:
    """Releases that PyPI has beside those of the table, oldest first; none if it cannot be asked.

    They come after the table was written.
    """
    newest = RELEASES[-1]
    command = [sys.executable, "-m", "pip", "index", "versions", "iree-base-compiler"]
    said = subprocess.run(command, capture_output=True, check=False, text=True).stdout
    line = next((each for each in said.splitlines() if each.startswith("Available")), "")
    found = [each.strip() for each in line.partition(":")[2].split(",") if each.strip()]
    return found[: found.index(newest)][::-1] if newest in found else []


def compiled_module(release: Path, text: str, module: Path, flags: Sequence[str] = ()) -> str:
    """Compile a text for VMVX with a release's compiler; gives why it failed, or nothing."""
    source = module.with_suffix(".mlir")
    source.write_text(text)
    asked = ["--iree-hal-target-backends=vmvx", *flags, str(source), "-o", str(module)]
    return _run([_compiler(release), *asked])


def tool_of(release: Path, name: str) -> Path | None:
    """A tool of a release's runtime itself, behind the script of its package."""
    return next((path for path in release.rglob(name) if "iree" in path.parts), None)


def _compiler(release: Path) -> Path:
    """The compiler itself, behind the script of its package."""
    return next(release.rglob("_mlir_libs/iree-compile"))


def _run(command: Sequence[str | Path]) -> str:
    """Why a command failed; an empty text if it did not."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {_SECONDS} s"
    lines = [line for line in done.stderr.splitlines() if "rror" in line] or done.stderr.split("\n")
    return f"exit code {done.returncode}: {lines[0]}" if done.returncode else ""


def _theirs(release: Path, module: Path, call: Sequence[Any], outputs: int) -> list[Any] | str:
    """Outputs of a call in the release's own runtime, whose state is new, or why there are none."""
    tool = tool_of(release, "iree-run-module")
    if tool is None:
        return "the release has no runtime"
    command: list[str | Path] = [
        tool,
        f"--module={module}",
        "--function=main",
        "--device=local-sync",
    ]
    for number, array in enumerate(call):
        np.save(module.with_suffix(f".{number}.npy"), array)
        command.append(f"--input=@{module.with_suffix(f'.{number}.npy')}")
    results = [module.with_suffix(f".result{number}.npy") for number in range(outputs)]
    failure = _run([*command, *(f"--output=@{path}" for path in results)])
    return failure or [np.load(path) for path in results]


def _examine(release: Path, text: str, inputs: Sequence[Input], folder: Path) -> tuple[str, str]:
    module = folder / "module.vmfb"
    if failure := compiled_module(release, text, module):
        return UNMADE, failure
    random = np.random.default_rng(0)
    calls = [[drawn(random, *entry) for entry in inputs] for _ in range(CALLS)]
    for call in calls:
        try:
            reference = IreeReference(module)
            ours = [np.asarray(each.data) for each in reference.run(call)]
        except (Unsupported, ExecutionError, FormatError) as error:
            return REFUSED, str(error).replace(f"{module}: ", "")
        theirs = _theirs(release, module, call, len(ours))
        if isinstance(theirs, str):
            return THEIRS, theirs
        for mine, other in zip(ours, theirs, strict=True):
            policy = "float32-reassociated" if other.dtype.kind == "f" else "exact"
            verdict = compare(mine, other.astype(mine.dtype), NAMED[policy])
            if not verdict.passed:
                return DIFFERENT, verdict.reason
    return EQUAL, ""


def examined(releases: Sequence[str], folder: Path, word: str) -> Iterator[Row]:
    """A row for each release that can be installed."""
    for release in releases:
        target = installed(release, folder)
        if target is None:
            print(f"{release}: pip does not find it", file=sys.stderr)
            continue
        row = Row(release)
        for name, (text, inputs) in MODULES.items():
            if word in name:
                with tempfile.TemporaryDirectory() as here:
                    outcome, reason = _examine(target, text, inputs, Path(here))
                row.outcomes[outcome] += 1
                if reason:
                    row.reasons.setdefault(outcome, f"{name}: {reason}"[:200])
        yield row


def main() -> int:
    """Examine the releases of the command line; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--releases", nargs="*", default=RELEASES)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        rows = []
        for row in examined(asked.releases, asked.folder or Path(temporary), asked.only):
            counts = ", ".join(f"{count} {outcome}" for outcome, count in row.outcomes.items())
            print(f"{row.release:14} {counts}", flush=True)
            for outcome, reason in row.reasons.items():
                print(f"{'':14}   {outcome}: {reason}")
            rows.append(row)
    if not rows:
        return 2
    whole = sum(row.runs for row in rows)
    print(f"{whole} of {len(rows)} releases run whole")
    return int(whole < SHARE * len(rows) or any(row.outcomes[DIFFERENT] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
