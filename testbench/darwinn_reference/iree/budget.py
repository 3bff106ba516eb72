"""What a call from outside may take, in all functions that it runs."""

from __future__ import annotations

from darwinn_formats.errors import ExecutionError
from darwinn_formats.limits import Clock

MAXIMUM_BLOCKS = 1 << 36
"""Blocks that a call from outside may run with its dispatches: what does not end is stopped, by
this or by the limit of seconds. A network of MobileNet's size takes 2e9."""

_TURN = 16
"""Blocks that are interpreted between two looks at the clock."""


class Budget:
    """What a call from outside may still take, in all machines that share it: ``blocks`` of
    ``maximum`` until it is asked again, and the time and memory of the context's limits.
    """

    __slots__ = ("_clock", "_left", "_maximum", "blocks")

    def __init__(self, maximum: int) -> None:
        self._clock = Clock()
        self.begin(maximum)

    def begin(self, maximum: int) -> None:
        """Another call from outside begins."""
        self._clock.restart()
        self._left = self._maximum = maximum
        self.blocks = 0

    @property
    def used(self) -> int:
        """Blocks that were run since the call began, where none is running."""
        return self._maximum - self._left - self.blocks

    def ask(self) -> None:
        """Let further blocks run; ExecutionError if the call has had enough."""
        self.blocks = self.take(_TURN)

    def take(self, wanted: int) -> int:
        """As many blocks as are wanted and left, at least one, for who gives back the rest.

        Raises:
            ExecutionError: the call has had enough.
        """
        self.look()
        if taken := self.grant(wanted):
            return taken
        raise ExecutionError("the call runs more blocks than it may")

    def grant(self, wanted: int) -> int:
        """As many blocks as are wanted and left, maybe none."""
        self.give(self.blocks)
        self.blocks = 0
        taken = min(wanted, self._left)
        self._left -= taken
        return taken

    def give(self, blocks: int) -> None:
        """Take back blocks that were not run."""
        self._left += blocks

    def look(self) -> None:
        """Look at the clock, also within a block: ExecutionError."""
        if passed := self._clock.passed():
            raise ExecutionError(f"the call has not ended after {passed}")
