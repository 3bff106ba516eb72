"""Some pictures of a data set through a model, on the chip and in LiteRT: one unit of work."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from darwinn_reference.arrays import AnyArray
from numpy.typing import NDArray

from darwinn_testbench.chip.images import open_image, picture_shape
from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.chip.pipeline import Segment
from darwinn_testbench.chip.whole import open_segment, open_uncompiled
from darwinn_testbench.errors import InputError
from darwinn_testbench.evaluation.dataset import Sample
from darwinn_testbench.regression.pool import ChipWork
from darwinn_testbench.report import Row, Verdict, judged
from darwinn_testbench.vision.answers import SCORES, class_scores, other_outputs
from darwinn_testbench.vision.preparation import Fit, Normalisation, image_port, prepare
from darwinn_testbench.vision.shapes import class_count, instead_of

if TYPE_CHECKING:
    from PIL import Image

_LOCK = threading.Lock()

BEST = 5
"""Classes of the highest scores that are kept."""


@dataclass(frozen=True)
class Setting:
    """What pictures go through, and how."""

    model: str
    reference: str | None = None
    companions: tuple[str, ...] = ()
    fit: Fit = Fit.STRETCH
    normalisation: Normalisation | None = None
    strict: bool = False
    assumptions: bool = True


@dataclass(frozen=True, kw_only=True)
class EvaluationRow(Row):
    """A picture: the number of its class, and the classes of the highest scores.

    ``chip`` and ``reference`` are numbers, the surest first, at most five; ``scores`` and
    ``reference_scores`` their scores. ``difference`` is the greatest one of any class's two scores;
    None without a reference.
    """

    truth: int
    chip: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    reference: tuple[int, ...] = ()
    reference_scores: tuple[float, ...] = ()
    difference: float | None = None
    seconds: float = 0.0

    @property
    def duration(self) -> float:
        """Seconds of the inference on the chip."""
        return self.seconds


@dataclass(frozen=True, kw_only=True)
class Outcome(Row):
    """What came of a task: a row for each of its pictures.

    The verdict is that of the task: whatever pictures are, it passes if the models could be asked.
    """

    key: str
    rows: tuple[EvaluationRow, ...]


@dataclass(frozen=True)
class Task(ChipWork):
    """``samples`` through the models of ``setting``; ``key`` changes with anything that matters.
    The data set has as many ``more``, in other tasks."""

    key: str
    samples: tuple[Sample, ...]
    setting: Setting
    timeout: float
    more: int = 0

    @property
    def lock(self) -> AbstractContextManager[object]:
        """A cluster's worker may have several threads, and a model has one state."""
        return _LOCK

    def perform(self) -> Outcome:
        """Do it; whatever goes wrong is a verdict, never an exception."""
        try:
            models = _opened(self.setting)
        except Exception as error:
            return self._all(*judged(error))
        try:
            pictures = models.expect(self.samples, self.more)
            rows = map(models.row, self.samples, pictures)
            return self._outcome(tuple(rows), Verdict.PASS)
        except BaseException:
            # Interrupted: nobody knows in what state they are.
            _opened.cache_clear()
            raise

    def failed(self, message: str) -> Outcome:
        """The outcome where the process that did it gave none."""
        return self._all(Verdict.FAULT, message)

    def _all(self, verdict: Verdict, message: str) -> Outcome:
        return self._outcome(
            tuple(
                EvaluationRow(name=each.image, verdict=verdict, message=message, truth=each.truth)
                for each in self.samples
            ),
            verdict,
        )

    def _outcome(self, rows: tuple[EvaluationRow, ...], verdict: Verdict) -> Outcome:
        name = Path(self.samples[-1].image).name
        return Outcome(name=name, verdict=verdict, key=self.key, rows=rows)


class _Picture:
    """A picture as the input of models: read once, and prepared once for inputs that are alike."""

    def __init__(self, path: Path, setting: Setting) -> None:
        self._path, self._setting = path, setting
        self._images: dict[int, Image.Image] = {}
        self._tensors: dict[TensorPort, AnyArray] = {}

    def tensor(self, port: TensorPort) -> AnyArray:
        """What an input is given.

        Raises:
            InputError: the file is no picture that can be read, or no picture fits the input.
        """
        alike = replace(port, name="")
        if alike not in self._tensors:
            shape = picture_shape(port.shape)
            assert shape is not None
            if shape[2] not in self._images:
                self._images[shape[2]] = open_image(self._path, shape[2])
            setting = self._setting
            self._tensors[alike], _ = prepare(
                self._images[shape[2]], port, setting.fit, setting.normalisation
            )
        return self._tensors[alike]


class _Models:
    """A compiled model and the one before compilation, ready to be asked."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.chip = open_segment(
            setting.model,
            setting.companions,
            strict=setting.strict,
            assumptions=setting.assumptions,
        )
        self.reference = None if setting.reference is None else open_uncompiled(setting.reference)
        self._ports = {
            id(each): image_port(each.ports, each.file)
            for each in (self.chip, self.reference)
            if each is not None
        }

    def expect(self, samples: Sequence[Sample], more: int) -> list[_Picture]:
        """Pictures that follow, of a data set with as many ``more``: the chip is asked about many
        at once, if there are many in all."""
        pictures = [_Picture(Path(sample.image), self.setting) for sample in samples]
        port = self._ports[id(self.chip)]
        sets: list[dict[str, AnyArray]] = []
        for picture in pictures:
            # What cannot be read is told when its turn comes.
            with suppress(Exception):
                sets.append({port.name: picture.tensor(port)})
        self.chip.expect(sets, more)
        return pictures

    def row(self, sample: Sample, picture: _Picture) -> EvaluationRow:
        """What both say of a picture; a picture that cannot be read is a row as well."""
        try:
            scores, seconds = self._asked(self.chip, picture)
            if sample.truth >= scores.size:
                raise InputError(f"of class {sample.truth}, and the model has {scores.size}")
            others = None if self.reference is None else self._asked(self.reference, picture)[0]
        except Exception as error:
            verdict, message = judged(error)
            return EvaluationRow(
                name=sample.image,
                verdict=verdict,
                message=message.removeprefix(f"{sample.image}: "),
                truth=sample.truth,
            )
        classes, values = _best(scores)
        row = EvaluationRow(
            name=sample.image,
            verdict=Verdict.PASS,
            truth=sample.truth,
            chip=classes,
            scores=values,
            seconds=round(seconds, 4),
        )
        if others is None:
            return row
        if others.size != scores.size:
            reason = f"{others.size} classes in the reference, {scores.size} in the model"
            return replace(row, verdict=Verdict.BAD_INPUT, message=reason)
        classes, values = _best(others)
        difference = round(float(np.abs(scores - others).max()), 6)
        return replace(row, reference=classes, reference_scores=values, difference=difference)

    def _asked(self, model: Segment, picture: _Picture) -> tuple[NDArray[np.float64], float]:
        """The scores of all classes, and the seconds of the inference."""
        port = self._ports[id(model)]
        found = model.infer({port.name: picture.tensor(port)})
        scores = class_scores([(each, found.outputs[each.name]) for each in model.results])
        return scores, found.seconds


def check_models(setting: Setting) -> int | None:
    """See that the models can be asked about pictures, and how many classes the compiled one has.

    None where operators decide the shapes of outputs only when they run.

    Raises:
        FormatError, InputError, ModelError, OSError: a file is not valid, takes no picture, or is
            no classifier.
        Unavailable, Unsupported: what it needs is not there.
    """
    models = _Models(setting)
    for each in (models.chip, models.reference):
        if each is not None:
            _refuse_no_classifier(each)
    return class_count("classify", [port.shape for port in models.chip.results], (0, 0))


def _refuse_no_classifier(model: Segment) -> None:
    """InputError if outputs whose shapes are all known are not one vector of scores."""
    shapes = [port.shape for port in model.results]
    known = all(shape and min(shape) > 0 for shape in shapes)
    if not known or class_count("classify", shapes, (0, 0)) is not None:
        return
    picture = picture_shape(image_port(model.ports, model.file).shape)
    assert picture is not None
    height, width, _ = picture
    error = other_outputs(list(zip(model.results, shapes, strict=True)), SCORES)
    instead = instead_of("classify", model.results, (width, height))
    raise InputError(f"{model.file}: {error}; evaluate asks classifiers alone{instead}")


@lru_cache(maxsize=1)
def _opened(setting: Setting) -> _Models:
    """The models of a process, which does many tasks of one setting."""
    return _Models(setting)


def _best(scores: NDArray[np.float64]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The classes of the highest scores, of equal ones the first, and these."""
    order = np.argsort(-scores, kind="stable")[:BEST].tolist()
    return tuple(order), tuple(round(float(scores[k]), 6) for k in order)
