"""A survey from folders to report: every program of the chip that is in them, one row each."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.isa import grading

from darwinn_testbench.regression.pool import perform_here
from darwinn_testbench.regression.resume import resume
from darwinn_testbench.report import Report, Verdict, counted, worst
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.request.timing import DEFAULT_CHIP
from darwinn_testbench.survey.field_values import FieldValues, of_files, of_one_file
from darwinn_testbench.survey.plan import plan
from darwinn_testbench.survey.task import PIPELINE, ModelTask, Options, PipelineTask, SurveyRow


def survey(
    paths: Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    options: Options | None = None,
    *,
    jobs: int | None = None,
    fresh: bool = False,
    progress: ProgressCallback = silent,
) -> Report[SurveyRow]:
    """Verify and time every model of every compiled file in ``paths``, and report all of them.

    Args:
        paths: files, and folders that are searched.
        folder: where the journal is kept; with the same folder a later call goes on.
        options: how the models are run.
        jobs: processes of this machine; one for each core by default.
        fresh: do everything again.
        progress: called after each file and each row.

    Whatever is wrong with a file is the verdict of its row. The files that are no row are in the
    figures under ``left_out`` (``LeftOut``), the values of all fields under ``fields``
    (``FieldValues``).

    Raises:
        InputError: the journal is in use.
        OSError: it cannot be read or written.
    """
    options = options or Options()
    found = plan(paths, options, progress)
    perform = partial(_perform, jobs=jobs)
    done, known = resume(
        found.tasks,
        SurveyRow,
        folder,
        perform,
        fresh=fresh,
        again=lambda row: not row.conclusive,
        progress=progress,
    )
    # What a row is called depends on what else there is.
    names = {task.key: task.row.name for task in found.tasks}
    rows = [*(replace(row, name=names[row.key]) for row in done), *found.unread]
    # A pipeline follows its last segment.
    rows.sort(key=lambda row: (row.last_file, row.kind == PIPELINE, row.model))
    return Report(
        command="survey",
        file=", ".join(os.fspath(path) for path in paths),
        rows=tuple(rows),
        figures={
            "verdicts": {verdict.value: count for verdict, count in _counts(rows)},
            "taken_from_journal": known,
            "seed": options.seed,
            "runs": options.runs,
            "hazards": options.hazards is not False,
            "strict": options.strict,
            "chip": DEFAULT_CHIP,
            "seconds": round(sum(row.seconds for row in rows), 3),
            "assumptions": grading.merged(row.assumptions for row in rows),
            "fields": _fields(rows),
            "left_out": found.left_out,
        },
        decided=worst(row.verdict for row in rows) if rows else Verdict.BAD_INPUT,
        message=_message(rows, len(found.left_out), known),
    )


def _perform(tasks: Sequence[ModelTask | PipelineTask], jobs: int | None) -> Iterator[SurveyRow]:
    # Here and once, so that the processes find the kernels in the cache.
    compile_kernels()
    return perform_here(tasks, jobs)


def _counts(rows: Sequence[SurveyRow]) -> Iterator[tuple[Verdict, int]]:
    found = Counter(row.verdict for row in rows)
    return ((verdict, found[verdict]) for verdict in Verdict if found[verdict])


def _fields(rows: Sequence[SurveyRow]) -> tuple[FieldValues, ...]:
    """The values of all fields; models of one file count as one."""
    by_file: dict[str, list[tuple[FieldValues, ...]]] = defaultdict(list)
    for row in rows:
        by_file[row.file].append(row.values)
    return of_files(map(of_one_file, by_file.values()))


def _message(rows: Sequence[SurveyRow], left_out: int, known: int) -> str:
    if not rows:
        return f"no file holds a program of the chip ({counted(left_out, 'file')} left out)"
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in _counts(rows))
    files = len({row.file for row in rows})
    parts = [f"{counted(len(rows), 'row')} of {counted(files, 'file')}: {verdicts}"]
    if left_out:
        parts.append(f"{counted(left_out, 'other file')} left out")
    if known:
        parts.append(f"{counted(known, 'row')} done earlier")
    return "; ".join(parts)
