"""Lifted programs on disk: what is read gives what runs give, or nothing is read."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import Executable
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.kernel.private_files import write_whole
from darwinn_sim.lifting import kept as keeping
from darwinn_sim.lifting.kept import alone, keep, kept
from darwinn_sim.lifting.program import LiftedProgram, lift
from darwinn_testbench.compiler.network import random_convolution, random_dense
from lifted_runs import assert_same, ready

Edit = Callable[[Path], object]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are kept, however small they are."""
    monkeypatch.setattr(keeping, "CACHES", tmp_path / "cache")
    monkeypatch.setattr(keeping, "LEAST_PRODUCTS", 0)
    return tmp_path / "cache"


@pytest.fixture
def made(folder: Path) -> tuple[Accelerator, Executable, Path]:
    """A network that is lifted and kept, and the file of that."""
    accelerator, executable = ready(random_convolution(4, 6, 8, 20, 1), stands_alone=False)
    keep(executable, lift(accelerator, executable))
    (file,) = (path for path in folder.rglob("*") if path.is_file())
    return accelerator, executable, file


@pytest.mark.parametrize("stands_alone", [False, True])
def test_what_is_kept_gives_what_runs_give(stands_alone: bool) -> None:
    network = random_convolution(4, 6, 8, 20, 1)
    keep((lifted := ready(network, stands_alone))[1], lift(*lifted))
    accelerator, executable = ready(network, stands_alone)
    found = kept(accelerator, executable)
    assert found is not None
    assert_same(accelerator, executable, found, 3)
    assert_same(accelerator, executable, found, 4)


def test_room_for_values_is_not_kept(
    made: tuple[Accelerator, Executable, Path],
) -> None:
    accelerator, executable, file = made
    size, lifted = file.stat().st_size, lift(accelerator, executable)
    assert_same(accelerator, executable, lifted, 3)
    keep(executable, lifted)
    assert file.stat().st_size == size
    (only,) = file.parent.iterdir()
    assert only == file


def test_another_executable_is_another_program(
    made: tuple[Accelerator, Executable, Path],
) -> None:
    accelerator, executable, _ = made
    (layer,) = executable.output_layers
    for other in (
        replace(executable, output_layers=(replace(layer, name="other"),)),
        replace(executable, parameters=executable.parameters + bytes(1)),
        ready(random_dense([20, 10], 1), stands_alone=False)[1],
    ):
        assert kept(accelerator, other) is None
    assert kept(accelerator, executable) is not None


def test_a_chip_that_holds_something_else_makes_another_program(
    made: tuple[Accelerator, Executable, Path],
) -> None:
    """Other parameters, or other flags; what runs write themselves makes no difference."""
    accelerator, executable, _ = made
    found = kept(accelerator, executable)
    assert found is not None
    wide = accelerator.chip.tiles["wide"]
    stale = np.unpackbits(found.foundation.stale, count=wide.size).reshape(wide.shape)
    wide[stale == 1] ^= 1
    assert kept(accelerator, executable) is not None
    for word in np.argwhere(stale == 0)[[0, 12345, -1]]:
        wide[tuple(word)] ^= np.uint32(1 << 31)
        assert kept(accelerator, executable) is None
        wide[tuple(word)] ^= np.uint32(1 << 31)
    for name in ("flags", "fence_count", "wide_write_second"):
        accelerator.chip.tiles[name][chip.TILES - 1] += 1
        assert kept(accelerator, executable) is None
        accelerator.chip.tiles[name][chip.TILES - 1] -= 1
    accelerator.chip.core_array["flags"] += 1
    assert kept(accelerator, executable) is None
    accelerator.chip.core_array["flags"] -= 1
    assert kept(accelerator, executable) is not None


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (_flip, "damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:1000]), "damaged"),
        (lambda path: path.write_bytes(b""), "damaged"),
        (lambda path: write_whole(path, b"no pickle"), "UnpicklingError"),
        (lambda path: write_whole(path, b"cmodule_of_nobody\nname\n."), "ModuleNotFoundError"),
        (lambda path: path.chmod(0o620), "other users may write it"),
        (lambda path: path.parent.chmod(0o702), "other users may write it"),
        (lambda path: (path.unlink(), path.mkdir()), "Is a directory"),
    ],
    ids=["byte", "truncated", "empty", "no pickle", "module", "file", "folder", "directory"],
)
def test_what_cannot_be_trusted_is_not_read(
    made: tuple[Accelerator, Executable, Path],
    edit: Edit,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    accelerator, executable, file = made
    edit(file)
    assert kept(accelerator, executable) is None
    (said,) = caplog.messages
    assert reason in said and "lifted again" in said


def test_what_is_no_program_is_not_used(made: tuple[Accelerator, Executable, Path]) -> None:
    accelerator, executable, file = made
    write_whole(file, pickle.dumps("something else"))
    assert kept(accelerator, executable) is None


def test_where_nothing_can_be_kept_that_is_said(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    accelerator, executable = ready(random_dense([20, 10], 1), stands_alone=True)
    folder.write_text("a file")
    keep(executable, lift(accelerator, executable))
    (said,) = caplog.messages
    assert "it is not kept" in said and folder.read_text() == "a file"


def test_what_is_lifted_soon_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator, executable = ready(random_dense([20, 10], 1), stands_alone=True)
    lifted: LiftedProgram = lift(accelerator, executable)
    monkeypatch.setattr(keeping, "LEAST_PRODUCTS", lifted.products + 1)
    keep(executable, lifted)
    assert not folder.exists()
    monkeypatch.setattr(keeping, "LEAST_PRODUCTS", lifted.products)
    keep(executable, lifted)
    assert kept(accelerator, executable) is not None


def test_programs_of_another_state_of_the_sources_are_others(
    made: tuple[Accelerator, Executable, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    accelerator, executable, _ = made
    monkeypatch.setattr(keeping, "_versions", lambda: b"another")
    assert kept(accelerator, executable) is None


def test_one_at_a_time_lifts_a_program(folder: Path) -> None:
    executable, other = (
        ready(random_dense([20, 10], seed), stands_alone=True)[1] for seed in (1, 2)
    )
    for _ in range(2):
        with alone(executable) as first, alone(executable) as second, alone(other) as third:
            assert (first, second, third) == (True, False, True)
        with pytest.raises(RuntimeError), alone(executable) as first:
            assert first
            raise RuntimeError
    assert not list(folder.iterdir())


def test_a_process_that_is_gone_lifts_nothing(folder: Path) -> None:
    executable = ready(random_dense([20, 10], 1), stands_alone=True)[1]
    context = multiprocessing.get_context("fork")
    has_begun = context.Event()

    def lift_for_ever() -> None:
        with alone(executable):
            has_begun.set()
            time.sleep(600)

    process = context.Process(target=lift_for_ever)
    process.start()
    try:
        assert has_begun.wait(60)
        with alone(executable) as is_alone:
            assert not is_alone
    finally:
        process.kill()
        process.join()
    with alone(executable) as is_alone:
        assert is_alone


def test_a_process_that_was_forked_meanwhile_lifts_nothing(folder: Path) -> None:
    """It has all open files of the one that does, for as long as it lives."""
    executable = ready(random_dense([20, 10], 1), stands_alone=True)[1]
    folder.mkdir()
    with alone(executable):
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        process.start()
        # The folder stays, so that the lock is on the one that the child has open.
        (next(folder.iterdir()) / "kept").touch()
    try:
        with alone(executable) as is_alone:
            assert is_alone
    finally:
        process.kill()
        process.join()


def test_what_has_been_kept_stays_when_it_is_lifted_again(
    made: tuple[Accelerator, Executable, Path],
) -> None:
    _, executable, file = made
    with alone(executable) as is_alone:
        assert is_alone
    assert file.exists()


def test_where_nothing_can_be_kept_everybody_lifts(folder: Path) -> None:
    executable = ready(random_dense([20, 10], 1), stands_alone=True)[1]
    folder.write_text("a file")
    with alone(executable) as first, alone(executable) as second:
        assert first and second


def test_without_locks_everybody_lifts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    executable = ready(random_dense([20, 10], 1), stands_alone=True)[1]
    with alone(executable) as is_alone:
        assert is_alone
    assert "others may lift it as well" in caplog.text
    assert not list(folder.iterdir())
