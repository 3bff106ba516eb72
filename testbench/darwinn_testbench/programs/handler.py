"""What a format of programs brings: the one shape of the modules that know one each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TextIO, TypeVar

from darwinn_formats.files import Source
from darwinn_reference.protocol import Port, Reference

from darwinn_testbench.request.inputs import Natives
from darwinn_testbench.request.records import PLAIN_HOST
from darwinn_testbench.request.records import HostOptions as HostOptions

LoadedT = TypeVar("LoadedT")


class MlirForm(StrEnum):
    """How a program is printed as MLIR."""

    PLAIN = "plain"
    """As the original's tools print it."""
    LOCATIONS = "locations"
    """With the place of each operation."""
    GENERIC = "generic"
    """Every operation in its generic form."""
    EXACT = "exact"
    """So that converting the text gives the same bytes."""


REGION = "(region)"
"""How functions within kernels are called, which have no names."""


@dataclass(frozen=True)
class Opening:
    """How a program is to be opened: the function that will be called, native functions, where
    what it prints goes, and what is said of the host of a BEF file."""

    function: str | None = None
    natives: Natives | None = None
    output: TextIO | None = None
    host: HostOptions = PLAIN_HOST


Suite = Callable[[Source, Opening, TextIO], int]
"""Runs all functions of a file as a test; see :class:`Handler`."""


@dataclass(frozen=True)
class FunctionFigures:
    """A function of a program: ``inputs`` and ``outputs`` as text, and number of instructions.

    Of a native one the file has only the name.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    instructions: int
    native: bool = False


@dataclass(frozen=True)
class Handler(Generic[LoadedT]):
    """How programs of a format are read, shown and executed; ``LoadedT`` is a loaded file.

    Attributes:
        load: reads and checks a file.
        describe: what is in a loaded file, as JSON values.
        listing: lines of the program of a loaded file; those of a part are indented.
        functions: what can be called in a loaded file.
        mlir: text of a loaded file as MLIR; None where programs have none.
        open: the CPU reference of a file.
        suite: runs every function of a loaded file as a test, prints as the original does, gives
            the exit status and writes what was not expected to the last argument; None where
            programs are no tests.
        only_suite: whether a file can be nothing but a test, which need not even load.
        has_host: whether programs have a host that ``Opening.host`` speaks of.
        with_data: the same for programs whose data is in further files; None where there are none.
        original: the original runtime of a file; None if there is none to be installed.
        sketch: opens a file so that what is not there does nothing; None where nothing can be
            missing.
        missing: why the original runtime cannot be used, or nothing.
    """

    load: Callable[[Source], LoadedT]
    describe: Callable[[LoadedT], dict[str, Any]]
    listing: Callable[[LoadedT], Iterable[str]]
    functions: Callable[[LoadedT], Iterable[FunctionFigures]]
    open: Callable[[Source, Opening], Reference]
    mlir: Callable[[LoadedT, MlirForm], str] | None = None
    suite: Suite | None = None
    only_suite: Callable[[Source], bool] = lambda _: False
    has_host: bool = False
    with_data: Callable[[Sequence[Source]], Handler[LoadedT]] | None = None
    original: Callable[[Source], Reference] | None = None
    missing: Callable[[], str | None] = lambda: None
    sketch: Callable[[Source, Opening], Reference] | None = None


def texts(ports: Sequence[Port]) -> tuple[str, ...]:
    """Inputs or outputs as a function's figures have them."""
    return tuple(map(str, ports))
