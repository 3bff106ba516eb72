"""Which files belong together: by name and place, by token, and as segments of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from darwinn_testbench.survey.content import CompiledFile, is_uncompiled

_SUFFIXES = ("_edgetpu", "-edgetpu", ".edgetpu")
_COMPILED_WITH = re.compile(r"_cocompiled_with_.*\Z")
_SEGMENT = re.compile(r"_segment_(\d+)_of_(\d+)\Z")
_UNCOMPILED_SUFFIX = ".tflite"
_SISTER = "tflite"


@dataclass(frozen=True)
class Pipeline:
    """The segments of a model, in the order in which they run."""

    name: str
    segments: tuple[CompiledFile, ...]


def stem_of(path: Path) -> str:
    """The name of a compiled model: that of its file without what a compiler adds."""
    stem = path.stem
    suffix = next((each for each in _SUFFIXES if stem.endswith(each)), "")
    return stem.removesuffix(suffix) or stem


def reference_of(path: Path) -> Path | None:
    """The model before compilation that belongs to a compiled one, if it is there.

    It has the same name without ``_edgetpu``; of a model that was compiled together with others,
    or of a segment, the name of the whole model. It lies beside it or in a folder ``tflite``
    there or a level above.
    """
    folder = path.parent
    # The parent of a relative folder need not be in its name.
    above = folder.parent if folder.name not in ("", "..") else folder / ".."
    for stem in _stems(path):
        for place in (folder, folder / _SISTER, above / _SISTER):
            candidate = place / (stem + _UNCOMPILED_SUFFIX)
            try:
                if is_uncompiled(candidate):
                    return candidate
            except OSError:
                continue
    return None


def companions_of(file: CompiledFile, others: Sequence[CompiledFile]) -> tuple[CompiledFile, ...]:
    """The files that cache parameters of ``file`` which it does not cache itself.

    Files of one folder were compiled together rather than those of two.
    """
    found = []
    for token in sorted(file.lacks):
        caching = [each for each in others if token in each.caches]
        beside = [each for each in caching if each.path.parent == file.path.parent]
        found += beside or caching
    return tuple(dict.fromkeys(found))


def pipelines(files: Sequence[CompiledFile]) -> Iterator[Pipeline]:
    """Every pipeline whose segments are all there, in one folder."""
    segments: dict[tuple[Path, str, int], dict[int, CompiledFile]] = {}
    for file in files:
        stem = stem_of(file.path)
        found = _SEGMENT.search(stem)
        if found:
            number, count = int(found[1]), int(found[2])
            key = (file.path.parent, stem[: found.start()], count)
            segments.setdefault(key, {})[number] = file
    for (_, name, count), members in segments.items():
        if len(members) == count > 1 and max(members) < count:
            yield Pipeline(name, tuple(members[number] for number in range(count)))


def _stems(path: Path) -> Iterator[str]:
    stem = stem_of(path)
    yield stem
    for part in (_COMPILED_WITH, _SEGMENT):
        whole = part.sub("", stem)
        if whole and whole != stem:
            yield whole
