"""What measurements have in common: options, real models, processes of their own, the machine."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, ParamSpec, TypeVar

from darwinn_rtl import toolchain
from darwinn_testbench.report.files import write_result

MIB = 1 << 20

STARTS = 4
"""How often what goes beyond its bound is measured, each time in processes of their own, of which
the best counts: two that do the same differ by up to a quarter for as long as they live, since
their memory lies otherwise in the caches. What a change costs remains in every start."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


def refuse(reason: str) -> NoReturn:
    """Say in one line why nothing can be measured, and exit with 2: 1 is of what was measured."""
    print(reason, file=sys.stderr)
    sys.exit(2)


def positive(text: str) -> int:
    """What an option says how many there are of: 1 or more."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def existing_file(text: str) -> Path:
    """A file that is there."""
    if not (path := Path(text)).is_file():
        raise argparse.ArgumentTypeError(f"no file {text}")
    return path


def with_word(word: str, things: Iterable[_T], name: Callable[[_T], str] = str) -> list[_T]:
    """Those with ``word`` in their names; exits with 2, and says which there are, where none has.

    A measurement of nothing would keep every bound.
    """
    among = list(things)
    if found := [each for each in among if word in name(each)]:
        return found
    refuse(f"none is called {word!r}; there are: {', '.join(map(name, among)) or 'none at all'}")


def parser(description: str | None) -> argparse.ArgumentParser:
    """Options of a measurement that is repeated: the best of N counts."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--repeat", type=positive, default=5, metavar="N", help="the best of N counts (%(default)s)"
    )
    return options


REAL_MODELS = ("DARWINN_CORPUS", "DARWINN_WILD", "DARWINN_WILD2")
"""Variables that name folders of real models; those of strangers may be absent."""


def real_folders() -> list[Path]:
    """The folders of real models that are set."""
    return [Path(folder) for name in REAL_MODELS if (folder := os.environ.get(name))]


def corpus(folder: str) -> Path:
    """A folder of the corpus; exits with 2 where there is none."""
    root = os.environ.get("DARWINN_CORPUS")
    if not root:
        refuse("DARWINN_CORPUS is not set: there are no real models to measure")
    return Path(root) / folder


def compiled(name: str) -> Path:
    """A compiled model of the corpus."""
    return corpus("darwinn") / f"{name}_edgetpu.tflite"


def model_file(name: str) -> Path:
    """A file, or a compiled model of the corpus by its name; exits with 2 where it is neither."""
    path = Path(name) if Path(name).exists() else compiled(name)
    if not path.exists():
        refuse(f"no model {name}: neither a file, nor {path}")
    return path


def require_rtl_toolchain() -> None:
    """Exit with 2, and say what to install, where the RTL cannot be built."""
    missing = toolchain.missing()
    if missing:
        refuse("no RTL toolchain: " + "; ".join(missing))


def seconds_of(action: Callable[[], object], repeat: int) -> list[float]:
    """How long each of ``repeat`` calls takes."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return times


def alone(function: Callable[_P, _R], *arguments: _P.args, **named: _P.kwargs) -> _R:
    """Call a function in a process of its own, so that its peak memory is its own."""
    # Spawned, not forked: a child must not inherit this process's memory as its peak.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments, named)


def peak_bytes() -> int:
    """The most memory that this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write_page(target: str | os.PathLike[str], page: bytes) -> None:
    """Write a page, and say where it is."""
    write_result(target, page)
    if os.fspath(target) != "-":
        print(f"{os.fspath(target)} is written: {len(page):,} bytes")


def commit() -> str:
    """The commit that is looked at, or nothing where Git does not say."""
    with suppress(OSError):
        asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
        return said.stdout.strip()
    return ""


def machine() -> str:
    """Name of the machine: processor model, cores, memory, Python."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = (line.partition(":") for line in info.read_text().splitlines())
        model = next((value.strip() for key, _, value in lines if "model name" in key), model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}"


def machine_and_load() -> str:
    """Name of the machine, and how busy it was before.

    For figures by the clock or of all cores: they say nothing of a machine that does something
    else. Processes that want a core, averaged over 1, 5 and 15 minutes, should be near 0.
    """
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{machine()}; load before: {load}"
