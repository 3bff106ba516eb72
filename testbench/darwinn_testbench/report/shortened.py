"""Long names in little room."""

from __future__ import annotations


def shortened(text: str, most: int) -> str:
    """``text`` in at most ``most`` characters: what is left out is left out in the middle.

    Names of tensors and files begin with what they share and end with what tells them apart.
    """
    if len(text) <= most:
        return text
    if most < 2:
        return "…"[:most]
    end = most // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"
