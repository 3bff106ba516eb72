"""What can be wrong with arguments and policies, and a process that was ended; one class each.

Errors of files and of running programs are in ``darwinn_formats.errors``, those of references in
``darwinn_reference.errors``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from darwinn_formats import errors

from darwinn_testbench.moved import finder_of_names

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)


class InputError(Exception):
    """An argument that cannot be used; the message says which, why, and what would do."""


class PolicyError(ValueError):
    """A policy that cannot be read, or that does not apply to the outputs it was declared for."""


class ProcessEnded(errors.ExecutionError):
    """A process that worked on a file was ended by a signal; the message names it."""
