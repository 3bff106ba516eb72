"""Completions in time: what a program tells the host is held back until it would be over.

A chip that computes gives its outputs when it has them. With a :class:`PredictedPace` they and the
interrupts of a program leave when the time has passed that is predicted for it, since it began:
not earlier than on the chip, and later where the model takes longer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from darwinn_sim.machine.lowering import LoweredProgram

MAX_HELD_BYTES = 1 << 24
"""Output bytes that are held back; when there are more, all of them leave."""

Predict = Callable[[LoweredProgram, int], float | None]
"""Seconds that a program takes of which so many chunks were taken; None: that cannot be said."""


@dataclass(slots=True)
class _Held:
    """What is done at ``due``; None: when the program is over."""

    act: Callable[[], None]
    size: int
    due: float | None = None


class Pace:
    """What a chip says of its programs, and by what it tells its host; this one holds nothing back.

    Calls come by whoever has the chip; those of :meth:`left` by any thread.
    """

    def clear(self) -> None:
        """Nothing is under way any more, as after a reset."""

    def begin(self) -> None:
        """A program begins."""

    def hold(self, act: Callable[[], None], size: int = 0) -> None:
        """Do this, which tells the host ``size`` bytes, when it is time."""
        act()

    def end(self, program: LoweredProgram, chunks: int) -> None:
        """The program is over, of which so many chunks were taken."""

    def let_go(self) -> None:
        """The program waits for the host, who may wait for what is held back."""

    def release(self) -> None:
        """Do what it is time for, in order."""

    def left(self) -> float | None:
        """Seconds until there is something to do; None: nothing is held back for a time."""
        return None


class PredictedPace(Pace):
    """Holds back what a chip tells its host; methods as of :class:`Pace`.

    Args:
        predict: what a program takes.
        told: after each program the seconds that it took here, and the predicted ones.
        now: a clock, in seconds.
    """

    def __init__(
        self,
        predict: Predict,
        told: Callable[[float, float | None], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._predict, self._told, self._now = predict, told, now
        self.clear()

    def clear(self) -> None:
        """As :class:`Pace`."""
        self._held: deque[_Held] = deque()
        self._begun = self._free = 0.0

    def begin(self) -> None:
        """As :class:`Pace`."""
        self._begun = self._now()

    def hold(self, act: Callable[[], None], size: int = 0) -> None:
        """As :class:`Pace`; too many bytes do not wait."""
        self._held.append(_Held(act, size))
        if sum(each.size for each in self._held) > MAX_HELD_BYTES:
            for each in self._held:
                each.due = self._now()
            self.release()

    def end(self, program: LoweredProgram, chunks: int) -> None:
        """As :class:`Pace`; on the chip it began when the one before was over there."""
        took = self._now() - self._begun
        seconds = self._predict(program, chunks)
        self._free = max(self._begun, self._free) + (seconds or 0.0)
        self._told(took, seconds)
        self._let_go(self._free)

    def let_go(self) -> None:
        """As :class:`Pace`."""
        self._let_go(self._now())

    def _let_go(self, due: float) -> None:
        for each in self._held:
            if each.due is None:
                each.due = due
        self.release()

    def release(self) -> None:
        """As :class:`Pace`."""
        while self._held:
            due = self._held[0].due
            if due is None or due > self._now():
                return
            self._held.popleft().act()

    def left(self) -> float | None:
        """As :class:`Pace`."""
        due = next((each.due for each in tuple(self._held)), None)
        return None if due is None else max(0.0, due - self._now())
