"""Runs tests in processes that have everything imported already, each with one mutant chosen.

Loading the simulator and the models takes longer than most tests of a unit, so it is done once, and
each run is a fork of that process.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from darwinn_rtl import player
from darwinn_rtl.build import ARGUMENT_VARIABLE
from darwinn_rtl.source_files import SOURCES_VARIABLE
from weaving import ARGUMENT

STANDSTILL = 1 << 15
"""Cycles of the whole chip without any progress after which a test is over: less than ever, as many
mutants stand still, and each such wait is a minute. Without a mutant all tests pass with it."""

_OPTIONS = (
    *("-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--no-header"),
    *("-m", "not nightly or asked_of_mutants"),
)

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_UNBUILT = "cannot be built"
_PASSED, _TEST_FAILED = 0, 1


class ToolError(Exception):
    """The tests cannot be run as they should; the text says why."""


@dataclass(frozen=True)
class Ran:
    """What came of a run: pytest's exit code, less than 0 for a signal, None if it did not end in
    its time; and its output."""

    code: int | None
    output: str

    @property
    def caught(self) -> str:
        """How the mutant was caught: the test, or how else; empty if it was not.

        Raises :class:`ToolError` if the tests say nothing about it.
        """
        if _UNBUILT in self.output:
            raise ToolError(self.output[-4000:])
        if self.code == _PASSED:
            return ""
        if self.code is None or self.code == -signal.SIGXCPU:
            return "the tests do not end"
        if self.code < 0:
            return f"ended by signal {-self.code}"
        failed = _FAILED.search(self.output)
        if self.code != _TEST_FAILED or failed is None:
            raise ToolError(f"pytest ended with {self.code}:\n{self.output[-4000:]}")
        return failed[1]


def prepare(sources: Path, tests: Sequence[str]) -> None:
    """Have this process import what the tests import, for the copy of the RTL in ``sources``."""
    os.environ[SOURCES_VARIABLE] = str(sources)
    os.environ["HYPOTHESIS_PROFILE"] = "mutation"
    player.STANDSTILL = STANDSTILL
    files = sorted({test.partition("::")[0] for test in tests})
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = pytest.main([*_OPTIONS, "--collect-only", *files])
    if code != _PASSED:
        raise ToolError(f"the tests cannot be collected:\n{text.getvalue()[-4000:]}")


def run(number: int, tests: Sequence[str], *, cpu_seconds: int, seconds: int) -> Ran:
    """Run ``tests`` in their order with a mutant (0: none), up to the first that fails.

    Each of its processes has ``cpu_seconds``, all of it ``seconds``.
    """
    with tempfile.TemporaryFile("w+b") as output:
        child = os.fork()
        if child == 0:
            _run_here(number, tests, cpu_seconds, output.fileno())
        code = _waited(child, seconds)
        output.seek(0)
        return Ran(code, output.read().decode(errors="replace"))


def _run_here(number: int, tests: Sequence[str], cpu_seconds: int, output: int) -> None:
    """In the child: never returns."""
    code = 3
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
        if number:
            os.environ[ARGUMENT_VARIABLE] = ARGUMENT.format(number)
        with tempfile.TemporaryDirectory(prefix="darwinn-rtl-mutant-") as folder:
            code = int(pytest.main([*_OPTIONS, "-x", f"--basetemp={folder}/work", *tests]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _waited(child: int, seconds: int) -> int | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    _end_group(child)
    os.waitpid(child, 0)
    return None


def _end_group(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
