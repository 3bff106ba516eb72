"""Judgements of programs on disk: one process judges for all processes of its user.

They lie beside compiled kernels. They are trusted as kernels are
(``darwinn_sim.kernel.private_files``), and are removed as kernels are if nobody uses them. The name
of a file gives the kind and the subject of the judgement; the name of the folder gives the state of
the sources. If a file cannot be read, the program is judged again.
"""

from __future__ import annotations

import hashlib
import pickle
import sysconfig
from functools import cache
from pathlib import Path
from typing import TypeVar

import darwinn_formats
import darwinn_reference
import darwinn_sim
import numpy as np
from darwinn_formats.files import digest_of_sources
from darwinn_sim import chip
from darwinn_sim.kernel.compiled import CACHES
from darwinn_sim.kernel.private_pickles import dump, load
from darwinn_sim.kernel.pruning import prune

from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.version import __version__

_T = TypeVar("_T")

folder = CACHES
"""Where they are kept, in a folder for each state of the sources."""

_NAME = "judgement"


def kept(path: Path | None, kind: type[_T]) -> _T | None:
    """What was judged; None if nothing was, or it cannot be read."""
    if path is None:
        return None
    found: _T | None = load(path, lambda each: isinstance(each, kind), _NAME, "judged")
    return found


def keep(path: Path | None, judged: object) -> None:
    """Keep what was judged, in place of what is there of the same."""
    if path is None:
        return
    is_new = not path.parent.is_dir()
    if dump(path, judged, _NAME) and is_new:
        prune(path.parent.parent)


def path_of(kind: str, *subjects: object) -> Path:
    """Where the judgement of ``subjects`` is kept, which can be pickled."""
    digest = hashlib.sha256()
    for each in subjects:
        digest.update(hashlib.sha256(pickle.dumps(each, pickle.HIGHEST_PROTOCOL)).digest())
    return folder / _versions()[:16] / f"{kind}.{digest.hexdigest()[:32]}"


def path_of_models(kind: str, pipeline: Pipeline) -> Path | None:
    """Where that of the models of ``pipeline`` on their chips is kept; None if memories are
    preloaded, which the name does not say."""
    if any(session.device.preloads for session in pipeline.sessions):
        return None
    chips: dict[int, int] = {}
    subjects: list[object] = []
    for session in pipeline.sessions:
        compiled = session.model.compiled
        number = chips.setdefault(id(session.accelerator), len(chips))
        numbers = number, compiled.number, compiled.caching_number, compiled.token
        subjects += [numbers, compiled.caching, compiled.inference]
    return path_of(kind, *subjects)


@cache
def _versions() -> str:
    """All that a judgement follows from but its subjects: sources, and sizes of the chip."""
    packages = (darwinn_formats, darwinn_sim, darwinn_reference)
    folders = [Path(str(each.__file__)).parent for each in packages]
    sources = digest_of_sources([*folders, Path(__file__).parents[1]])
    versions = f"{__version__} {np.__version__} {sysconfig.get_config_var('SOABI')} {sources}"
    return hashlib.sha256(f"{versions} {chip.constants()}".encode()).hexdigest()
