"""Run text as a test case: text, bytes, text, bytes, then the executor."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from darwinn_formats import tfrt
from darwinn_reference.tfrt import Driver, Options

FILE = "case.mlir"


@dataclass(frozen=True)
class Outcome:
    """Exit status, lines of the output after the choices of allocator and queue, and of the log."""

    status: int
    lines: list[str]
    log: list[str]
    slept: list[float]


def file_of(text: str) -> tfrt.BefFile:
    """The file of a text, after a round trip that has to keep every byte."""
    data = tfrt.dump(tfrt.from_text(text, FILE))
    file = tfrt.load(data)
    assert tfrt.dump(file) == data
    assert tfrt.dump(tfrt.from_text(tfrt.to_text(file, exact=True))) == data
    return file


def run(text: str, **options: Any) -> Outcome:
    """Run all functions of a text as the driver does, without sleeping."""
    output, log, slept = io.StringIO(), io.StringIO(), list[float]()
    driver = Driver(file_of(text), text, Options(**options), output, log, sleep=slept.append)
    status = driver.run()
    lines = output.getvalue().split("\n")
    assert lines.pop() == ""
    return Outcome(status, lines[2:], log.getvalue().splitlines(), slept)


def body_lines(operations: str, **options: Any) -> list[str]:
    """What operations print in a function that returns nothing; a chain ``%ch`` is there."""
    text = f"func.func @case() {{\n%ch = tfrt.new.chain\n{operations}\ntfrt.return\n}}"
    outcome = run(text, **options)
    assert outcome.status == 0, outcome.log
    running = outcome.lines.index("--- Running 'case':")
    return outcome.lines[running + 1 :]
