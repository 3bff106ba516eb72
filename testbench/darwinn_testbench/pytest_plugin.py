"""pytest plugin: a test says which executable, inputs and reference, and fails as `verify` does.

The fixture ``darwinn`` is there in every test suite of an environment that has this package::

    def test_mobilenet(darwinn):
        darwinn.verify("mobilenet_edgetpu.tflite", reference="mobilenet.tflite", runs=3)

Nothing of the simulator is imported before a test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from darwinn_sim.chips import selected_name

if TYPE_CHECKING:
    from darwinn_testbench.comparison.check import OutputRow
    from darwinn_testbench.report import Report, Row
    from darwinn_testbench.request.inputs import Inputs

_SEED_OPTION = "--darwinn-seed"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the plugin's option."""
    parser.getgroup("darwinn").addoption(
        _SEED_OPTION,
        type=int,
        default=0,
        metavar="N",
        help="Seed of drawn inputs where a test names none; it is printed when the test fails.",
    )


@dataclass(frozen=True)
class Darwinn:
    """What a test asks of the simulator; relative paths are relative to the test's file."""

    folder: Path
    seed: int
    properties: list[tuple[str, object]]

    def verify(
        self,
        file: str | os.PathLike[str],
        reference: str | os.PathLike[str] | None = None,
        inputs: Inputs = None,
        **settings: Any,
    ) -> Report[OutputRow]:
        """Fail the test if an output of an inference is not right.

        Without a reference nothing is compared, and the test fails only if the program does, or if
        ``require_reference`` asks for a comparison; ``verdict`` of the report is then RAN.

        The settings are those of ``darwinn_testbench.comparison.verify.verify``, or the texts of
        the options (``policy="lsb:1"``); ``strict`` is True for compiled models, ``seed`` that of
        the command line. Returns the report. Verdict and digests of the outputs become properties
        of the test, which JUnit files keep.

        Raises:
            pytest.fail.Exception: a mismatch, a fault, bad input, or what is not implemented.
        """
        from darwinn_testbench.comparison.asked import Asked
        from darwinn_testbench.comparison.verify import answer
        from darwinn_testbench.programs.formats import format_of
        from darwinn_testbench.request.record import entries_of, made

        entries, source = entries_of(Asked), self._path(file)
        given = {"reference": reference, "inputs": inputs, **settings}
        given = {name: value for name, value in given.items() if value is not None}
        others = {name: given.pop(name) for name in {*given} - {*entries}}
        told = {name: entries[name].paths(value, self._path) for name, value in given.items()}
        with _failing(f"darwinn verify {os.fspath(file)}"):
            usual = {"seed": self.seed, "strict": format_of(source) is None}
            report = answer(made(Asked, usual | told, source=source, **others))
        self._note_assumptions(report)
        self.properties.append(("darwinn_verdict", report.verdict.value))
        self.properties.extend((f"sha256 {row.case}", row.sha256) for row in report.rows)
        _fail_if_failed(report)
        return report

    def cycles(
        self,
        file: str | os.PathLike[str],
        *,
        at_most: int | None = None,
        baseline: str | os.PathLike[str] | None = None,
        chip: str = selected_name(),
        host: str | None = None,
        model: int = 0,
        assumptions: bool = True,
    ) -> int:
        """Fail the test if an inference takes more than ``at_most`` cycles; returns the cycles.

        They are those of ``darwinn cycles``: of the chip's clock, approximate, and the same every
        time. With ``baseline``, a file that ``darwinn cycles --baseline`` wrote, every figure of
        every executable of ``file`` has to be as it says. Without ``assumptions`` values that are
        executed by an assumed rule are refused.

        Raises:
            pytest.fail.Exception: it takes longer, a figure is not that of the baseline, the
                program fails, or the input is bad.
        """
        from darwinn_testbench.profile.profile import profile

        if baseline is not None:
            self._check_baseline(file, baseline, chip, host, assumptions)
        with _failing(f"darwinn cycles {os.fspath(file)}"):
            report = profile(
                self._path(file),
                chip_name=chip,
                host_name=host,
                model=model,
                operations=False,
                assumptions=assumptions,
            )
        figures = report.figures["profile"]
        cycles = int(figures.cycles)
        self.properties.append(("darwinn_cycles", cycles))
        self._note_assumptions(report)
        if at_most is not None and cycles > at_most:
            slowest = max(report.rows, key=lambda row: row.cycles, default=None)
            where = f"; the longest is {slowest.name} with {slowest.cycles:,}" if slowest else ""
            pytest.fail(
                f"darwinn cycles {os.fspath(file)}: {cycles:,} cycles "
                f"on {chip} behind {figures.host}, "
                f"{at_most:,} allowed{where}",
                pytrace=False,
            )
        return cycles

    def _note_assumptions(self, report: Report[Any]) -> None:
        """Keep what the result rests on without evidence, as properties of the test."""
        self.properties.extend(("darwinn_assumption", each.text) for each in report.assumptions)

    def _check_baseline(
        self,
        file: str | os.PathLike[str],
        baseline: str | os.PathLike[str],
        chip: str,
        host: str | None,
        assumptions: bool,
    ) -> None:
        from darwinn_testbench.regression.cycles import check_cycles

        with _failing(f"darwinn cycles {os.fspath(file)}"):
            report = check_cycles(
                [self._path(file)],
                self._path(baseline),
                chip=chip,
                host=host,
                assumptions=assumptions,
            )
        _fail_if_failed(report)

    def _path(self, path: str | os.PathLike[str]) -> str:
        return str(self.folder / path)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Turn an error with a verdict of its own into a failure of one line."""
    from darwinn_testbench.report import verdict_of

    try:
        yield
    except Exception as error:
        verdict = verdict_of(error)
        if verdict is None:
            raise
        pytest.fail(f"{what}: {verdict}: {error}", pytrace=False)


def _fail_if_failed(report: Report[Row]) -> None:
    from darwinn_testbench.report.result import failing_rows

    if not report.verdict.failed:
        return
    lines = [f"darwinn {report.command} {report.file}: {report.verdict}: {report.message}"]
    lines += [f"  {row.case}: {row.why}" for row in failing_rows(report)]
    seed = f"seed {report.figures['seed']}; " if "seed" in report.figures else ""
    lines.append(f"  {seed}darwinn {report.command} --help says more")
    pytest.fail("\n".join(lines), pytrace=False)


@pytest.fixture
def darwinn(request: pytest.FixtureRequest) -> Darwinn:
    """The simulator, for one test."""
    seed = int(request.config.getoption(_SEED_OPTION))
    return Darwinn(request.path.parent, seed, request.node.user_properties)
