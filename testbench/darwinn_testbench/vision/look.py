"""Pictures through a compiled model: a row for each, with what the model answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from darwinn_formats.files import Source, read_once
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa import grading

from darwinn_testbench.chip.images import open_image, picture_shape
from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.whole import cpu_figures, open_segment
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict, counted, one_line, verdict_of
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.vision.answers import (
    LOOKS,
    Answer,
    Box,
    Person,
    Question,
    Region,
    Seen,
)
from darwinn_testbench.vision.labels import Labels, labels_of, misfit, nameless
from darwinn_testbench.vision.preparation import Fit, Normalisation, image_port, prepare
from darwinn_testbench.vision.shapes import KEYPOINT_NUMBERS, class_count, instead_of
from darwinn_testbench.vision.yolo import head_of

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True)
class Usual:
    """How a picture comes to the size of the input, and how many answers of which score count."""

    fit: Fit
    most: int
    threshold: float


USUAL = {
    "classify": Usual(Fit.STRETCH, 5, 0.0),
    "detect": Usual(Fit.LETTERBOX, 100, 0.4),
    "segment": Usual(Fit.STRETCH, 100, 0.0),
    "pose": Usual(Fit.STRETCH, 100, 0.2),
}
"""By command, where nothing else is said."""

_NONE_TO_ONE = Normalisation(0, 255)
"""Pixels as YOLO networks are given them, whatever range the input's quantisation stands for."""

_EXTRA = {"detect": 0, "pose": KEYPOINT_NUMBERS}
"""Numbers of a YOLO's boxes behind their classes, by the commands that know such heads."""


@dataclass(frozen=True, kw_only=True)
class PictureRow(Row):
    """A picture and what the model answers, the surest first.

    ``width`` and ``height`` are its pixels; ``seconds`` are those of the inference on this machine.
    All are 0 of a file that cannot be read, and ``message`` says why.
    """

    width: int
    height: int
    seconds: float
    answers: tuple[Answer | Box | Person | Region, ...]

    spread = "answers"

    @property
    def duration(self) -> float:
        """Seconds of the inference."""
        return self.seconds


def _unreadable(path: Path, error: Exception) -> PictureRow:
    return PictureRow(
        name=str(path),
        verdict=Verdict.BAD_INPUT,
        message=one_line(error).removeprefix(f"{path}: "),
        width=0,
        height=0,
        seconds=0.0,
        answers=(),
    )


def _is_yolo(task: str, ports: Sequence[TensorPort], shape: tuple[int, int, int]) -> bool:
    if task not in _EXTRA:
        return False
    height, width, _ = shape
    return head_of([port.shape for port in ports], width, height, _EXTRA[task]) is not None


def _question(task: str, labels: Labels, most: int | None, threshold: float | None) -> Question:
    if task not in USUAL:
        raise InputError(f"{task}: ask for {', '.join(USUAL)}")
    usual = USUAL[task]
    return Question(
        labels,
        usual.most if most is None else most,
        usual.threshold if threshold is None else threshold,
    )


Finished = Callable[[PictureRow, "Image.Image", Seen], object]


def look(
    task: str,
    images: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    source: Source,
    *,
    labels: Labels | str | os.PathLike[str] | None = None,
    most: int | None = None,
    threshold: float | None = None,
    companions: Sequence[Source] = (),
    then: Sequence[Source] = (),
    fit: Fit | None = None,
    normalisation: Normalisation | None = None,
    strict: bool = False,
    assumptions: bool = True,
    progress: ProgressCallback = silent,
    finished: Finished = lambda *_: None,
) -> Report[PictureRow]:
    """Ask a whole model about pictures.

    Args:
        task: ``classify``, ``detect``, ``segment`` or ``pose``: what its outputs are taken for.
        images: the pictures' files, or one of them.
        source: the compiled model.
        labels: names of the classes, or a file of them; by default what the model has itself.
        most: answers for a picture, at most.
        threshold: least score of an answer. Both are by default those of the command.
        companions: files compiled together with it.
        then: further segments of a pipeline, each on a chip of its own.
        fit: how a picture comes to the size of the input; by default as pycoral does it.
        normalisation: of pixels; by default what the model's quantisation stands for.
        strict: reading memory of the chip that nothing has written is a fault.
        assumptions: execute values whose meaning is assumed.
        progress: told before each picture.
        finished: told each row, with the picture and all that was seen in it.

    Raises:
        FormatError, OSError: the model is not valid or cannot be read; a picture costs its own row.
        InputError: there is no such task; the model takes no picture, or gives something else.
        ModelError, Unavailable: an operator on the CPU cannot run.
    """
    given = [images] if isinstance(images, str | os.PathLike) else images
    pictures = [Path(each) for each in given]
    source, then = read_once(source), [read_once(each) for each in then]
    question = _question(task, labels_of(labels, [source, *then][-1]), most, threshold)
    fit = fit or USUAL[task].fit
    options: dict[str, Any] = {"strict": strict, "assumptions": assumptions}
    segment = open_segment(source, companions, **options)
    pipeline = Pipeline([segment, *(open_segment(each, **options) for each in then)])
    port = image_port(segment.ports, segment.file)
    shape = picture_shape(port.shape)
    assert shape is not None
    if normalisation is None and _is_yolo(task, pipeline.ports, shape):
        normalisation = _NONE_TO_ONE
    size = shape[1], shape[0]
    classes = class_count(task, [each.shape for each in pipeline.ports], size)
    rows: list[PictureRow] = []
    cpu_seconds = 0.0
    fault: SimulationError | None = None
    begin = time.perf_counter()
    for number, path in enumerate(pictures):
        progress(str(path), number, len(pictures))
        try:
            image = open_image(path, shape[2])
        except (InputError, OSError) as error:
            rows.append(_unreadable(path, error))
            continue
        tensor, placement = prepare(image, port, fit, normalisation)
        try:
            done = pipeline.infer({port.name: tensor})
        except SimulationError as error:
            fault = error
            break
        cpu_seconds += sum(each.cpu_seconds for each in done)
        values = pipeline.results(done)
        outputs = [(each, values[each.name]) for each in pipeline.ports]
        try:
            seen = LOOKS[task](outputs, placement, question)
        except InputError as error:
            instead = instead_of(task, pipeline.ports, size)
            raise InputError(f"{pipeline.segments[-1].file}: {error}{instead}") from None
        row = PictureRow(
            name=str(path),
            verdict=Verdict.PASS,
            width=image.width,
            height=image.height,
            seconds=sum(each.seconds for each in done),
            answers=seen.answers,
        )
        rows.append(row)
        finished(row, image, seen)
    numbers = {answer.number for row in rows for answer in row.answers}
    doubts = misfit(question.labels, classes) or nameless(question.labels, numbers)
    figures: dict[str, Any] = {
        "pictures": len(pictures),
        "input": str(port),
        "fit": fit.value,
        "warnings": list(doubts),
        "seconds": time.perf_counter() - begin,
        "assumptions": grading.merged(each.assumed for each in pipeline.sessions),
        **cpu_figures(pipeline.segments, cpu_seconds),
    }
    decided = None if fault is None else verdict_of(fault)
    read = [row for row in rows if row.verdict is Verdict.PASS]
    answers = sum(len(row.answers) for row in read)
    text = f"{counted(answers, 'answer')} for {counted(len(read), 'picture')}"
    return Report(
        command=task,
        file=segment.file,
        rows=tuple(rows),
        figures=figures,
        decided=decided,
        message=str(fault) if fault else text,
    )
