"""Tries the deliberate faults of the RTL (``faults``): each must make the test fail that it names.

A copy of the sources holds them all (``weaving``). Every test builds that copy where the
environment asks for it, and simulates it with the fault that is chosen there:
``python tests/support/mutations.py [NAME...]`` tries them and prints the list.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from darwinn_rtl.build import ARGUMENT_VARIABLE
from darwinn_rtl.build_folders import build_root, locked
from darwinn_rtl.source_files import SOURCES_VARIABLE, source_folder
from faults import MUTATIONS, Mutation
from weaving import ARGUMENT, CONTROL, Change, sources_in, write_copy

ROOT = Path(__file__).parents[2]

NUMBERS = {mutation.name: number for number, mutation in enumerate(MUTATIONS, CONTROL + 1)}
"""By which a simulation chooses a fault."""

_REASON = re.compile(
    r"(?:WorkloadMismatch|Mismatch|WaitTimeout|RtlTimeout|AssertionError|%Error): .*"
    r"|Assertion failed in.*|(?m:^E +assert .*)"
)


def changes_of(sources: Mapping[str, str]) -> dict[int, list[Change]]:
    """What each fault changes in ``sources``, by its number. Raises ``FaultMisplaced``."""
    return {NUMBERS[each.name]: [edit.change(sources) for edit in each.edits] for each in MUTATIONS}


@cache
def mutated_sources() -> Path:
    """The folder of the copy that holds all faults: one for each checkout, whose faults differ."""
    checkout = sha256(str(ROOT).encode()).hexdigest()[:12]
    folder = build_root() / f"mutated-{checkout}"
    sources = sources_in(source_folder())
    with locked(folder.with_name(f"{folder.name}-lock")):
        write_copy(source_folder(), folder, sources, changes_of(sources))
    return folder


def run_with(number: int, test: str) -> tuple[bool, str]:
    """Run ``test`` on the RTL with a fault; whether it passes, and the end of its output."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", test],
        cwd=ROOT,
        env={
            **os.environ,
            SOURCES_VARIABLE: str(mutated_sources()),
            ARGUMENT_VARIABLE: ARGUMENT.format(number),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), f"{test} did not run:\n{done.stdout}{done.stderr}"
    assert " skipped" not in done.stdout.splitlines()[-1], f"{test} was skipped"
    return done.returncode == 0, done.stdout


def how_caught(mutation: Mutation) -> str:
    """What the catching test says; raises ``AssertionError`` if it does not catch the fault."""
    passes, output = run_with(NUMBERS[mutation.name], mutation.test)
    assert not passes, f"{mutation.name} ({mutation.fault}) is not caught by {mutation.test}"
    assert not re.search(r"BuildFailed: \w+ cannot be built|harness cannot be built", output), (
        output
    )
    found = _REASON.search(output)
    assert found, f"{mutation.test} fails for another reason:\n{output}"
    return found[0].strip()


def row(mutation: Mutation, reason: str) -> str:
    """One line of the list."""
    test = mutation.test.rpartition("/")[2]
    return f"{mutation.name:<24} {mutation.fault:<66} {test}\n{'':<24} {reason}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try faults and print how each is caught; 1 if one is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults to try; all without")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in NUMBERS]:
        parser.error(f"there is no fault {', '.join(unknown)}")
    chosen = [m for m in MUTATIONS if not options.names or m.name in options.names]
    missed = 0
    for mutation in chosen:
        try:
            print(row(mutation, how_caught(mutation)), flush=True)
        except AssertionError as error:
            missed += 1
            print(f"{mutation.name:<24} NOT CAUGHT: {error}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} deliberate faults caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
