"""What a survey has to do: which files hold programs, what belongs to them, a task for each row."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from darwinn_testbench.regression.manifest import SETTINGS, Case
from darwinn_testbench.regression.task import Task, of_case
from darwinn_testbench.report import Verdict, one_line
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.request.record import plain_of
from darwinn_testbench.survey.content import UNCOMPILED, CompiledFile, look_at
from darwinn_testbench.survey.pairs import (
    Pipeline,
    companions_of,
    pipelines,
    reference_of,
    stem_of,
)
from darwinn_testbench.survey.task import PIPELINE, ModelTask, Options, PipelineTask, SurveyRow
from darwinn_testbench.survey.walk import Place, walk


@dataclass(frozen=True)
class LeftOut:
    """A file that is no row, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The rows that are to be made, those of files that cannot be read, and the other files."""

    tasks: tuple[ModelTask | PipelineTask, ...]
    unread: tuple[SurveyRow, ...]
    left_out: tuple[LeftOut, ...]


def plan(
    paths: Sequence[str | os.PathLike[str]],
    options: Options | None = None,
    progress: ProgressCallback = silent,
) -> Plan:
    """Look at every file of ``paths`` and of the folders among them, and run none.

    ``progress`` is called before each file. Whatever is wrong with a file is in the plan.
    """
    options = options or Options()
    compiled, left_out = _look(paths, progress)
    references = _references(compiled) if options.references else {}
    kept, same = _once(compiled, references)
    return Plan(
        tasks=tuple(_tasks(kept, compiled, references, options)),
        unread=tuple(_unread(file) for file in kept if file.error),
        left_out=(*same, *_told(left_out, references)),
    )


_NOT_UTF_8 = "its name is not UTF-8: rename it"


def _look(
    paths: Sequence[str | os.PathLike[str]], progress: ProgressCallback
) -> tuple[list[CompiledFile], list[LeftOut]]:
    """The files that hold programs of the chip, or that cannot be read; and the others."""
    compiled: list[CompiledFile] = []
    left_out: list[LeftOut] = []
    for number, place in enumerate(walk(paths)):
        progress(f"looking at {place.path.name}", number, None)
        if place.skipped:
            left_out.append(LeftOut(os.fspath(_shown(place.path)), place.skipped))
            continue
        seen = _seen(place)
        if isinstance(seen, str):
            left_out.append(LeftOut(os.fspath(_shown(place.path)), seen))
        else:
            compiled.append(seen)
    return compiled, left_out


def _seen(place: Place) -> CompiledFile | str:
    """The program of the chip in a file, or why it is none that can be run."""
    shown = _shown(place.path)
    if place.unread:
        return CompiledFile(shown, error=place.unread)
    try:
        seen = look_at(place.path)
    except OSError as error:
        return CompiledFile(shown, error=one_line(error))
    if isinstance(seen, str):
        return seen
    if not seen.models:
        return "parameters of other files, and nothing that is computed with them"
    # What is finished is kept as UTF-8, and so must be the names that stand in it.
    return seen if shown == place.path else CompiledFile(shown, error=_NOT_UTF_8)


def _shown(path: Path) -> Path:
    """``path``; bytes of it that are not UTF-8 as escape sequences."""
    return Path(os.fsencode(path).decode(errors="backslashreplace"))


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
            yield ModelTask(replace(row, key=f"survey {task.key}"), task)
    seen: set[tuple[str, ...]] = set()
    for pipeline in pipelines(compiled):
        contents = tuple(each.sha256 for each in pipeline.segments)
        if contents not in seen and all(contents):
            seen.add(contents)
            yield _pipeline_task(pipeline, options, hashes)


def _task(row: SurveyRow, options: Options, hashes: dict[str, str]) -> Task:
    told = {name: value for name, value in plain_of(options).items() if name in SETTINGS}
    told |= {name: getattr(row, name) for name in ("file", "reference", "companions", "model")}
    case = Case(**told, timeout=options.timeout, seeds=(options.seed,))
    (task,) = of_case(case, hashes)
    return task


def _pipeline_task(pipeline: Pipeline, options: Options, hashes: dict[str, str]) -> PipelineTask:
    first, *then = (os.fspath(each.path) for each in pipeline.segments)
    row = SurveyRow(
        name=f"{pipeline.name}_segment_*_of_{len(pipeline.segments)}",
        verdict=Verdict.PASS,
        key="",
        file=first,
        kind=PIPELINE,
        companions=tuple(then),
        runtime=max(filter(None, (each.runtime for each in pipeline.segments)), default=None),
        compiler=pipeline.segments[0].compiler,
    )
    key = f"pipeline {_task(row, options, hashes).key}"
    return PipelineTask(replace(row, key=key), options)


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
