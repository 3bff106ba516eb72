"""Where code has read and written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from darwinn_reference.iree.compiled.layout import Access


@dataclass(frozen=True, slots=True)
class Touched:
    """Bytes of memory by their addresses, and the type of element that was read or stored."""

    start: int
    stop: int
    stores: bool
    element: str


class Ranges:
    """Addresses from the first to the last that were accessed, of each kind of access of a
    function, over all of its calls.
    """

    def __init__(self) -> None:
        self._found: dict[Access, tuple[int, int]] = {}

    def clear(self) -> None:
        """Forget what was there."""
        self._found.clear()

    def add(self, access: Access, start: int, stop: int) -> None:
        """Take further accesses in; a ``stop`` of 0 says that there were none."""
        if stop:
            first, last = self._found.get(access, (start, stop))
            self._found[access] = (min(first, start), max(last, stop))

    def within(self, start: int, stop: int) -> Iterator[Touched]:
        """What was accessed of a memory, reads before stores."""
        for access, (first, last) in sorted(self._found.items(), key=lambda item: item[0].stores):
            if start <= first and last <= stop:
                yield Touched(first, last, access.stores, access.element)
