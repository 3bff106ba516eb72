"""Pictures through a compiled model: a row for each, with what the model answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from darwinn_formats import tflite
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.files import Source, content_of, errors_name, name_of, read_once
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa import grading

from darwinn_testbench.chip.images import open_image, picture_shape
from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.chip.pipeline import Pipeline, Segment
from darwinn_testbench.chip.whole import cpu_figures, open_segment, open_uncompiled
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
from darwinn_testbench.vision.beside import Agreement, agreement_of
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


_COMPARED = {"json": lambda row: row.agreement is not None}
"""Metadata of fields that only rows with a reference have."""


@dataclass(frozen=True, kw_only=True)
class PictureRow(Row):
    """A picture and what the model answers, the surest first.

    ``width`` and ``height`` are its pixels; ``seconds`` are those of the inference on this machine.
    All are 0 of a file that cannot be read, and ``message`` says why. With a reference,
    ``reference`` is what that answers, and ``agreement`` how far both agree.
    """

    width: int
    height: int
    seconds: float
    answers: tuple[Answer | Box | Person | Region, ...]
    reference: tuple[Answer | Box | Person | Region, ...] = field(default=(), metadata=_COMPARED)
    agreement: Agreement | None = field(default=None, metadata=_COMPARED)

    spread = "answers"

    @property
    def duration(self) -> float:
        """Seconds of the inference."""
        return self.seconds


def _row(path: Path, image: Image.Image, seen: Seen, seconds: float) -> PictureRow:
    beside = seen.beside
    return PictureRow(
        name=str(path),
        verdict=Verdict.PASS,
        width=image.width,
        height=image.height,
        seconds=seconds,
        answers=seen.answers,
        reference=() if beside is None else beside.answers,
        agreement=None if beside is None else agreement_of(seen, beside),
    )


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


class _Asked:
    """A model that is asked about pictures, and how these are prepared for it."""

    def __init__(
        self,
        task: str,
        segments: Sequence[Segment],
        question: Question,
        fit: Fit,
        normalisation: Normalisation | None,
    ) -> None:
        self.task, self.question, self.fit = task, question, fit
        self.pipeline = Pipeline(segments)
        self.port = image_port(segments[0].ports, segments[0].file)
        shape = picture_shape(self.port.shape)
        assert shape is not None
        self.channels, self.size = shape[2], (shape[1], shape[0])
        is_yolo = _is_yolo(task, self.pipeline.ports, shape)
        self.normalisation = _NONE_TO_ONE if normalisation is None and is_yolo else normalisation

    @property
    def classes(self) -> int | None:
        """How many classes the model tells apart, if its shapes say it."""
        return class_count(self.task, [each.shape for each in self.pipeline.ports], self.size)

    def ask(self, path: Path, image: Image.Image) -> tuple[Seen, float, float]:
        """What is seen in a picture; seconds of the inference, and of the host's part of it.

        Raises:
            InputError: the model gives something else than what is asked for.
            SimulationError: the chip's program fails.
        """
        if len(image.getbands()) != self.channels:
            image = open_image(path, self.channels)
        tensor, placement = prepare(image, self.port, self.fit, self.normalisation)
        done = self.pipeline.infer({self.port.name: tensor})
        values = self.pipeline.results(done)
        outputs = [(each, values[each.name]) for each in self.pipeline.ports]
        try:
            seen = LOOKS[self.task](outputs, placement, self.question)
        except InputError as error:
            instead = instead_of(self.task, self.pipeline.ports, self.size)
            raise InputError(f"{self.pipeline.segments[-1].file}: {error}{instead}") from None
        return seen, sum(each.seconds for each in done), sum(each.cpu_seconds for each in done)


def _opened(source: Source, companions: Sequence[Source], options: Mapping[str, Any]) -> Segment:
    """A compiled model ready to run; one before compilation is all on the CPU."""
    data = content_of(source)
    if data[4:8] == tflite.IDENTIFIER and not companions:
        with errors_name(source):
            codes = tflite.load(data).operator_codes
        if not any(code.custom_code == CUSTOM_OPERATOR for code in codes):
            return open_uncompiled(source)
    return open_segment(source, companions, **options)


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
    reference: Source | None = None,
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
        source: the compiled model, or one before compilation, which LiteRT runs.
        labels: names of the classes, or a file of them; by default what the model has itself.
        most: answers for a picture, at most.
        threshold: least score of an answer. Both are by default those of the command.
        companions: files compiled together with it.
        then: further segments of a pipeline, each on a chip of its own.
        reference: the model before compilation, which is asked about the same pictures in LiteRT.
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
    segments = [_opened(source, companions, options)]
    segments += [open_segment(each, **options) for each in then]
    asked = _Asked(task, segments, question, fit, normalisation)
    other = None
    if reference is not None:
        opened = open_uncompiled(read_once(reference))
        other = _Asked(task, [opened], question, fit, normalisation)
    pipeline, port, segment = asked.pipeline, asked.port, segments[0]
    rows: list[PictureRow] = []
    cpu_seconds = 0.0
    fault: SimulationError | None = None
    begin = time.perf_counter()
    for number, path in enumerate(pictures):
        progress(str(path), number, len(pictures))
        try:
            image = open_image(path, asked.channels)
        except (InputError, OSError) as error:
            rows.append(_unreadable(path, error))
            continue
        try:
            seen, seconds, on_cpu = asked.ask(path, image)
        except SimulationError as error:
            fault = error
            break
        cpu_seconds += on_cpu
        if other is not None:
            seen = replace(seen, beside=other.ask(path, image)[0])
        row = _row(path, image, seen, seconds)
        rows.append(row)
        finished(row, image, seen)
    numbers = {answer.number for row in rows for answer in row.answers}
    doubts = misfit(question.labels, asked.classes) or nameless(question.labels, numbers)
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
    compared = [row.agreement for row in read if row.agreement is not None]
    if compared:
        alike = sum(not each.differs for each in compared)
        text += f"; the reference answers the same for {alike:,} of {len(compared):,}"
        figures["reference"] = name_of(reference) if reference is not None else ""
    return Report(
        command=task,
        file=segment.file,
        rows=tuple(rows),
        figures=figures,
        decided=decided,
        message=str(fault) if fault else text,
    )
