"""An evaluation on one HTML page: how often both are right, where they part, the pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from darwinn_testbench.chip.images import open_image
from darwinn_testbench.errors import InputError
from darwinn_testbench.evaluation.run import WORST, Accuracy, Confusion, worst, wrong
from darwinn_testbench.evaluation.task import EvaluationRow
from darwinn_testbench.pages import Page, Picture, Section, render, sentence, table_of
from darwinn_testbench.report import Column, Report, counted
from darwinn_testbench.vision.drawing import encoded
from darwinn_testbench.vision.labels import Labels, name_of_class

_THUMBNAIL = 160
"""Pixels of a picture's longer side."""
_MOST_PAIRS = 50


def page_of(report: Report[EvaluationRow], labels: Labels) -> bytes:
    """The page of an evaluation."""
    return render(
        Page(
            title=f"{Path(report.file).name} on {Path(report.figures['dataset']).name}",
            verdict=report.verdict,
            summary=sentence(report.headline),
            sections=tuple(_sections(report, labels)),
        )
    )


def accuracy_columns() -> tuple[Column[tuple[str, Accuracy]], ...]:
    """The columns of who is right how often."""
    return (
        Column("run by", lambda each: each[0]),
        Column("pictures", lambda each: each[1].pictures, "right"),
        Column("top-1 %", lambda each: _percent(each[1].top1, each[1]), "right"),
        Column("top-5 %", lambda each: _percent(each[1].top5, each[1]), "right"),
    )


def accuracies(report: Report[EvaluationRow]) -> list[tuple[str, Accuracy]]:
    """Who was asked, and how often they are right."""
    found = [("chip", report.figures["chip_accuracy"])]
    if "reference_accuracy" in report.figures:
        found.append(("LiteRT", report.figures["reference_accuracy"]))
    return found


def confusion_columns(labels: Labels) -> tuple[Column[Confusion], ...]:
    """The columns of pairs of classes that chip and LiteRT hold a picture for."""
    return (
        Column("chip says", lambda each: name_of_class(labels, each.chip), may_shrink=True),
        Column("LiteRT says", lambda each: name_of_class(labels, each.reference), may_shrink=True),
        Column("pictures", lambda each: each.count, "right"),
    )


def worst_columns(labels: Labels) -> tuple[Column[EvaluationRow], ...]:
    """The columns of the pictures whose scores differ most."""
    return (
        Column("picture", lambda row: row.name, may_shrink=True),
        Column("is", lambda row: name_of_class(labels, row.truth), may_shrink=True),
        Column("chip", lambda row: _best(row.chip, row.scores, labels), may_shrink=True),
        Column(
            "LiteRT",
            lambda row: _best(row.reference, row.reference_scores, labels),
            may_shrink=True,
        ),
        Column("difference", lambda row: f"{row.difference:.4f}", "right"),
    )


def wrong_columns(labels: Labels) -> tuple[Column[EvaluationRow], ...]:
    """The columns of the pictures that the chip takes for another class."""
    return (
        Column("picture", lambda row: row.name, may_shrink=True),
        Column("is", lambda row: name_of_class(labels, row.truth), may_shrink=True),
        Column("chip says", lambda row: _best(row.chip, row.scores, labels), may_shrink=True),
    )


def _sections(report: Report[EvaluationRow], labels: Labels) -> Iterator[Section]:
    yield Section("Accuracy", parts=[table_of(accuracy_columns(), accuracies(report))])
    confusion = report.figures.get("confusion", ())
    if confusion:
        text = (
            "Pictures for which chip and LiteRT have different surest classes: "
            f"{counted(len(confusion), 'pair')} of classes."
        )
        pairs = table_of(confusion_columns(labels), confusion[:_MOST_PAIRS])
        yield Section("Where they part", text, [pairs])
    differing, mistaken = worst(report.rows), wrong(report.rows)
    if differing:
        table = table_of(worst_columns(labels), differing)
        yield Section("Greatest differences of a score", parts=[table])
    if mistaken:
        text = f"{counted(len(mistaken), 'picture')} that the chip takes for another class."
        table = table_of(wrong_columns(labels), mistaken[:_MOST_PAIRS])
        yield Section("Wrong answers", text, [table])
    shown = {row.name: row for row in (*differing, *mistaken[:WORST])}
    for row in shown.values():
        picture = _thumbnail(row.name)
        if picture is not None:
            name = _within(row.name, report.figures["dataset"])
            yield Section(name, _says(row, labels), [picture])
    failed = [row for row in report.rows if row.message]
    if failed:
        columns: tuple[Column[EvaluationRow], ...] = (
            Column("picture", lambda row: row.name),
            Column("why", lambda row: row.message),
        )
        yield Section("Not asked about", parts=[table_of(columns, failed)])


def _says(row: EvaluationRow, labels: Labels) -> str:
    chip = f"chip {_best(row.chip, row.scores, labels)}"
    answers = [chip]
    if row.reference:
        answers.append(f"LiteRT {_best(row.reference, row.reference_scores, labels)}")
    return f"Is {name_of_class(labels, row.truth)}: {', '.join(answers)}"


def _within(picture: str, dataset: str) -> str:
    """The picture's path in the data set: folders of classes have pictures of the same names."""
    folder = Path(dataset) if Path(dataset).is_dir() else Path(dataset).parent
    path = Path(picture)
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _thumbnail(path: str) -> Picture | None:
    """The picture, small; None if it cannot be read any more."""
    try:
        image = open_image(Path(path), 3)
    except (InputError, OSError):
        return None
    image.thumbnail((_THUMBNAIL, _THUMBNAIL))
    return Picture(encoded(image, ".jpg"), "image/jpeg", Path(path).name)


def _best(classes: tuple[int, ...], scores: tuple[float, ...], labels: Labels) -> str:
    return f"{name_of_class(labels, classes[0])} {scores[0]:.3f}" if classes else "-"


def _percent(count: int, of: Accuracy) -> str:
    return f"{100 * count / max(of.pictures, 1):.2f}"
