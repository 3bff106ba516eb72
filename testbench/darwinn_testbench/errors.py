"""What can be wrong with arguments and policies, and a process that was ended; one class each.

Errors of files and of running programs are in ``darwinn_formats.errors``, those of references in
``darwinn_reference.errors``.
"""

from __future__ import annotations

from collections.abc import Collection

from darwinn_formats import errors


class InputError(Exception):
    """An argument that cannot be used; the message says which, why, and what would do."""


class PolicyError(ValueError):
    """A policy that cannot be read, or that does not apply to the outputs it was declared for."""


class ProcessEnded(errors.ExecutionError):
    """A process that worked on a file was ended by a signal; the message names it."""


def unknown(word: str, known: Collection[str]) -> str:
    """Say that a key is not known, and which one is meant, or which ones there are."""
    # Imported here: every command loads this module, and few meet such a key.
    from difflib import get_close_matches

    like = get_close_matches(word, known, 1)
    advice = f"is `{like[0]}` meant?" if like else f"there are {', '.join(known)}"
    return f"unknown key `{word}`: {advice}"
