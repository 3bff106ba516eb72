"""What a format of programs brings: the one shape of the modules that know one each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Generic, TextIO, TypeVar

from darwinn_formats.files import Source

from darwinn_testbench.reference.protocol import Port, Reference

LoadedT = TypeVar("LoadedT")

Natives = Mapping[str, Callable[..., Any]]
"""Native functions of a BEF file, or imports of an IREE module, by name (``TfrtReference``,
``IreeReference``)."""

_HEAD_BYTES = 1 << 18
"""How much of a file says what it is: a zip archive has names before the module."""


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
class HostOptions:
    """What the command line of TFRT's executor says besides the file.

    Attributes:
        work_queue: as there: ``s``, or ``mstd`` with threads and blocking threads (``mstd:8,64``).
        init_function: runs before any other.
        error_codes: errors show their code.
    """

    work_queue: str | None = None
    init_function: str | None = None
    error_codes: bool = False

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return self != PLAIN_HOST


PLAIN_HOST: Final = HostOptions()
"""A host of which nothing is said."""


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


def texts(ports: Sequence[Port]) -> tuple[str, ...]:
    """Inputs or outputs as a function's figures have them."""
    return tuple(map(str, ports))


def head_of(source: Source) -> bytes:
    """The first bytes; none of what is no regular file, since that can be read only once."""
    if isinstance(source, bytes):
        return source[:_HEAD_BYTES]
    path = Path(source)
    if not path.is_file():
        return b""
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)
