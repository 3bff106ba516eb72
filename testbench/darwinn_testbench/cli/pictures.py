"""What `darwinn classify`, `detect`, `segment` and `pose` have in common."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from darwinn_formats.files import Source, content_of, read_once
from darwinn_formats.tflite import IDENTIFIER
from rich.console import RenderableType

from darwinn_testbench.chip.images import IMAGE_SUFFIXES
from darwinn_testbench.chip.whole import cpu_line
from darwinn_testbench.cli import options
from darwinn_testbench.cli.commands import SUMMARIES
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.files import picture_files
from darwinn_testbench.cli.outputs import is_named_by
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Column, Report, counted, seconds, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings
from darwinn_testbench.vision.answers import Answer, Box, Person, Region, Seen
from darwinn_testbench.vision.beside import Pair, pairs_of
from darwinn_testbench.vision.look import USUAL, PictureRow, look
from darwinn_testbench.vision.preparation import Fit, Normalisation

if TYPE_CHECKING:
    from PIL import Image

Images = Annotated[
    list[Path], argument("IMAGE", "Pictures: PNG, JPEG, BMP, GIF, PPM, WebP; folders of them.")
]
CompiledModel = Annotated[str, argument("MODEL", "Edge TPU .tflite that takes a picture.")]
AnyModel = Annotated[
    str,
    argument(
        "MODEL", "Edge TPU .tflite that takes a picture; or a model before compilation, in LiteRT."
    ),
]
Reference = Annotated[
    str | None,
    option(
        "--reference -r MODEL",
        "The model before compilation: it is asked about the same pictures in LiteRT, and its "
        "answers are shown beside the chip's.",
    ),
]
LabelFile = Annotated[
    Path | None,
    option(
        "--labels FILE",
        "Names of the classes: one name in each line, or a number and a name. By default the "
        "names in the model's metadata.",
    ),
]
Output = Annotated[
    Path | None,
    option(
        "--output -o PATH",
        "Write the picture with the answers drawn into it (.png, .jpg, .bmp, .webp). For "
        "several pictures, PATH is a folder, which gets a .png for each.",
    ),
]
Then = Annotated[
    list[str] | None,
    option("--then FILE", "The next segment of a pipeline, on its own chip, as in `darwinn run`."),
]
FitOption = Annotated[
    Fit | None,
    option(
        "--fit",
        "How to fit a picture to the size of the input: stretch it (stretch), show the whole "
        "picture with 0 beside it (letterbox, the default of detect), or cut out its middle "
        "(crop).",
    ),
]
Mean = Annotated[
    float | None,
    option(
        "--mean M",
        "Turn a pixel p, 0 to 255, into the real value (p - M) / S. Without --mean and --std, "
        "pixels are used unchanged, so the model's own quantisation applies.",
    ),
]
Std = Annotated[float | None, option("--std S", "See --mean.")]
Threshold = Annotated[float, option("--threshold T", "Least score of an answer.")]
Most = Annotated[
    int, option("--top K", "Greatest number of answers for a picture.", min=1, max=100_000)
]

_HELP = """The simulated chip runs the compiled part of the model; LiteRT runs the operators on
the CPU. Pictures are prepared as in pycoral; --fit, --mean and --std change that.
"""


def command_of(task: str) -> Callable[..., None]:
    """The command that asks a model about pictures: ``task`` of ``look``."""
    usual = USUAL[task]

    def command(
        images: Images,
        model: AnyModel,
        reference: Reference = None,
        labels: LabelFile = None,
        output: Output = None,
        fit: FitOption = None,
        mean: Mean = None,
        std: Std = None,
        threshold: Threshold = usual.threshold,
        top: Most = usual.most,
        companions: settings.Companions = (),
        then: Then = None,
        strict: settings.Strict = False,
        assumptions: settings.Assumptions = True,
        json: settings.Json = False,
    ) -> None:
        # Imported here: no other command should wait for what draws.
        from darwinn_testbench.vision.drawing import annotated, encoded, writable

        images = picture_files(images)
        normalisation = normalisation_of(mean, std)
        names = _shown_names(images)
        targets = _targets(names, output, writable)
        source = read_once(options.compiled_source_of(model))
        _refuse_picture(source, model)

        def write(row: PictureRow, image: Image.Image, seen: Seen) -> None:
            target = targets.get(row.name)
            if target is not None:
                write_result(target, encoded(annotated(image, seen), target.suffix))

        with progress_bar() as progress:
            report = look(
                task,
                images,
                source,
                labels=labels,
                most=top,
                threshold=threshold,
                companions=companions,
                then=then or (),
                reference=None if reference is None else options.source_of(reference),
                fit=fit,
                normalisation=normalisation,
                strict=strict,
                assumptions=assumptions,
                progress=progress,
                finished=write,
            )
        if output is None:
            shown = "--output PATH draws it into the picture"
            if len(images) > 1:
                shown = "--output FOLDER draws the answers into the pictures"
        else:
            shown = f"{output} shows {'it' if len(images) == 1 else 'them'}"
        if any(row.agreement is not None and row.agreement.differs for row in report.rows):
            checks = f"darwinn verify {quote(model)} --reference {quote(str(reference))}"
            shown = f"{checks} says whether the chip is right; {shown}"
        finish(
            report,
            file=model,
            as_json=json,
            body=lambda found: _body(found, names),
            next_step=shown,
        )

    changed: Any = command
    changed.__doc__ = f"{SUMMARIES[task]}\n\n{_HELP}"
    return command


def _refuse_picture(source: Source, model: str) -> None:
    """InputError if what should be the model is a picture: the order of words is another one."""
    if Path(model).suffix.lower() in IMAGE_SUFFIXES and content_of(source)[4:8] != IDENTIFIER:
        raise InputError(f"{model}: not a model but a picture: pictures first, the MODEL last")


def normalisation_of(mean: float | None, std: float | None) -> Normalisation | None:
    """What --mean and --std say; InputError if one is no number, or there alone."""
    for name, value in (("--mean", mean), ("--std", std)):
        if value is not None and not math.isfinite(value):
            raise InputError(f"{name} {value:g}: no number")
    if (mean is None) != (std is None):
        raise InputError("--mean and --std belong together: give both, or none")
    return None if mean is None or std is None else Normalisation(mean, std)


def _shown_names(images: Sequence[Path]) -> Mapping[str, str]:
    """The names of pictures: of those of several folders that have the same, with their folders."""
    names = {str(path): path.name for path in images}
    if len(set(names.values())) == len(names):
        return names
    folders = {path.parent: path.parent.resolve() for path in images}
    first = os.path.commonpath(folders.values())
    return {str(path): str(folders[path.parent].relative_to(first) / path.name) for path in images}


def _targets(
    names: Mapping[str, str], output: Path | None, writable: Callable[[str], object]
) -> Mapping[str, Path]:
    """Where each picture is written; InputError if two would be the same file, or none can be."""
    if output is None:
        return {}
    if len(names) == 1 and not output.is_dir():
        writable(output.suffix)
        return _none_of(dict.fromkeys(names, output))
    targets = {path: (output / name).with_suffix(".png") for path, name in names.items()}
    written = list(targets.values())
    twice = {target for target in written if written.count(target) > 1}
    if twice:
        raise InputError(
            f"{output}: several pictures would be {min(twice).relative_to(output)}: give them alone"
        )
    for folder in {target.parent for target in written}:
        folder.mkdir(parents=True, exist_ok=True)
    return _none_of(targets)


def _none_of(targets: Mapping[str, Path]) -> Mapping[str, Path]:
    """``targets``; InputError if one of them is a picture that is asked about."""
    for target in targets.values():
        if any(is_named_by(target, image) for image in targets):
            raise InputError(f"{target}: --output would replace the picture itself")
    return targets


@dataclass(frozen=True)
class _Line:
    """An answer about a picture, of the chip, the reference, or both."""

    row: PictureRow
    picture: str
    number: int
    pair: Pair

    @property
    def answer(self) -> Answer:
        """The chip's, or the reference's alone."""
        found = self.pair.chip or self.pair.reference
        assert found is not None
        return found


_COLUMNS: tuple[Column[_Line], ...] = (
    Column("picture", lambda line: line.picture, may_shrink=True),
    Column("#", lambda line: line.number if line.pair.chip else None, "right"),
    Column("class", lambda line: line.answer.number, "right"),
    Column("label", lambda line: line.answer.label, may_shrink=True),
    Column("score", lambda line: _score(line.pair.chip), "right"),
    Column("reference", lambda line: _score(line.pair.reference), "right"),
    Column("overlap", lambda line: _percent(line.pair.overlap), "right"),
    Column("apart, px", lambda line: _pixels(line.pair.distance), "right"),
    Column("where", lambda line: _where(line.answer)),
    Column("s", lambda line: seconds(line.row.seconds), "right"),
)


def _score(answer: Answer | None) -> str:
    return "" if answer is None else f"{answer.score:.3f}"


def _pixels(distance: float | None) -> str:
    return "" if distance is None else f"{distance:.1f}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _body(report: Report[PictureRow], names: Mapping[str, str]) -> Sequence[RenderableType]:
    lines = [
        _Line(row, names[row.name], number, pair)
        for row in report.rows
        for number, pair in enumerate(pairs_of(Seen(row.answers), Seen(row.reference)), 1)
    ]
    columns = [each for each in _COLUMNS if any(each.cell(line) != "" for line in lines)]
    without = [f"{row.name}: {row.message or 'nothing'}" for row in report.rows if not row.answers]
    beside = [f"{names[row.name]}: {row.agreement}" for row in report.rows if row.agreement]
    tables = [table(columns, lines)] if lines else []
    doubts = [wrapped(f"warning: {each}") for each in report.figures["warnings"]]
    compared = map(wrapped, beside)
    return [*tables, *without, *compared, *cpu_line(report.figures), *doubts]


def _where(answer: Answer) -> str:
    if isinstance(answer, Box):
        return f"{answer.left},{answer.top} to {answer.right},{answer.bottom}"
    if isinstance(answer, Region):
        return counted(answer.pixels, "pixel")
    if isinstance(answer, Person):
        best = max(answer.keypoints, key=lambda each: each.score)
        return f"{best.name} at {best.x:.0f},{best.y:.0f}"
    return ""
