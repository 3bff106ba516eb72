"""A regression that uses the processors too little: which bound it does not keep is said."""

from __future__ import annotations

import compileall
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import regress

Call = Callable[..., int]


def test_a_bound_that_is_not_kept_is_named(
    call: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = regress.Run("2 processes", 10.0, 2, passed=True, tasks=60, each=0.187)
    replaced: dict[str, Any] = {
        "alone": lambda *_: (10, 0.1, 1),
        "manifest": lambda *_: Path(),
        "one_task": lambda _: slow.each,
        "runs": lambda *_: iter([slow]),
    }
    for name, function in replaced.items():
        monkeypatch.setattr(regress, name, function)
    monkeypatch.setattr(compileall, "compile_dir", lambda *_, **__: True)
    assert call("regress") == 1
    told = capsys.readouterr().out
    assert "load before: " in told.splitlines()[0]
    assert told.splitlines()[-1].endswith("efficiency 0.56 (bound 0.9)  BELOW")
    assert str(regress.Run("here", 1.0, 1, passed=True, tasks=10, each=0.095)).endswith(
        "(bound 0.9)"
    )
