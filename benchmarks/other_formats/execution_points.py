"""Points on execution: XNNPACK's time, and the suites of TFRT."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from darwinn_formats.errors import ExecutionError, FormatError, TextError
from darwinn_formats.tfrt import dump, from_text, load
from darwinn_reference.errors import Unsupported
from darwinn_reference.executorch.original import unavailable
from darwinn_reference.tfrt import Driver, Options, queue_of

from benchmarks.other_formats.figure import Figure, MissingError, Settings

_ROW = re.compile(r"(?P<name>\w+)\s+[\d.]+\s+[\d.]+\s+(?P<ratio>[\d.]+)(?P<rest>.*)")
_REFUSED = 2


def xnnpack(settings: Settings) -> Iterator[Figure]:
    """Processor time of networks in XNNPACK delegates, ours by the original's (`xnnpack`)."""
    if why := unavailable():
        raise MissingError(why)
    command = [sys.executable, "-m", "benchmarks.xnnpack", "--repeat", str(settings.repeat)]
    threads = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=threads)
    found = [match for line in done.stdout.splitlines() if (match := _ROW.fullmatch(line))]
    if not found or done.returncode == _REFUSED:
        raise MissingError(f"benchmarks.xnnpack: {(done.stderr.strip() or '?').splitlines()[-1]}")
    for each in found:
        rest = each["rest"].split()
        kept = not {"EXCEEDED", "DIFFERENT:"} & {*rest}
        yield Figure(f"{each['name']}: time by XNNPACK's", each["ratio"], kept)


# --- TFRT -----------------------------------------------------------------------------------------

_RUN = re.compile(r"// RUN: (?P<tool>bef_executor(?:_lite)?)(?P<words>[^|\n]*)")
"""A test that is executed, with the options of the original's command line."""


@dataclass
class Suite:
    """Tests of one folder: how many do as they expect, and why the others do not."""

    passed: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def suites(settings: Settings) -> Iterator[Figure]:
    """The public tests of TFRT that are executed, folder by folder."""
    if settings.suites is None:
        raise MissingError("TFRT's tests: --tfrt DIR names `mlir_tests` of its repository")
    found: dict[str, Suite] = {}
    for path in sorted(settings.suites.rglob("*.mlir")):
        if line := _RUN.search(path.read_text()):
            suite = found.setdefault(path.parent.name, Suite())
            _try(path, _options(shlex.split(line["words"])), suite)
    if not found:
        raise MissingError(f"TFRT's tests: no .mlir file in {settings.suites} is executed")
    for name, suite in found.items():
        number = suite.passed + len(suite.refused) + len(suite.failed)
        value = f"{suite.passed} of {number} pass, {len(suite.refused)} refused by name"
        notes = [f"{file}: {why}"[:200] for file, why in (suite.refused | suite.failed).items()]
        yield Figure(f"suite {name}", value, not suite.failed, notes)


def _options(words: Sequence[str]) -> Options:
    """The settings of a test's command line."""
    options, texts = Options(), iter(words)
    for word in texts:
        name, equal, value = word.lstrip("-").partition("=")
        if name == "print_error_code":
            options = replace(options, print_error_code=True)
        elif word.startswith("-"):
            value = value if equal else next(texts, "")
            options = _with(options, name, value)
    return options


def _with(options: Options, name: str, value: str) -> Options:
    match name:
        case "host_allocator_type":
            return replace(options, allocator=value)
        case "work_queue_type":
            threads, blocking = queue_of(value)
            return replace(options, threads=threads, blocking_threads=blocking)
        case "test_init_function":
            return replace(options, init_function=value)
        case "functions":
            return replace(options, functions=tuple(value.split(",")))
    return options


def _try(path: Path, options: Options, suite: Suite) -> None:
    text, log = path.read_text(), io.StringIO()
    try:
        # Converted, each kernel has a place of its own.
        file = load(dump(from_text(text)))
        status = Driver(file, text, options, output=io.StringIO(), log=log).run()
    except Unsupported as error:
        suite.refused[path.name] = str(error)
    except (FormatError, TextError, ExecutionError) as error:
        suite.failed[path.name] = str(error)
    else:
        if status:
            suite.failed[path.name] = " ".join(log.getvalue().split())
        else:
            suite.passed += 1
