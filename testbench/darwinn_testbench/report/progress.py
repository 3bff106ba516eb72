"""How library functions tell a caller how far they are."""

from __future__ import annotations

from typing import Protocol


class ProgressCallback(Protocol):
    """Called at each step of long work."""

    def __call__(self, description: str, done: int, total: int | None) -> None:
        """``description`` is what begins now; ``done`` of ``total`` steps lie behind."""


class _Silent:
    """The callback for callers that need no progress; help shows its name."""

    def __call__(self, description: str, done: int, total: int | None) -> None:
        """Say nothing."""

    def __repr__(self) -> str:
        return "silent"


silent = _Silent()
