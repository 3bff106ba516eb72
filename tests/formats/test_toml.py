"""TOML of unknown origin."""

from __future__ import annotations

import pytest
from darwinn_formats import toml


def test_a_document_is_what_it_says() -> None:
    text = b'a = "b"\n[c]\nd = [1, -9223372036854775808, 0.5, true, 2026-01-01]\n'
    document = toml.parse(text)
    assert document["a"] == "b"
    assert document["c"]["d"][:4] == [1, -(1 << 63), 0.5, True]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"a = 0x" + b"f" * 6000, "more than 64 bits"),
        (b"[[a]]\nb = [{c = 9223372036854775808}]", "more than 64 bits"),
        (b'a = ["b\\u0000"]', "NUL"),
        (b'"a\\u0000" = 1', "NUL"),
        (b"\xff", "utf-8"),
        (b"a = ", "Invalid value"),
        (b"a = " + b"[" * 100_000, "recursion"),
    ],
)
def test_what_is_no_toml_is_said(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        toml.parse(text)
