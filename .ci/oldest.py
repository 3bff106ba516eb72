"""Prints the oldest versions that pyproject.toml allows, and tools of tests, as requirements."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_EXTRAS = ("pictures", "timeline", "litert", "usb", "cluster")
_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "coverage")

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
ranges = [*project["dependencies"], *(each for extra in _EXTRAS for each in extras[extra])]
tools = [each for each in extras["dev"] if each.split("==")[0] in _TOOLS]
print(*(re.sub(r">=([^,]+).*", r"==\1", each) for each in ranges), *tools, sep="\n")
