"""A data set of pictures with a class each: folders of classes, or a CSV file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from darwinn_formats.errors import FormatError
from darwinn_formats.files import read_file

from darwinn_testbench.chip.images import IMAGE_SUFFIXES
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import counted
from darwinn_testbench.vision.labels import Labels

_MAX_BYTES = 1 << 28
_MAX_PICTURES = 10_000_000
_COLUMNS = {"image", "label"}
_CLASS = re.compile(r"\d{1,9}")
"""The number of a class: as many digits as in label files."""


@dataclass(frozen=True)
class Sample:
    """A picture, and the number of the class that it is of."""

    image: str
    truth: int


def read_dataset(path: Path, labels: Labels) -> tuple[Sample, ...]:
    """The pictures of a folder with a folder for each class, or of a CSV with ``image,label``.

    A class is named by its number, or by its name in ``labels`` (or the part of that before a
    comma), in any case of letters. Without labels folders are classes by their numbers if all of
    them are numbers, and 0, 1 ... in the order of their names if none is. Pictures of a CSV are
    relative to its folder.

    Raises:
        InputError: no picture, a class that is not known, or a CSV of another form; without labels
            folders of which some are numbers and some not.
        OSError: something cannot be read.
    """
    numbers = _numbers(labels)
    samples = tuple(_rows(path, numbers) if path.is_file() else _folders(path, numbers))
    if not samples:
        raise InputError(f"{path}: no picture in {_where_expected(path)}")
    if len(samples) > _MAX_PICTURES:
        raise InputError(f"{path}: {len(samples)} pictures, more than {_MAX_PICTURES}")
    return samples


def _where_expected(path: Path) -> str:
    """Where a data set without pictures should have them, and what to do with those it has."""
    if path.is_file():
        return "its rows"
    beside = sum(each.suffix.lower() in IMAGE_SUFFIXES for each in path.iterdir())
    form = "a folder of its class, as CLASS/PICTURE.png"
    if not beside:
        return form
    return f"{form}: {counted(beside, 'picture')} without a class; `darwinn classify` names classes"


def _numbers(labels: Labels) -> dict[str, int]:
    """Numbers by name; of two of a name the first."""
    numbers: dict[str, int] = {}
    for number, name in sorted(labels.items()):
        for each in (name, name.partition(",")[0]):
            numbers.setdefault(_plain(each), number)
    return numbers


def _plain(name: str) -> str:
    return name.strip().casefold()


def _number(name: str, numbers: Mapping[str, int], where: str) -> int:
    if _CLASS.fullmatch(name.strip()):
        return int(name)
    if _plain(name) not in numbers:
        raise InputError(f"{where}: {_unknown(name, numbers)}")
    return numbers[_plain(name)]


def _unknown(name: str, numbers: Mapping[str, int]) -> str:
    """Why the name of a class has no number, and what to do."""
    if not numbers:
        return f"class {name!r} is in no label file: give --labels that names it"
    like = get_close_matches(_plain(name), numbers, 3)
    near = f"near it: {', '.join(like)}" if like else f"the first is {next(iter(numbers))}"
    return f"no label is called {name!r}; {near}; or give the number of the class"


def folders_by_order(path: Path, labels: Labels) -> tuple[str, ...]:
    """Names of the folders that are classes 0, 1 ... by their order alone; none elsewhere.

    Raises:
        OSError: the folder cannot be read.
    """
    if labels or path.is_file():
        return ()
    names = tuple(folder.name for folder in _class_folders(path))
    return () if all(map(_CLASS.fullmatch, names)) else names


def _class_folders(path: Path) -> list[Path]:
    return sorted(
        each for each in path.iterdir() if each.is_dir() and not each.name.startswith(".")
    )


def _folders(path: Path, numbers: Mapping[str, int]) -> Iterator[Sample]:
    folders = _class_folders(path)
    counted = [each.name for each in folders if _CLASS.fullmatch(each.name)]
    if not numbers and 0 < len(counted) < len(folders):
        other = next(each.name for each in folders if each.name not in counted)
        raise InputError(
            f"{path}: folder {counted[0]} has the number of a class, {other!r} has not: give "
            "--labels that names it, or numbers to all"
        )
    by_order = not numbers and not counted
    for place, folder in enumerate(folders):
        truth = place if by_order else _number(folder.name, numbers, str(folder))
        for image in sorted(folder.iterdir()):
            if image.suffix.lower() in IMAGE_SUFFIXES:
                yield Sample(str(image), truth)


def _rows(path: Path, numbers: Mapping[str, int]) -> Iterator[Sample]:
    try:
        text = read_file(path, _MAX_BYTES).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        header = reader.fieldnames or ()
        rows: Sequence[dict[str | None, str | None]] = list(reader)
    except UnicodeDecodeError as error:
        if path.suffix.lower() in IMAGE_SUFFIXES:
            raise InputError(
                f"{path}: a picture, and no data set: `darwinn classify` names its class"
            ) from None
        raise InputError(
            f"{path}: byte {error.start}: not UTF-8: neither a folder nor a CSV file with "
            "image,label: MODEL comes first, then DATASET"
        ) from None
    except (csv.Error, FormatError) as error:
        raise InputError(f"{path}: {error}") from error
    if header and not _COLUMNS.issubset(header):
        raise InputError(
            f"{path}: line 1: {','.join(header)!r}: needs a header with the columns image and "
            "label, as image,label"
        )
    for line, row in enumerate(rows, 2):
        if row["image"] is None or row["label"] is None:
            raise InputError(f"{path}: line {line}: needs an image and a label, as the header says")
        truth = _number(row["label"], numbers, f"{path}: line {line}")
        yield Sample(str(path.parent / row["image"]), truth)
