"""How what is done with a mutant ends: allowed ends by name, and all others, which are findings."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import time
import traceback
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec
from darwinn_formats.limits import SECONDS
from darwinn_sim.errors import Deadlock
from darwinn_testbench.cli import commands, failure
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.report.verdict import EXIT_CODES, Verdict, verdict_of

from tests.fuzz.formats import BY_NAME, FILE, FUNCTIONS, SAMPLES, Command
from tests.fuzz.processes import Process, Write

MEMORY = 2 << 30
"""Bytes that a process may have in use at its peak."""

EVERYTHING = -1

OUT_OF_TIME = "out of time"
"""A program without end, which the command has ended."""

DEADLOCK = "deadlock"

OTHERWISE: tuple[Command, ...] = (
    ("run", FILE, "--schedules", "200", "--no-hazards", "--json"),
    ("cycles", FILE, "--host", "pcie", "--json"),
    *(("run", FILE, "--seed", str(seed), "--no-hazards", "--json") for seed in range(40)),
)
"""What says whether models that differ are both right, each in its own order of the units, with the
buffers and the data where they are, or with its own host: by PCIe, as it runs, the host waits for
descriptors, by USB it sends what the hints say."""

_CODES = range(4)
_ESCAPED = -1
_ENDED_WELL = 0
_BAD_INPUT = 2
_OURS = re.compile(r"/(darwinn_\w+|tests)/")
_INTERNAL = re.compile(r"internal error[^:]*: (\w+: .{0,60})")


class Done(msgspec.Struct, array_like=True):
    """A command that ended: ``end`` by name; ``finding`` is empty if that is allowed."""

    command: str
    end: str
    code: int
    finding: str
    seconds: float


def commands_for(form: str, number: int) -> list[Command]:
    """What is done with the mutant of this number; all there is for ``EVERYTHING``."""
    chosen = BY_NAME[form]
    if number == EVERYTHING:
        return [*chosen.commands, *chosen.more]
    return [*chosen.commands, *([Random(number).choice(chosen.more)] if chosen.more else [])]


def do_all(
    todo: Sequence[Command], path: Path, samples: Path, budget: Sequence[str], write: Write
) -> bool:
    """Do it, and write a line before and after each command. Return whether nothing was found.

    The working folder and the one of temporary files are the same, which is empty.
    """
    is_good = True
    for words in todo:
        known = [path if word == FILE else word for word in words]
        filled = [str(word).replace(SAMPLES, str(samples)) for word in known]
        write(b"begin " + words[0].encode() + b"\n")
        done = _done(filled, path, budget)
        write(msgspec.json.encode(done) + b"\n")
        is_good = is_good and not done.finding
    return is_good


def _done(words: Sequence[str], path: Path, budget: Sequence[str]) -> Done:
    begin = time.process_time()
    name = words[0]
    failed: list[BaseException] = []
    said, complained = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        code = _call(words, path, failed, budget)
    text = said.getvalue() + complained.getvalue()
    finding = _finding(code, failed, text) or (f"warning: {_said(warned[0])}" if warned else "")
    finding = finding or _left_behind()
    end = _end(code, failed, said.getvalue(), text)
    return Done(name, end, code, finding, time.process_time() - begin)


def _left_behind() -> str:
    left = min((each.name for each in Path().iterdir()), default="")
    return f"left behind: {re.sub('[0-9]+', 'N', left)}" if left else ""


def _call(
    words: Sequence[str], path: Path, failed: list[BaseException], budget: Sequence[str]
) -> int:
    report = failure.report

    def noted(arguments: Sequence[str], error: Exception) -> int:
        failed.append(error)
        return report(arguments, error)

    try:
        if words[0] in FUNCTIONS:
            FUNCTIONS[words[0]](path)
            return _ENDED_WELL
        with patch.object(failure, "report", noted):
            taken = options_of(words[0])
            options = [each for each in budget if each.partition("=")[0] in taken]
            return run_command_line([*words, *options])
    except BaseException as error:
        failed.append(error)
        verdict = verdict_of(error) if words[0] in FUNCTIONS else None
        return _ESCAPED if verdict is None else EXIT_CODES[verdict]


@cache
def options_of(command: str) -> frozenset[str]:
    """The names of a command's options."""
    return frozenset(name for each in commands.load(command).params for name in each.opts)


def _finding(code: int, failed: Sequence[BaseException], text: str) -> str:
    for error in failed:
        if isinstance(error, MemoryError):
            return f"memory: {_place(error)}"
        if verdict_of(error) is None and not hasattr(error, "format_message"):
            return f"{type(error).__name__} at {_place(error)}"
    if internal := _INTERNAL.search(text):
        return f"internal error: {re.sub('[0-9]+', 'N', internal[1])}"
    if code not in _CODES:
        return f"exit code {code}"
    return ""


def _said(warned: warnings.WarningMessage) -> str:
    text = re.sub("[0-9]+", "N", str(warned.message))[:60]
    return f"{text} at {Path(warned.filename).name}:{warned.lineno}"


def _place(error: BaseException) -> str:
    """The last function of ours that the error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if _OURS.search(frame.filename)]
    return f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "?"


def _end(code: int, failed: Sequence[BaseException], said: str, text: str) -> str:
    if SECONDS in text:
        return OUT_OF_TIME
    if failed:
        return DEADLOCK if isinstance(failed[-1], Deadlock) else type(failed[-1]).__name__
    try:
        report = json.loads(said)
        if report["verdict"] == Verdict.FAULT and DEADLOCK in report["message"]:
            return DEADLOCK
        return str(report["verdict"])
    except (ValueError, KeyError, TypeError):
        return "success" if code == _ENDED_WELL else f"exit code {code}"


def outcome_of(process: Process[Any]) -> tuple[list[Done], list[str]]:
    """What was done in a process that has ended, and the findings."""
    lines = process.said.splitlines()
    done = [msgspec.json.decode(line, type=Done) for line in lines if line.startswith(b"[")]
    findings = [f"{each.command}: {each.finding}" for each in done if each.finding]
    begun = [line.split()[1].decode() for line in lines if line.startswith(b"begin ")]
    under_way = begun[-1] if len(begun) > len(done) else "harness"
    if process.signal in (signal.SIGPROF, signal.SIGALRM):
        findings.append(f"{under_way}: no end")
    elif process.signal:
        findings.append(f"{under_way}: {signal.Signals(process.signal).name}")
    elif process.code:
        findings.append(f"harness: exit code {process.code}")
    if process.peak > MEMORY:
        findings.append(f"{done[-1].command if done else under_way}: more than {MEMORY >> 30} GiB")
    return done, findings


def is_undecided(done: Sequence[Done]) -> bool:
    """Whether a program has several ends, by what was done as ``OTHERWISE`` says."""
    orders, by_pcie, *places = done
    is_alike = by_pcie.end == places[0].end
    return is_alike or orders.end == Verdict.RACE or len({each.code for each in places}) > 1


def difference(done: Sequence[Done]) -> str:
    """The finding that a program that runs cannot be timed, or that one that deadlocks can.

    Time depends neither on layers and relocations, nor on where pages are: what is wrong with these
    is seen by a run alone; nor should what a program does, but a mutant may take the address of a
    buffer for a row of a memory (``OTHERWISE``). What is ended for its time may have been slow.
    """
    if len(done) < 2:
        return ""
    run, cycles = done[:2]
    if OUT_OF_TIME in (run.end, cycles.end):
        return ""
    only_runs = run.code == _ENDED_WELL and cycles.code not in (_ENDED_WELL, _BAD_INPUT)
    only_ends_in_time = run.end == DEADLOCK and cycles.code == _ENDED_WELL
    return (
        f"the models differ: {run.end} and {cycles.end}" if only_runs or only_ends_in_time else ""
    )
