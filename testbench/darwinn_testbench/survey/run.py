"""A survey from folders to report: every program of the chip that is in them, one row each."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from darwinn_sim.accelerator import compile_kernels

from darwinn_testbench.cycles import DEFAULT_CHIP
from darwinn_testbench.regression.manifest import Case
from darwinn_testbench.regression.pool import perform_here
from darwinn_testbench.regression.resume import resume
from darwinn_testbench.regression.task import Task, key_of
from darwinn_testbench.report import Report, Verdict, counted, one_line, worst
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.survey.content import UNCOMPILED, CompiledFile, look_at
from darwinn_testbench.survey.field_values import FieldValues, of_files, of_one_file
from darwinn_testbench.survey.pairs import (
    Pipeline,
    companions_of,
    pipelines,
    reference_of,
    stem_of,
)
from darwinn_testbench.survey.task import ModelTask, PipelineTask, SurveyRow
from darwinn_testbench.survey.walk import Place, walk

DEFAULT_TIMEOUT = 600.0
"""Seconds for one row."""


@dataclass(frozen=True)
class LeftOut:
    """A file that is no row, and why."""

    file: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the models are run, as ``verify`` is told; without ``references`` they are only run."""

    references: bool = True
    seed: int = 0
    runs: int = 1
    strict: bool = False
    require_reference: bool = False
    timeout: float = DEFAULT_TIMEOUT


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
    compiled, left_out = _look(paths, progress)
    references = _references(compiled) if options.references else {}
    kept, same = _once(compiled, references)
    tasks = list(_tasks(kept, compiled, references, options))
    perform = partial(_perform, jobs=jobs)
    done, known = resume(tasks, SurveyRow, folder, perform, fresh=fresh, progress=progress)
    # What a row is called depends on what else there is.
    names = {task.key: task.row.name for task in tasks}
    rows = [replace(row, name=names[row.key]) for row in done]
    rows += [_unread(file) for file in kept if file.error]
    rows.sort(key=lambda row: (row.file, row.kind == "pipeline", row.model))
    return Report(
        command="survey",
        file=", ".join(os.fspath(path) for path in paths),
        rows=tuple(rows),
        figures={
            "verdicts": {verdict.value: count for verdict, count in _counts(rows)},
            "taken_from_journal": known,
            "seed": options.seed,
            "runs": options.runs,
            "strict": options.strict,
            "chip": DEFAULT_CHIP,
            "seconds": round(sum(row.seconds for row in rows), 3),
            "fields": _fields(rows),
            "left_out": [*same, *_told(left_out, references)],
        },
        decided=worst(row.verdict for row in rows) if rows else Verdict.BAD_INPUT,
        message=_message(rows, len(left_out) + len(same), known),
    )


def _perform(tasks: Sequence[ModelTask | PipelineTask], jobs: int | None) -> Iterator[SurveyRow]:
    # Here and once, so that the processes find the kernels in the cache.
    compile_kernels()
    return perform_here(tasks, jobs)


def _look(
    paths: Sequence[str | os.PathLike[str]], progress: ProgressCallback
) -> tuple[list[CompiledFile], list[LeftOut]]:
    """The files that hold programs of the chip, or that cannot be read; and the others."""
    compiled: list[CompiledFile] = []
    left_out: list[LeftOut] = []
    for number, place in enumerate(walk(paths)):
        progress(f"looking at {place.path.name}", number, None)
        if place.skipped:
            left_out.append(LeftOut(os.fspath(place.path), place.skipped))
            continue
        seen = _seen(place)
        if isinstance(seen, str):
            left_out.append(LeftOut(os.fspath(place.path), seen))
        else:
            compiled.append(seen)
    return compiled, left_out


def _seen(place: Place) -> CompiledFile | str:
    """The program of the chip in a file, or why it is none that can be run."""
    if place.unread:
        return CompiledFile(place.path, error=place.unread)
    try:
        seen = look_at(place.path)
    except OSError as error:
        return CompiledFile(place.path, error=one_line(error))
    if isinstance(seen, CompiledFile) and not seen.models:
        return "parameters of other files, and nothing that is computed with them"
    return seen


def _references(compiled: Sequence[CompiledFile]) -> Mapping[Path, Path]:
    """The models before compilation, by the paths of the compiled ones."""
    found = {file.path: reference_of(file.path) for file in compiled}
    return {path: reference for path, reference in found.items() if reference is not None}


def _once(
    compiled: Sequence[CompiledFile], references: Mapping[Path, Path]
) -> tuple[list[CompiledFile], list[LeftOut]]:
    """Each content once, under the name that has a reference; and the others."""
    first: dict[str, CompiledFile] = {}
    for file in sorted(compiled, key=lambda file: file.path not in references):
        first.setdefault(file.sha256 or os.fspath(file.path), file)
    kept = {file.path for file in first.values()}
    same = [
        LeftOut(os.fspath(file.path), f"same content as {first[file.sha256].path}")
        for file in compiled
        if file.path not in kept
    ]
    return [file for file in compiled if file.path in kept], same


def _tasks(
    kept: Sequence[CompiledFile],
    compiled: Sequence[CompiledFile],
    references: Mapping[Path, Path],
    options: Options,
) -> Iterator[ModelTask | PipelineTask]:
    names = names_of([file.path for file in kept])
    hashes: dict[str, str] = {}
    for file in kept:
        if file.error:
            continue
        reference = references.get(file.path)
        for model in range(file.models):
            row = SurveyRow(
                name=names[file.path] + (f" model {model}" if file.models > 1 else ""),
                verdict=Verdict.PASS,
                key="",
                file=os.fspath(file.path),
                model=model,
                kind=file.kind,
                reference=None if reference is None else os.fspath(reference),
                companions=tuple(os.fspath(each.path) for each in companions_of(file, compiled)),
                runtime=file.runtime,
                compiler=file.compiler,
            )
            task = _task(row, options, hashes)
            yield ModelTask(task, replace(row, key=f"survey {task.key}"))
    seen: set[tuple[str, ...]] = set()
    for pipeline in pipelines(compiled):
        contents = tuple(each.sha256 for each in pipeline.segments)
        if contents not in seen and all(contents):
            seen.add(contents)
            yield _pipeline_task(pipeline, options, hashes)


def _task(row: SurveyRow, options: Options, hashes: dict[str, str]) -> Task:
    case = Case(
        file=row.file,
        reference=row.reference,
        companions=row.companions,
        model=row.model,
        runs=options.runs,
        strict=options.strict,
        require_reference=options.require_reference,
        timeout=options.timeout,
    )
    return Task(key_of(case, "model", options.seed, hashes), case, "model", options.seed)


def _pipeline_task(pipeline: Pipeline, options: Options, hashes: dict[str, str]) -> PipelineTask:
    first, *then = (os.fspath(each.path) for each in pipeline.segments)
    row = SurveyRow(
        name=f"{pipeline.name}, {len(pipeline.segments)} segments",
        verdict=Verdict.PASS,
        key="",
        file=first,
        kind="pipeline",
        companions=tuple(then),
        runtime=max(filter(None, (each.runtime for each in pipeline.segments)), default=None),
        compiler=pipeline.segments[0].compiler,
    )
    key = f"pipeline {_task(row, options, hashes).key}"
    return PipelineTask(
        replace(row, key=key),
        options.seed,
        options.runs,
        options.strict,
        options.require_reference,
        options.timeout,
    )


def _unread(file: CompiledFile) -> SurveyRow:
    """The row of a file that cannot be read."""
    path = os.fspath(file.path)
    return SurveyRow(
        name=file.path.name,
        verdict=Verdict.BAD_INPUT,
        message=file.error,
        key="",
        file=path,
        command=f"darwinn inspect {path}",
    )


_NAMINGS: tuple[Callable[[Path], str], ...] = (
    stem_of,
    lambda path: path.name,
    lambda path: f"{path.parent.name}/{stem_of(path)}",
    lambda path: f"{path.parent.name}/{path.name}",
    os.fspath,
)
"""What a file can be called, from short to long."""


def names_of(paths: Sequence[Path]) -> dict[Path, str]:
    """The shortest name of each file that no other has."""
    names: dict[Path, str] = {}
    for naming in _NAMINGS:
        shared = Counter(map(naming, paths))
        names |= {
            path: naming(path) for path in paths if path not in names and shared[naming(path)] == 1
        }
    return names


def _told(left_out: Sequence[LeftOut], references: Mapping[Path, Path]) -> Iterator[LeftOut]:
    """The files that are left out, those that are references as such."""
    used = {os.path.realpath(each) for each in references.values()}
    for each in left_out:
        if each.reason == UNCOMPILED and os.path.realpath(each.file) in used:
            yield replace(each, reason=f"{UNCOMPILED}, the reference of a row")
        else:
            yield each


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
