"""The cache of kernels: what goes, what stays, and what other processes notice of it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from darwinn_sim.kernel import pruning
from darwinn_sim.kernel.pruning import MAGIC, prune, used
from hypothesis import given, settings
from hypothesis import strategies as st

DAY = 86_400


def state(cache: Path, number: int, days: float, size: int = 1000) -> Path:
    """A folder of kernels that was used so many days ago."""
    folder = cache / f"{number:016x}"
    folder.mkdir(parents=True)
    (folder / f"unit.kernel.{number:032x}").write_bytes(MAGIC + bytes(size - len(MAGIC)))
    then = time.time() - days * DAY
    os.utime(folder, (then, then))
    return folder


@settings(max_examples=40)
@given(
    ages=st.lists(st.integers(0, 60), max_size=8),
    sizes=st.lists(st.integers(17, 300), min_size=8, max_size=8),
)
def test_the_longest_unused_go(
    tmp_path_factory: pytest.TempPathFactory, ages: list[int], sizes: list[int]
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    # A little later than the hour, so that no age is at a bound.
    days = [age + 0.4 + 0.01 * number for number, age in enumerate(ages)]
    folders = [state(cache, number, day, sizes[number]) for number, day in enumerate(days)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "MOST_BYTES", 500)
        pruned = prune(cache)
    expected, total = set(), 0
    for number in sorted(range(len(ages)), key=lambda each: days[each]):
        fits = total + sizes[number] <= 500 or days[number] < 1
        if days[number] < pruning.KEPT_DAYS and fits:
            expected.add(folders[number])
            total += sizes[number]
    assert {path for path in folders if path.exists()} == expected
    assert {each.path for each in pruned.kept} == expected
    assert pruned.kept_bytes == total
    assert pruned.removed_bytes == sum(sizes[: len(ages)]) - total


def test_what_is_no_folder_of_kernels_stays(tmp_path: Path) -> None:
    other = state(tmp_path, 1, 90) / "notes"
    other.write_text("mine")
    os.utime(other.parent, (0, 0))
    native = tmp_path / "native"
    native.mkdir()
    os.utime(native, (0, 0))
    linked = tmp_path / f"{2:016x}"
    linked.symlink_to(native)
    (tmp_path / f"{3:016x}").write_text("a file")
    assert prune(tmp_path).removed_bytes == 0
    assert len(list(tmp_path.iterdir())) == 4
    assert other.exists()


NAMES = {
    "a name": "notes",
    "a file of its own with such a name": f"photo.{7:032x}",
    "a hidden file": ".env",
    "a hidden file with a name as of a temporary one": ".abcd1234",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_folder_with_anything_else_stays(tmp_path: Path, name: str) -> None:
    folder = state(tmp_path, 1, 90)
    (folder / name).write_text("mine")
    os.utime(folder, (0, 0))
    assert prune(tmp_path).removed_bytes == 0
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("name", [f"sub.{7:032x}", ".git", ".abcd1234"])
def test_folders_and_links_within_stay(tmp_path: Path, name: str) -> None:
    folder = state(tmp_path, 1, 90)
    (folder / name).mkdir()
    (folder / name / "thesis.txt").write_text("mine")
    linked = state(tmp_path, 2, 90)
    (linked / f"unit.kernel.{8:032x}").symlink_to(next(folder.glob("unit*")))
    empty = tmp_path / f"{3:016x}"
    empty.mkdir()
    for each in (folder, linked, empty):
        os.utime(each, (0, 0))
    assert prune(tmp_path).removed_bytes == 0
    assert (folder / name / "thesis.txt").exists()
    assert len(list(linked.iterdir())) == 2
    assert empty.exists()


def test_what_was_being_stored_goes_with_the_folder(tmp_path: Path) -> None:
    folder = state(tmp_path, 1, 90)
    (folder / ".abcd1234").write_bytes(MAGIC)
    (folder / ".efgh5678").write_bytes(b"")
    os.utime(folder, (0, 0))
    assert prune(tmp_path).removed_bytes > 0
    assert not folder.exists()
    assert prune(tmp_path / "none").kept == ()


def test_use_is_noted(tmp_path: Path) -> None:
    old, young = state(tmp_path, 1, 29), state(tmp_path, 2, 0.5)
    before = young.stat().st_mtime
    used(old)
    used(young)
    used(tmp_path / "not there")
    assert time.time() - old.stat().st_mtime < 3600
    assert young.stat().st_mtime == before


def test_others_may_prune_at_the_same_time(tmp_path: Path) -> None:
    for number in range(60):
        state(tmp_path, number, 40)
    keep = state(tmp_path, 99, 2)
    threads = [threading.Thread(target=prune, args=(tmp_path,)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    prune(tmp_path)
    assert list(tmp_path.iterdir()) == [keep]
