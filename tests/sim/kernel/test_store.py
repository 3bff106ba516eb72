"""Compiled kernels on disk: nothing is loaded that is damaged, or that another user may have put
there; the kernel is compiled again, with one line that says so, and never beside the sources."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

import darwinn_sim
import pytest
from darwinn_sim.kernel import compiling, pruning, store
from forks import Forks

LOADED = """
import numba
numba.njit(lambda: 0)()
"""
CALL = """
import numba
numba.config.reload_config()
from darwinn_sim.kernel.compiling import announced
from darwinn_sim.kernel.sync import reached
with announced(lambda: print("compiling")):
    print(reached(1, 1))
"""
SOMEBODY = 54321

Edit = Callable[[Path], object]


class Call(Protocol):
    """What a process that calls a kernel prints, and what it says on standard error."""

    def __call__(self, folder: Path, **variables: str) -> tuple[list[str], list[str]]: ...


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    with Forks(LOADED, tmp_path_factory.mktemp("printed")) as forks:

        def call(folder: Path, **variables: str) -> tuple[list[str], list[str]]:
            done = forks.run(CALL, variables={"NUMBA_CACHE_DIR": str(folder), **variables})
            assert done.returncode == 0, done.stderr
            return done.stdout.split(), done.stderr.splitlines()

        yield call


@pytest.fixture(scope="module")
def compiled_once(call: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with a kernel in it, which is found."""
    folder = tmp_path_factory.mktemp("compiled") / "cache"
    assert call(folder) == (["compiling", "True"], [])
    assert call(folder) == (["True"], [])
    return folder


@pytest.fixture
def stored(compiled_once: Path, tmp_path: Path) -> Path:
    """A copy of that cache, for one test to change."""
    return Path(shutil.copytree(compiled_once, tmp_path / "cache"))


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


class Planted:
    """A pickle that creates a file when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.mark),)


def plant(path: Path) -> None:
    path.write_bytes(pickle.dumps(Planted(path.parent / "mark")))


def replace_by_link(path: Path) -> None:
    path.symlink_to(path.rename(path.with_name("other")))


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (flip, "damaged"),
        (cut, "damaged"),
        (plant, "damaged"),
        (lambda path: path.chmod(0o622), "other users may write it"),
        (replace_by_link, "symbolic links"),
        (replace_by_pipe, "no regular file"),
    ],
)
def test_what_cannot_be_trusted_is_compiled_again_with_one_line(
    call: Call, stored: Path, edit: Edit, why: str
) -> None:
    for path in files(stored):
        edit(path)
    printed, said = call(stored)
    assert printed == ["compiling", "True"]
    assert len(said) == 1
    assert why in said[0]
    assert "compiled again" in said[0]
    assert not list(stored.rglob("mark"))
    assert call(stored) == (["True"], [])


def test_a_kernel_does_not_stand_for_another(call: Call, stored: Path) -> None:
    (path,) = files(stored)
    assert call(stored, NUMBA_BOUNDSCHECK="1") == (["compiling", "True"], [])
    (other,) = set(files(stored)) - {path}
    other.replace(path)
    printed, (said,) = call(stored)
    assert printed == ["compiling", "True"]
    assert "damaged" in said


def test_a_folder_that_others_may_write_is_not_used(call: Call, stored: Path) -> None:
    """Neither is anything stored there."""
    (path,) = files(stored)
    before = path.stat()
    path.parent.chmod(0o777)
    for _ in range(2):
        printed, (said,) = call(stored)
        assert printed == ["compiling", "True"]
        assert f"{path.parent}: other users may write it" in said
    assert files(stored) == [path]
    assert (path.stat().st_ino, path.stat().st_mtime) == (before.st_ino, before.st_mtime)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("whole_folder", [False, True])
def test_what_another_user_owns_is_not_loaded(
    call: Call, stored: Path, *, whole_folder: bool
) -> None:
    (path,) = files(stored)
    os.chown(path.parent if whole_folder else path, SOMEBODY, SOMEBODY)
    printed, (said,) = call(stored)
    assert printed == ["compiling", "True"]
    assert f"belongs to another user ({SOMEBODY})" in said


def test_nothing_is_written_into_the_installation(call: Call, tmp_path: Path) -> None:
    """The folder cannot be made, not even by root: its parent is a file."""
    (tmp_path / "file").write_text("")
    installation = Path(darwinn_sim.__file__).parent

    def compiled() -> set[Path]:
        return {path for path in files(installation) if path.suffix not in (".py", ".pyc")}

    before = compiled()
    printed, (said,) = call(tmp_path / "file")
    assert printed == ["compiling", "True"]
    assert "Not a directory" in said
    assert compiled() == before


def test_what_is_stored_is_for_this_user_alone(compiled_once: Path) -> None:
    (path,) = files(compiled_once)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_without_compilation_nothing_is_kept(call: Call, tmp_path: Path) -> None:
    assert call(tmp_path / "cache", NUMBA_DISABLE_JIT="1") == (["True"], [])
    assert not files(tmp_path)


def test_a_full_folder_is_named(call: Call, tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "none", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        printed, said = call(tmp_path / "cache")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert printed == ["compiling", "True"]
    assert len(said) == 1
    assert said[0].startswith(f"kernel cache: {tmp_path / 'cache'}/")
    assert said[0].endswith(": No space left on device; kernels are compiled again")


def test_what_is_unused_goes_where_a_kernel_is_stored(call: Call, stored: Path) -> None:
    (used,) = {path.parent for path in files(stored)}
    old = stored / "0123456789abcdef"
    old.mkdir()
    (old / f"sync.reached.{0:032x}").write_bytes(pruning.MAGIC + b"unused")
    os.utime(old, (0, 0))
    os.utime(used, (0, 0))
    assert call(stored) == (["True"], []), "loading removes nothing"
    assert old.exists()
    assert used.stat().st_mtime > 0, "but is noted"
    for path in files(used):
        path.unlink()
    assert call(stored) == (["compiling", "True"], [])
    assert not old.exists()
    assert files(used)


def test_a_kernel_that_begins_within_another_is_one_more_and_ends_with_it() -> None:
    told: list[int | None] = []
    listener = compiling._Listener(told.append)
    for _ in range(2):
        listener.on_start(None)
        listener.on_start(None)
        listener.on_end(None)
        assert None not in told[-2:]
        listener.on_end(None)
    assert told == [0, 1, None, 2, 3, None]


@pytest.mark.parametrize(
    ("is_folder", "holds_addresses", "saved", "refused"),
    [(True, False, 1, 0), (False, False, 0, 1), (True, True, 0, 0), (False, True, 0, 0)],
)
def test_what_is_stored_and_what_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_folder: bool,
    holds_addresses: bool,
    saved: int,
    refused: int,
) -> None:
    """A kernel that holds addresses of this process is neither: it is not tried."""
    for name in ("saved", "refused"):
        monkeypatch.setattr(store, name, [])
    monkeypatch.setattr(store.KernelStore, "_warned", False)
    folder = tmp_path / "cache" / "key"
    if not is_folder:
        (tmp_path / "cache").write_text("a file")
    kernel = SimpleNamespace(
        library=SimpleNamespace(has_dynamic_globals=holds_addresses),
        codegen=SimpleNamespace(magic_tuple=lambda: ("triple", "processor", "features")),
        _reduce=lambda: ("machine code", "names", "types", (), ()),
        _find_referenced_environments=list,
    )
    kept = store.KernelStore(test_what_is_stored_and_what_is_refused, folder)
    kept.save_overload(("int64",), kernel)
    assert (len(store.saved), len(store.refused)) == (saved, refused)
    assert len(files(tmp_path / "cache")) == saved


def test_of_what_a_kernel_calls_only_constants_are_kept(tmp_path: Path) -> None:
    """And nothing that only tells people of it."""
    used, unused = SimpleNamespace(consts=["text"]), SimpleNamespace(consts=[])
    kernel = SimpleNamespace(
        _reduce=lambda: ("machine code", "names", "types", (), (unused, used, unused))
    )
    kept = store.KernelStore(test_of_what_a_kernel_calls_only_constants_are_kept, tmp_path)
    assert kept._reduced(kernel) == ("machine code", "names", "", (), (used,))
