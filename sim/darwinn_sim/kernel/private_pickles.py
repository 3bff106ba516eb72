"""What was found out in one process and serves all others of its user: objects beside kernels.

They are trusted as compiled kernels are (:mod:`private_files`), and go as those do when nobody uses
them (:mod:`pruning`). What cannot be read is found out again.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from darwinn_sim.kernel.private_files import Unusable, check_folder, read_whole, write_whole
from darwinn_sim.kernel.pruning import used

_log = logging.getLogger(__name__)


def load(path: Path, fits: Callable[[Any], bool], name: str, again: str) -> Any:
    """The object that :func:`dump` has stored, if it ``fits``.

    None if nothing was stored, or it cannot be read: then the log calls it by its ``name`` and says
    what is done ``again``.
    """
    try:
        check_folder(path.parent)
        found = pickle.loads(read_whole(path))
        is_fit = fits(found)
    except FileNotFoundError:
        return None
    except Exception as error:
        # What is no pickle of ours may raise anything.
        _log.warning("%s: %s: %s; it is %s again", name, type(error).__name__, error, again)
        return None
    used(path.parent)
    return found if is_fit else None


def dump(path: Path, stored: object, name: str) -> bool:
    """Store an object, in place of what is there; False if it cannot be, which the log says."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(path.parent)
        write_whole(path, pickle.dumps(stored, pickle.HIGHEST_PROTOCOL))
    except (OSError, Unusable) as error:
        _log.warning("%s: %s; it is not kept", name, error)
        return False
    return True
