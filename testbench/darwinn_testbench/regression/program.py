"""This program, as far as outcomes follow from it: another one does all tasks again."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import darwinn_formats
import darwinn_reference
import darwinn_rtl
import darwinn_sim
from darwinn_formats.files import digest_of_sources
from darwinn_rtl.source_files import source_folder
from darwinn_sim import chip

from darwinn_testbench.version import __version__, version_of

_SUFFIXES = (".py", ".toml", ".sv", ".vlt", ".cpp", ".h")
_LIBRARIES = ("numpy", "numba", "ai-edge-litert", "pillow")
"""Those that compute what outcomes tell."""


@cache
def program() -> str:
    """The version, a digest of the sources, RTL included, the chip, and versions of libraries."""
    packages = (darwinn_formats, darwinn_sim, darwinn_reference, darwinn_rtl)
    folders = [Path(str(each.__file__)).parent for each in packages]
    folders += [Path(__file__).parents[1], source_folder()]
    libraries = " ".join(map(version_of, _LIBRARIES))
    sources = digest_of_sources(folders, _SUFFIXES)
    return f"{__version__} {sources} {libraries} {dict(chip.constants())}"
