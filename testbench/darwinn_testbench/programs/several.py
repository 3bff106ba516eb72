"""What is in several files of any format: one that cannot be read costs its own row alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source

from darwinn_testbench.chip.inspection import inspect
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.contents import inspect_program
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.report import Report, Row, judged
from darwinn_testbench.report.progress import ProgressCallback, silent


def inspect_files(
    files: Sequence[str],
    opened: Callable[[str], Source],
    data: Sequence[Source] = (),
    progress: ProgressCallback = silent,
) -> list[Report[Any]]:
    """``inspect`` or ``inspect_program`` of each of ``files``, as ``opened`` gives it.

    The report of a file that cannot be read has one row, which says why, and no figures. ``data``
    are files of external data of those that have some.
    """
    reports: list[Report[Any]] = []
    for done, file in enumerate(files):
        progress(Path(file).name, done, len(files))
        try:
            source = opened(file)
            found = format_of(source)
            report: Report[Any] = (
                inspect(source) if found is None else inspect_program(source, found, data)
            )
        except (FormatError, OSError, InputError) as error:
            verdict, text = judged(error)
            row = Row(name="", verdict=verdict, message=text.removeprefix(f"{file}: "))
            report = Report(command="inspect", file=file, rows=(row,))
        reports.append(replace(report, file=file))
    return reports


def together(reports: Sequence[Report[Any]]) -> Report[Row]:
    """The reports of several files as one, whose rows have the names of their files before them.

    The figures of the files that could be read are in a list, ``files``.
    """
    return Report(
        command="inspect",
        file=f"{len(reports)} files",
        rows=tuple(
            replace(row, name=": ".join(filter(None, (Path(report.file).name, row.name))))
            for report in reports
            for row in report.rows
        ),
        figures={
            "files": [{"file": each.file, **each.figures} for each in reports if each.figures]
        },
    )
