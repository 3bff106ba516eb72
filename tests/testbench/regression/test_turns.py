"""Turns at the cores."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from darwinn_testbench.regression import turns
from darwinn_testbench.regression.turns import turn

HOLDER = """
import sys, time
from pathlib import Path
from darwinn_testbench.regression.turns import turn
with turn(Path(sys.argv[1])) as own:
    print(own, flush=True)
    time.sleep(300)
"""


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    return tmp_path / "turns"


def test_as_many_have_a_turn_as_there_are_cores(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.02)
    with ExitStack() as held:
        for _ in os.sched_getaffinity(0):
            assert held.enter_context(turn(locks))
        with turn(locks) as own:
            assert not own
    with turn(locks) as own:
        assert own


def test_the_next_one_goes_on_when_a_turn_ends(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    order: list[str] = []

    def wait() -> None:
        with turn(locks) as own:
            order.append(f"second: {own}")

    other = threading.Thread(target=wait)
    with turn(locks):
        other.start()
        time.sleep(0.05)
        order.append("first")
    other.join()
    assert order == ["first", "second: True"]


def test_processes_of_other_cores_do_not_wait(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.02)
    with ExitStack() as held:
        for core in (0, 1):
            monkeypatch.setattr(os, "sched_getaffinity", lambda _, core=core: {core})
            assert held.enter_context(turn(locks))
            with turn(locks) as own:
                assert not own


def test_a_kill_ends_a_turn(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = min(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {core})
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.02)
    with subprocess.Popen(
        ["taskset", "-c", str(core), sys.executable, "-c", HOLDER, str(locks)],
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        with turn(locks) as own:
            assert not own
        holder.kill()
    with turn(locks) as own:
        assert own


def test_without_a_folder_of_its_own_it_does_not_wait(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    with turn(link) as own:
        assert not own
    assert not list(target.iterdir())
