"""Judgements of programs on disk (``any_timing``): one process judges for all others of its user.

They lie beside compiled kernels, are trusted as those are (``darwinn_sim.kernel.private_files``),
and go as those do when nobody uses them. The name of one says of which programs it is, on which
chips; that of the folder, of which state of the sources. What cannot be read is judged again.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import sysconfig
from functools import cache
from pathlib import Path

import darwinn_formats
import darwinn_sim
import numpy as np
from darwinn_formats.files import digest_of_sources
from darwinn_sim.kernel.compiled import CACHES
from darwinn_sim.kernel.private_files import Unusable, check_folder, read_whole, write_whole
from darwinn_sim.kernel.pruning import prune, used

from darwinn_testbench.chip.any_timing import Judged
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.version import __version__

folder = CACHES
"""Where they are kept, in a folder for each state of the sources."""

_log = logging.getLogger(__name__)


def kept(pipeline: Pipeline) -> Judged | None:
    """What was judged of the models of ``pipeline``; None if nothing was, or it cannot be read."""
    path = path_of(pipeline)
    if path is None:
        return None
    try:
        check_folder(path.parent)
        judged = pickle.loads(read_whole(path))
    except FileNotFoundError:
        return None
    except Exception as error:
        # What is no pickle of ours may raise anything.
        _log.warning("judged order: %s: %s; it is judged again", type(error).__name__, error)
        return None
    used(path.parent)
    return judged if isinstance(judged, Judged) else None


def keep(pipeline: Pipeline, judged: Judged) -> None:
    """Keep what was judged, in place of what is there of the same models."""
    path = path_of(pipeline)
    if path is None or not judged.holds:
        return
    try:
        is_new = not path.parent.is_dir()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(path.parent)
        write_whole(path, pickle.dumps(judged, pickle.HIGHEST_PROTOCOL))
        if is_new:
            prune(path.parent.parent)
    except (OSError, Unusable) as error:
        _log.warning("judged order: %s; it is not kept", error)


def path_of(pipeline: Pipeline) -> Path | None:
    """Where it is kept; None if memories are preloaded, which the name does not say."""
    digest = hashlib.sha256()
    chips: dict[int, int] = {}
    for session in pipeline.sessions:
        if session.device.preloads:
            return None
        compiled = session.model.compiled
        chip = chips.setdefault(id(session.accelerator), len(chips))
        numbers = chip, compiled.number, compiled.caching_number, compiled.token
        for each in (numbers, compiled.caching, compiled.inference):
            digest.update(hashlib.sha256(pickle.dumps(each, pickle.HIGHEST_PROTOCOL)).digest())
    return folder / _versions()[:16] / f"order.{digest.hexdigest()[:32]}"


@cache
def _versions() -> str:
    """All that a judgement follows from but the programs: the chip is a part of the sources."""
    packages = Path(darwinn_formats.__file__), Path(darwinn_sim.__file__), Path(__file__)
    sources = digest_of_sources(each.parent for each in packages)
    versions = f"order {__version__} {np.__version__} {sysconfig.get_config_var('SOABI')} {sources}"
    return hashlib.sha256(versions.encode()).hexdigest()
