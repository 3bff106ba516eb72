"""The request of a verification."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from darwinn_formats.files import Source, name_of
from darwinn_reference.protocol import Reference

from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.report import Verdict
from darwinn_testbench.request.inputs import head_of
from darwinn_testbench.request.records import PLAIN_HOST, HostOptions, Verification
from darwinn_testbench.request.scope import Scope


@dataclass(frozen=True)
class Asked(Verification):
    """A :class:`Verification` that knows what its files are."""

    @cached_property
    def between_programs(self) -> bool:
        """As :func:`between_programs`, of this verification."""
        return between_programs(self.source, self.reference, self.expected)

    def refuse_unfit(self) -> None:
        """Refuse what does not apply to the files.

        Raises:
            InputError, Unavailable: something does not; it is named.
            OSError: a file cannot be read, or a result not be written.
        """
        beyond = [Scope.NETWORK] if self.between_programs else [Scope.PROGRAM]
        beyond += [] if format_of(self.source) is None else [Scope.CHIP]
        self.refuse(*beyond)
        sides = (self.source, self.reference)
        if self.external and not any(map(self.data_of, sides)):
            raise InputError(
                f"{name_of(self.external[0])}: data of a program, of whose format no side is"
            )
        if self.host and not any(map(self.host_of, sides)):
            raise InputError("--work-queue, --init-function and --error-codes are for BEF files")

    @property
    def uncompared(self) -> Verdict:
        """The verdict of what is compared with nothing."""
        return Verdict.NOT_COMPARED if self.require_reference else Verdict.RAN

    def host_of(self, side: Source | Reference | None) -> HostOptions:
        """The settings of the host for one of the sides; none if it has no host."""
        if not isinstance(side, bytes | str | os.PathLike):
            return PLAIN_HOST
        found = format_of(side)
        return self.host if found is not None and found.handler.has_host else PLAIN_HOST

    def data_of(self, side: Source | Reference | None) -> Sequence[Source]:
        """The data for one of the sides: the files that are of its format."""
        if not isinstance(side, bytes | str | os.PathLike):
            return ()
        found = format_of(side)
        if found is None:
            return ()
        return [file for file in self.external if found.is_data(head_of(file))]


def between_programs(
    source: Source,
    reference: Source | Reference | None = None,
    expected: str | os.PathLike[str] | None = None,
) -> bool:
    """Whether a side is a program of another format, or stored; else a network decides.

    Raises:
        OSError: a file cannot be read.
    """
    if expected or format_of(source) is not None:
        return True
    if isinstance(reference, bytes | str | os.PathLike):
        return format_of(reference) is not None
    return reference is not None
