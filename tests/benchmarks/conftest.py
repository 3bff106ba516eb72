"""What tests of benches share: a call of one, and a corpus that nobody reads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest

Call = Callable[..., int]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """``main`` of a bench, with words of a command line; its exit code."""

    def called(name: str, *words: object) -> int:
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        try:
            return cast(int, import_module(f"benchmarks.{name}").main())
        except SystemExit as end:
            assert isinstance(end.code, int)
            return end.code

    return called


@pytest.fixture
def small_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of one model, which nobody reads."""
    for name in ("darwinn/tiny_edgetpu.tflite", "tflite/tiny.tflite"):
        path = tmp_path / name
        path.parent.mkdir()
        path.touch()
    monkeypatch.setenv("DARWINN_CORPUS", str(tmp_path))
    for name in ("DARWINN_WILD", "DARWINN_WILD2"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
