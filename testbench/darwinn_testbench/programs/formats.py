"""Program files of other formats than DarwiNN: which one a file is, by content, and opening it.

What a format brings is loaded when there is a file of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TextIO

from darwinn_formats.errors import ExecutionError, Unavailable
from darwinn_formats.files import Source, name_of
from darwinn_formats.signatures import (
    Buffer,
    is_bef,
    is_executorch,
    is_executorch_data,
    is_iree,
    is_iree_parameters,
)
from darwinn_reference.protocol import Reference

from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.handler import Handler, Opening
from darwinn_testbench.request.inputs import Natives, head_of
from darwinn_testbench.request.records import PLAIN_HOST, HostOptions

_TEXT_START = re.compile(rb"(?:\s|//[^\n]*\n)*(?:module|func)\b[^\0]*\Z")
"""The text form of BEF: comments, then a module or a function."""


DEFAULT_FUNCTIONS = frozenset({"forward", "main"})
"""Functions that are called where none is chosen."""


@dataclass(frozen=True)
class Format:
    """A kind of program file.

    Attributes:
        name: as messages call it.
        looks_like: whether the first bytes of a file say that it is one.
        module: of this package, that knows the format.
        handler_name: what the module calls its handler.
        extra: of the package, that installs the original runtime.
        is_data: whether the first bytes of a file say that it is data of such programs.
        channels_last: how images are stored by convention; None: there is none.
    """

    name: str
    looks_like: Callable[[Buffer], bool]
    module: str
    handler_name: str = "HANDLER"
    extra: str = ""
    is_data: Callable[[Buffer], bool] = lambda _: False
    channels_last: bool | None = None

    @property
    def handler(self) -> Handler[Any]:
        """How files of the format are read, shown and executed."""
        module = import_module(f"darwinn_testbench.programs.{self.module}")
        handler: Handler[Any] = getattr(module, self.handler_name)
        return handler

    def handler_with(self, data: Sequence[Source]) -> Handler[Any]:
        """The handler of a program whose data is in further files.

        Raises:
            InputError: programs of the format have none.
        """
        handler = self.handler
        if not data:
            return handler
        if handler.with_data is None:
            raise InputError(
                f"{name_of(data[0])}: {self.name} programs have no data in further files: "
                "--with and --data are for DarwiNN, ExecuTorch and IREE files"
            )
        return handler.with_data(data)


FORMATS: tuple[Format, ...] = (
    Format(
        "ExecuTorch",
        is_executorch,
        "executorch",
        extra="executorch",
        is_data=is_executorch_data,
        channels_last=False,
    ),
    Format(
        "IREE",
        lambda head: is_iree(head) or is_iree_parameters(head),
        "iree",
        extra="iree",
        is_data=is_iree_parameters,
    ),
    Format("BEF", is_bef, "bef"),
    Format(
        "BEF as text",
        lambda head: _TEXT_START.match(head) is not None,
        "bef",
        "TEXT_HANDLER",
    ),
)


def format_of(source: Source) -> Format | None:
    """The format of a program file, by its content; None if it is none of them.

    Raises:
        OSError: the file cannot be read.
    """
    head = head_of(source)
    return next((entry for entry in FORMATS if entry.looks_like(head)), None)


def refuse_host(found: Format, source: Source, host: HostOptions) -> None:
    """InputError if options of TFRT's host are given for a program that has none."""
    if host and not found.handler.has_host:
        raise InputError(
            f"{name_of(source)}: --work-queue, --init-function and --error-codes are for BEF files"
        )


def open_program(
    source: Source,
    *,
    function: str | None = None,
    natives: Natives | None = None,
    data: Sequence[Source] = (),
    engine: Engine = Engine.MODEL,
    output: TextIO | None = None,
    host: HostOptions = PLAIN_HOST,
) -> Reference:
    """A program on the CPU: the project's reference of its format, or its original runtime.

    ``function`` is what will be called, where that matters for what the program needs; ``natives``
    are native functions of a BEF file or imports of an IREE module, and ``output`` takes what
    kernels print (by default standard error); ``host`` is what is said of the host of a BEF file,
    ``data`` are further files of the program. Machine code of an IREE module is
    executed by the original runtime, where that is installed.

    Raises:
        FormatError: the file is not valid.
        InputError: it is a program of none of the formats, or has no data elsewhere.
        Unsupported: it needs what the reference does not have; all of it is named.
        Unavailable: there is no original runtime, or it refuses the program.
        OSError: the file cannot be read.
    """
    found = format_of(source)
    if found is None:
        raise InputError(f"{name_of(source)}: no program of {', '.join(e.name for e in FORMATS)}")
    handler = found.handler_with(data)
    refuse_host(found, source, host)
    if engine is not Engine.ORIGINAL:
        return handler.open(source, Opening(function, natives, output or sys.stderr, host))
    if natives:
        raise InputError(f"{name_of(source)}: --natives are not for the original runtime")
    if handler.original is None:
        raise Unavailable(f"{name_of(source)}: {found.name} has no original runtime to install")
    reason = handler.missing()
    if reason:
        raise Unavailable(
            f"the original runtime of {found.name} is not installed: "
            f"pip install 'darwinn-testbench[{found.extra}]'"
        )
    try:
        return handler.original(source)
    except ExecutionError as error:
        raise Unavailable(f"{name_of(source)}: {error}") from error
