"""The cache of RTL builds: what goes, what stays, and what other processes notice of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from darwinn_rtl import build_folders
from darwinn_rtl.build_folders import BUILD_VARIABLE, hold, locked, prune_builds

DAY = 86_400

HOLDER = """
import sys
from pathlib import Path
from darwinn_rtl.build_folders import hold, locked
folder = Path(sys.argv[1])
with locked(folder):
    hold(folder)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(BUILD_VARIABLE, str(tmp_path))
    monkeypatch.setattr(build_folders, "_holds", {})
    return tmp_path


def build(root: Path, number: int, days: float, size: int = 1000) -> Path:
    """A build that was used so many days ago."""
    folder = root / f"library-chip_player-{number:012x}"
    (folder / "verilated").mkdir(parents=True)
    (folder / "verilated" / "Vtop.o").write_bytes(bytes(size))
    (folder / ".lock").touch()
    aged(folder, days)
    return folder


def aged(folder: Path, days: float) -> None:
    for each in folder.glob(".*"):
        os.utime(each, (time.time() - days * DAY,) * 2)


def test_unused_builds_go(root: Path) -> None:
    old, young = build(root, 1, 15), build(root, 2, 13)
    pruned = prune_builds()
    assert (old.exists(), young.exists()) == (False, True)
    assert [each.path for each in pruned.kept] == [young]
    assert (pruned.removed_bytes, pruned.kept_bytes) == (1000, 1000)
    assert list(root.iterdir()) == [young]


def test_beyond_the_bound_the_longest_unused_go(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_folders, "MOST_BYTES", 2500)
    days = (0.2, 9, 0.5, 3, 0.8, 2)
    builds = [build(root, number, age) for number, age in enumerate(days)]
    prune_builds()
    # Three of this day are 3,000 bytes already, and stay.
    assert [each.exists() for each in builds] == [age < 1 for age in days]


@pytest.mark.parametrize("name", ["mutated", "library-chip_player-1", "own-design"])
def test_other_folders_stay(root: Path, name: str) -> None:
    build(root, 1, 90).rename(root / name)
    unlocked = build(root, 2, 90)
    (unlocked / ".lock").unlink()
    linked = root / f"tile-{3:012x}"
    linked.symlink_to(root / name)
    assert prune_builds().removed_bytes == 0
    assert set(root.iterdir()) == {root / name, unlocked, linked}


def test_a_build_that_a_process_uses_stays_until_it_ends(root: Path) -> None:
    folder = build(root, 1, 90)
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        aged(folder, 90)
        assert prune_builds().removed_bytes == 0
        assert folder.exists()
        holder.communicate()
    assert prune_builds().removed_bytes == 1000


def test_a_build_of_this_process_stays(root: Path) -> None:
    folder = build(root, 1, 90)
    with locked(folder):
        assert prune_builds().removed_bytes == 0, "it is being built"
        hold(folder)
    assert time.time() - (folder / ".held").stat().st_mtime < DAY, "its use is noted"
    aged(folder, 90)
    assert prune_builds().removed_bytes == 0


def test_who_waits_for_a_build_that_goes_makes_it_anew(root: Path) -> None:
    folder = build(root, 1, 90)
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with locked(folder):
        waiting = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        path = f"/proc/{waiting.pid}/fd"
        for _ in range(600):
            if any(os.path.realpath(each) == str(folder / ".lock") for each in os.scandir(path)):
                break
            time.sleep(0.05)
        else:
            pytest.fail("it does not wait")
        folder.rename(root / f".{folder.name}.1")
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == b"held\n"
    assert {each.name for each in folder.iterdir()} == {".lock", ".held"}
    waiting.communicate()


def test_what_a_removal_has_left_goes_with_the_next(root: Path) -> None:
    left = build(root, 1, 0).rename(root / f".library-chip_player-{1:012x}.77")
    prune_builds()
    assert not left.exists()
