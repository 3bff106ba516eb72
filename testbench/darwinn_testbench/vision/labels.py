"""Names of classes: label files, and what a model has of them in itself.

A `.tflite` with metadata has an archive of files behind the model (TensorFlow Lite metadata,
"associated files"): lists of labels, or the metadata of Ultralytics' exporter, with the names.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, read_file

from darwinn_testbench.errors import InputError

Labels = Mapping[int, str]
"""Names by number of the class."""

_MAX_BYTES = 1 << 24
"""Of a label file."""

_MAX_MEMBERS = 16
_MAX_MEMBER = 1 << 20
"""Bytes of what is read of a model's archive."""

_NO_ARCHIVE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What zipfile raises for what is no archive, or a damaged or encrypted one."""

_CLASS = re.compile(r"\d{1,9}")
_LINE_END = re.compile(r"\r\n|\r|\n")
_NUMBERED = re.compile(r"(\d{1,9})[:\s]\s*(\S.*)")


def labels_of(labels: Labels | str | os.PathLike[str] | None, source: Source) -> Labels:
    """Names of classes: as given, those of a file, or without either what the model has itself.

    Raises:
        InputError, OSError: as of :func:`read_labels`.
    """
    if labels is None:
        return labels_of_model(source)
    return labels if isinstance(labels, Mapping) else read_labels(Path(labels))


def read_labels(path: Path) -> dict[int, str]:
    """The names of a file: a line each, from 0 on, or lines of a number and a name.

    Raises:
        InputError: the file is not text, or too large.
        OSError: it cannot be read.
    """
    try:
        text = read_file(path, _MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start}: not UTF-8: no label file") from None
    except FormatError as error:
        raise InputError(str(error)) from error
    return _names_of_lines(text)


def _names_of_lines(text: str) -> dict[int, str]:
    names: dict[int, str] = {}
    for number, line in enumerate(_LINE_END.split(text)):
        numbered = _NUMBERED.fullmatch(line.strip())
        if numbered is not None:
            names[int(numbered[1])] = numbered[2]
        elif line.strip():
            names[number] = line.strip()
    return names


def labels_of_model(source: Source) -> dict[int, str]:
    """The names that a model file has in itself; none where there are none that can be read.

    Raises:
        FormatError, OSError: the file cannot be read.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content_of(source))) as archive:
            texts = {
                each.filename: archive.read(each).decode("utf-8-sig")
                for each in archive.infolist()[:_MAX_MEMBERS]
                if each.file_size <= _MAX_MEMBER and each.filename.endswith((".txt", ".json"))
            }
    except _NO_ARCHIVE:
        return {}
    metadata = {name: text for name, text in texts.items() if text.lstrip().startswith("{")}
    for text in metadata.values():
        names = _names_of_metadata(text)
        if names:
            return names
    lists = [name for name in texts.keys() - metadata.keys() if name.endswith(".txt")]
    named = sorted(name for name in lists if "label" in name.lower())
    chosen = named or lists
    return _names_of_lines(texts[chosen[0]]) if named or len(lists) == 1 else {}


def _names_of_metadata(text: str) -> dict[int, str]:
    """The names in what Ultralytics' exporter writes: JSON, before that a literal of Python."""
    found = None
    for read in (json.loads, ast.literal_eval):
        try:
            # Python's compiler says on standard error what it finds odd.
            with warnings.catch_warnings(action="ignore"):
                found = read(text)
            break
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    names = found.get("names") if isinstance(found, dict) else None
    if not isinstance(names, dict) or not all(_CLASS.fullmatch(str(each)) for each in names):
        return {}
    return {int(number): str(name) for number, name in names.items()}


def misfit(labels: Labels, classes: int | None) -> tuple[str, ...]:
    """A warning where there are names for another number of classes than a model has.

    The number of names is the greatest number that has one, and one more: lists may have gaps.
    Nothing is said without names, or where the number of classes is not known (None).
    """
    if not labels or classes is None or (names := max(labels) + 1) == classes:
        return ()
    why = {
        -1: 'the first class may be the background: if so, begin the file with a line "background"',
        1: "the file may begin with the background, or count from 1, and the model not: if so, "
        "every name is one class too late",
    }.get(names - classes, "give --labels the file that belongs to the model")
    return (f"labels for {names:,} classes, the model has {classes:,}: names may be wrong; {why}",)


def nameless(labels: Labels, numbers: Iterable[int]) -> tuple[str, ...]:
    """A warning where a model answers with classes beyond those that ``labels`` names."""
    beyond = [each for each in numbers if labels and each > max(labels)]
    if not beyond:
        return ()
    return (
        f"the model answers with class {max(beyond):,}, labels end with class {max(labels):,}: "
        "names may be wrong; give --labels the file that belongs to the model",
    )


def name_of_class(labels: Labels, number: int) -> str:
    """The name of a class, or its number."""
    return labels.get(number, str(number))
