"""A data set through a model, from its pictures to a report; what is finished stays finished."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from darwinn_formats.files import digest_of
from darwinn_sim.accelerator import compile_kernels

from darwinn_testbench.evaluation.dataset import Sample, folders_by_order, read_dataset
from darwinn_testbench.evaluation.task import (
    BEST,
    EvaluationRow,
    Outcome,
    Setting,
    Task,
    check_models,
)
from darwinn_testbench.regression.cluster import perform_on_cluster
from darwinn_testbench.regression.pool import perform_here
from darwinn_testbench.regression.program import program
from darwinn_testbench.regression.resume import resume
from darwinn_testbench.report import Report, Verdict, counted
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.vision.labels import Labels, labels_of, misfit

PICTURES_OF_A_TASK = 8
DEFAULT_TIMEOUT = 3600.0
WORST = 20
"""Pictures of the greatest differences that the report names."""
_MISSING = "missing"


@dataclass(frozen=True)
class Accuracy:
    """How many of the pictures that were asked about are of the surest class, and of the five."""

    pictures: int
    top1: int
    top5: int

    def __str__(self) -> str:
        shares = (f"{100 * each / max(self.pictures, 1):.2f} %" for each in (self.top1, self.top5))
        return "top-1 {}, top-5 {}".format(*shares)


@dataclass(frozen=True)
class Confusion:
    """``count`` pictures for whose surest class the chip says ``chip``, LiteRT ``reference``."""

    chip: int
    reference: int
    count: int


def evaluate(
    dataset: str | os.PathLike[str],
    setting: Setting | str | os.PathLike[str],
    folder: str | os.PathLike[str] = "evaluation",
    *,
    labels: Labels | str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    fresh: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    progress: ProgressCallback = silent,
) -> Report[EvaluationRow]:
    """Ask a model, and the one before compilation, for the class of every picture.

    Args:
        dataset: folders of classes, or a CSV file (``dataset.read_dataset``).
        setting: the models, and how pictures are prepared; or the compiled model alone.
        folder: where the journal is kept; with the same folder a later call goes on.
        labels: names of the classes, or a file of them; by default what the model has itself.
        jobs: processes of this machine; one for each core by default.
        scheduler: address of a Dask scheduler that gets the work instead.
        fresh: do everything again.
        timeout: seconds for a task of a few pictures.
        progress: called after each task.

    A picture that cannot be read costs its own row alone.

    Raises:
        InputError: the data set is not valid, the journal is in use, or no scheduler answers.
        FormatError, ModelError, Unavailable: a model cannot be asked.
        OSError: a file cannot be read or written.
    """
    if not isinstance(setting, Setting):
        setting = Setting(os.fspath(setting))
    names = labels_of(labels, setting.model)
    samples = read_dataset(Path(dataset), names)
    # Before all pictures are read, and said once instead of for each.
    classes = check_models(setting)
    folders = folders_by_order(Path(dataset), names)
    tasks = _tasks(samples, setting, timeout)
    perform = (
        partial(_perform_here, jobs=jobs)
        if scheduler is None
        else partial(perform_on_cluster, address=scheduler)
    )
    outcomes, known = resume(
        tasks,
        Outcome,
        folder,
        perform,
        fresh=fresh,
        again=lambda outcome: outcome.verdict is not Verdict.PASS,
        progress=progress,
    )
    rows = tuple(row for outcome in outcomes for row in outcome.rows)
    return Report(
        command="evaluate",
        file=setting.model,
        rows=rows,
        figures={
            "dataset": os.fspath(dataset),
            "reference": setting.reference,
            "fit": setting.fit.value,
            "folders": list(folders),
            "warnings": [*misfit(names, classes), *_doubtful_order(folders, classes)],
            "pictures": len(samples),
            "tasks": len(tasks),
            "taken_from_journal": known,
            **_compared(rows, setting),
            "seconds": round(sum(row.seconds for row in rows), 3),
        },
        message=_message(rows, setting),
    )


def _doubtful_order(folders: Sequence[str], classes: int | None) -> tuple[str, ...]:
    """A warning where folders that are classes by their order are not as many as these."""
    if not folders or classes in (None, len(folders)):
        return ()
    return (
        f"{counted(len(folders), 'folder')}, the model has {classes:,} classes: folders are taken "
        "for the first of them in the order of their names; give --labels that names them, or "
        "name folders by the numbers of their classes",
    )


def accuracy(rows: Sequence[EvaluationRow], of_reference: bool) -> Accuracy:
    """How often the chip, or the reference, is right; what could not be asked is left out."""
    answers = [(row.truth, row.reference if of_reference else row.chip) for row in rows]
    asked = [(truth, classes) for truth, classes in answers if classes]
    return Accuracy(
        len(asked),
        sum(truth == classes[0] for truth, classes in asked),
        sum(truth in classes[:BEST] for truth, classes in asked),
    )


def worst(rows: Sequence[EvaluationRow]) -> tuple[EvaluationRow, ...]:
    """The pictures whose scores differ most between chip and reference, where they do."""
    differing = [row for row in rows if row.difference]
    return tuple(sorted(differing, key=lambda row: -(row.difference or 0))[:WORST])


def wrong(rows: Sequence[EvaluationRow]) -> tuple[EvaluationRow, ...]:
    """The pictures for which the chip's surest class is not theirs, the surest first."""
    found = [row for row in rows if row.chip and row.chip[0] != row.truth]
    return tuple(sorted(found, key=lambda row: -row.scores[0]))


def _compared(rows: Sequence[EvaluationRow], setting: Setting) -> dict[str, Any]:
    figures: dict[str, Any] = {"chip_accuracy": accuracy(rows, False)}
    if setting.reference is None:
        return figures
    pairs = Counter((row.chip[0], row.reference[0]) for row in rows if row.reference)
    figures["reference_accuracy"] = accuracy(rows, True)
    figures["agreement"] = sum(count for (one, other), count in pairs.items() if one == other)
    figures["confusion"] = tuple(
        Confusion(one, other, count)
        for (one, other), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
        if one != other
    )
    figures["worst"] = [row.name for row in worst(rows)]
    return figures


def _message(rows: Sequence[EvaluationRow], setting: Setting) -> str:
    found = accuracy(rows, False)
    parts = [f"{counted(found.pictures, 'picture')}: chip {found}"]
    if setting.reference is not None:
        compared = [row.chip[0] == row.reference[0] for row in rows if row.reference]
        parts[0] += f"; LiteRT {accuracy(rows, True)}"
        parts.append(f"the same surest class for {sum(compared)} of {len(compared)}")
    failed = sum(row.verdict is not Verdict.PASS for row in rows)
    return "; ".join([*parts, *([f"{failed} could not be asked about"] if failed else [])])


def _tasks(samples: Sequence[Sample], setting: Setting, timeout: float) -> tuple[Task, ...]:
    models = [setting.model, *filter(None, [setting.reference]), *setting.companions]
    described = {
        "program": program(),
        "setting": msgspec.to_builtins(setting),
        "models": [_hash(file) for file in models],
    }
    begin = _encoded(described)
    return tuple(
        Task(_key(begin, part), tuple(part), setting, timeout, len(samples) - len(part))
        for part in (
            samples[k : k + PICTURES_OF_A_TASK] for k in range(0, len(samples), PICTURES_OF_A_TASK)
        )
    )


def _key(begin: bytes, samples: Sequence[Sample]) -> str:
    digest = hashlib.sha256(begin)
    for each in samples:
        digest.update(_encoded([each.image, each.truth, _hash(each.image)]))
    return digest.hexdigest()


def _encoded(value: Any) -> bytes:
    # Not by msgspec: the name of a file may be no UTF-8.
    return json.dumps(value, sort_keys=True).encode()


def _hash(file: str) -> str:
    return digest_of(file) or _MISSING


def _perform_here(tasks: Sequence[Task], jobs: int | None) -> Iterator[Outcome]:
    # Here and once, so that the processes find the kernels in the cache.
    compile_kernels()
    return perform_here(tasks, jobs)
