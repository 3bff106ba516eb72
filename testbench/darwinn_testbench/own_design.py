"""A design of your own in the place of the harness's DMA engine: begin, test, export.

``darwinn_rtl`` does the work; here its results are reports.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from darwinn_formats.errors import TextError, Unavailable
from darwinn_formats.files import Source, name_of
from darwinn_rtl import toolchain

from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Device, Session
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict
from darwinn_testbench.report.progress import ProgressCallback, silent

if TYPE_CHECKING:
    from darwinn_rtl.chip.recording import RecordingPlayer
    from darwinn_rtl.own_design import OwnTest

WORK = "work"
"""Folder for logs and waves in the folder of a design."""


@dataclass(frozen=True, kw_only=True)
class HarnessFile(Row):
    """A file that was written."""

    bytes: int


@dataclass(frozen=True, kw_only=True)
class HarnessTest(Row):
    """A test, its seed, the seconds that it took, its log, and the command that repeats it."""

    module: str
    seed: int
    seconds: float
    log: str
    command: str


def begin_design(folder: str | os.PathLike[str]) -> Report[HarnessFile]:
    """Write a design, its tests, a Makefile and a CI workflow to ``folder``, which is made.

    Raises:
        InputError: one of the files is there already.
        OSError: they cannot be written.
    """
    from darwinn_rtl.own_design import begin

    try:
        return _written("new", Path(folder), begin(Path(folder)))
    except FileExistsError as found:
        raise InputError(f"{found.filename} is there already: name a new folder") from None


def export_design(
    folder: str | os.PathLike[str], top: str, *, plain: bool = False
) -> Report[HarnessFile]:
    """Write the sources that module ``top`` needs to ``folder``, with ``files.f`` and a FuseSoC
    core file; ``plain``: as plain Verilog too.

    Raises:
        InputError: no module is called so.
        Unavailable: plain Verilog needs yosys, which is not installed or refuses the design.
        OSError: the files cannot be written.
    """
    from darwinn_rtl.export import ExportFailed, export, tops

    if top not in tops():
        raise InputError(f"no module is called {top}; there are {', '.join(sorted(tops()))}")
    try:
        return _written("export", Path(folder), export(Path(folder), top, plain=plain))
    except ExportFailed as reason:
        raise Unavailable(str(reason)) from None


def export_program(
    folder: str | os.PathLike[str], model: Source, *, seed: int = 1
) -> Report[HarnessFile]:
    """Write the chip in plain Verilog to ``folder``, with a recording of ``model`` and a player.

    Verilator runs the parameters and one inference on random inputs, which ``seed`` decides. A
    simulator of plain Verilog repeats them, and compares cycles and bytes (``plain_player.v``).

    Raises:
        InputError: ``model`` holds not one compiled model, but none or several.
        Unavailable: a tool is not installed, or refuses the design.
        SimulationError: the program fails, or uses what the RTL lacks.
        OSError: the files cannot be written.
    """
    from darwinn_rtl.export import CHIP, export_player, put_in_place

    models = tuple(open_models(model))
    if len(models) != 1:
        raise InputError(f"{name_of(model)} holds {len(models)} compiled models, and not one")
    place = Path(folder)
    with tempfile.TemporaryDirectory() as work:
        whole = Path(work)
        player = _record(models[0], seed, whole)
        exported = export_design(whole, CHIP, plain=True)
        made = export_player(whole, whole / f"{CHIP}.v", player.memory_bytes, player.regions)
        written = _written("export", whole, [*made, *player.files])
        put_in_place(whole, place)
    figures = {**exported.figures, "seed": seed}
    rows = (*exported.rows, *written.rows)
    return replace(exported, file=str(place), rows=rows, figures=figures)


def _record(model: BoundModel, seed: int, folder: Path) -> RecordingPlayer:
    """The player of a recording of the model's parameters and an inference, now closed."""
    from darwinn_rtl.chip.engine import RtlAccelerator
    from darwinn_rtl.chip.recording import RecordingPlayer

    accelerator = RtlAccelerator(seed=seed, record=folder)
    player = accelerator.rtl.player
    assert isinstance(player, RecordingPlayer)
    (tensors,) = random_inputs([item.port for item in model.inputs], seed, 1)
    try:
        session = Session(model, device=Device(accelerator=accelerator))
        session.load_parameters()
        session.infer(tensors)
    finally:
        accelerator.close()
    return player


def try_design(
    folder: str | os.PathLike[str],
    *,
    names: Sequence[str] = (),
    data_bytes: int = 8,
    seed: int = 1,
    waves: str | os.PathLike[str] | None = None,
    progress: ProgressCallback = silent,
) -> Report[HarnessTest]:
    """Run the cocotb tests of ``folder`` on the harness with the sources in ``folder/rtl``.

    ``names``: only these tests. ``data_bytes``: bytes of a bus word. Each test runs in a
    simulation of its own; ``seed`` decides everything that is random. ``waves``: a folder for the
    waves of each test.

    Raises:
        InputError: the folder has no test, or none of a name, or a source cannot be built.
        TextError: a module is no Python.
        Unavailable: a tool is not installed.
    """
    from darwinn_rtl.build import BuildFailed, SimulationFailed
    from darwinn_rtl.own_design import run

    missing = toolchain.missing(waves=waves is not None)
    if missing:
        raise Unavailable("no RTL toolchain: " + "; ".join(missing))
    place, rows = Path(folder), []
    waves = None if waves is None else Path(waves)
    tests = _chosen(place, names)
    for number, test in enumerate(tests):
        progress(test.name, number, len(tests))
        work, begin = place / WORK / test.module, time.perf_counter()
        verdict, message = Verdict.PASS, ""
        try:
            run(place, test, data_bytes=data_bytes, seed=seed, waves=waves, work=work)
        except BuildFailed as refused:
            raise InputError(str(refused)) from None
        except SimulationFailed as failed:
            verdict, message = Verdict.MISMATCH, _reason(str(failed))
        command = f"darwinn harness test {place} --test {test.name} --seed {seed}"
        rows.append(
            HarnessTest(
                name=test.name,
                verdict=verdict,
                message=message,
                module=test.module,
                seed=seed,
                seconds=round(time.perf_counter() - begin, 3),
                log=str(work / f"{test.name}.log"),
                command=command + (f" --data-bytes {data_bytes}" if data_bytes != 8 else ""),
            )
        )
    figures = {"seed": seed, "data_bytes": data_bytes}
    return Report(command="harness", file=str(folder), rows=tuple(rows), figures=figures)


def _chosen(folder: Path, names: Sequence[str]) -> list[OwnTest]:
    from darwinn_rtl.own_design import TESTS, tests_of

    try:
        tests = tests_of(folder)
    except SyntaxError as error:
        place = str(error.filename), error.lineno or 0, error.offset or 0
        raise TextError(*place, f"is no Python: {error.msg}") from None
    if not tests:
        raise InputError(
            f"{folder} has no test: a class with @pyuvm.test(), or a coroutine with "
            f"@cocotb.test(), in a {TESTS}"
        )
    unknown = sorted(set(names) - {test.name for test in tests})
    if unknown:
        known = ", ".join(test.name for test in tests)
        raise InputError(f"{folder} has no test {unknown[0]}; it has {known}")
    return [test for test in tests if not names or test.name in names]


_MARKS = ("Mismatch", "WaitTimeout", "AssertionError", "%Error", "Assertion failed")


def _reason(text: str) -> str:
    """The line of a log that says what failed: the last that names an error."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if any(m in line for m in _MARKS)), lines[0])


def _written(action: str, folder: Path, files: Sequence[Path]) -> Report[HarnessFile]:
    rows = tuple(
        HarnessFile(
            name=str(path.relative_to(folder)), verdict=Verdict.PASS, bytes=path.stat().st_size
        )
        for path in files
    )
    return Report(command="harness", file=str(folder), rows=rows, figures={"action": action})
