"""Generated lines in a page that is otherwise written by hand, between two marks."""

from __future__ import annotations

from collections.abc import Iterable


def replaced(text: str, marks: tuple[str, str], lines: Iterable[str], name: str) -> str:
    """A page with the lines between its marks replaced.

    Raises:
        ValueError: a mark is missing; the text says that there is no place for ``name``.
    """
    before, start, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not start or not end:
        raise ValueError(f"the document has no place for {name}")
    return "\n".join([f"{before}{start}", "", *lines, "", f"{end}{after}"])
