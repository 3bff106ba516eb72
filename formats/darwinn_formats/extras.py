"""What the core does without, by the extra of the package that brings it."""

from __future__ import annotations

from importlib.util import find_spec

from darwinn_formats.errors import Unavailable

_EXTRAS = {
    "PIL": ("pictures", "pictures need Pillow"),
    "vl_convert": ("pictures", "charts need vl-convert"),
    "igraph": ("pictures", "graphs of networks need igraph"),
    "perfetto": ("timeline", "timelines need Perfetto's library"),
    "ai_edge_litert": ("litert", "operators on the CPU and references of .tflite need LiteRT"),
}
"""Of a library's name: the extra, and what it is needed for."""


def advice(error: BaseException) -> str | None:
    """What to install where an import of a library of an extra failed; None of any other error."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    library = error.name.partition(".")[0]
    return advice_of(library) if library in _EXTRAS else None


def require(library: str) -> None:
    """Raise ``Unavailable``, with what to install, if a library of an extra is not there."""
    if find_spec(library) is None:
        raise Unavailable(advice_of(library))


def advice_of(library: str) -> str:
    """What a library of an extra is needed for, and what to install."""
    extra, purpose = _EXTRAS[library]
    return f"{purpose}: pip install 'darwinn-testbench[{extra}]'"
