"""Kernels that an installation brings: used where the user has none, on processors they are for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_sim.kernel import store
from llvmlite import binding

CALL = """
import sys
from pathlib import Path
from darwinn_sim.kernel import store
store.INSTALLED = Path(sys.argv[1])
exec(sys.argv[2])
from darwinn_sim.kernel.compiling import announced
from darwinn_sim.kernel.sync import reached
with announced(lambda: print("compiling")):
    print(reached(1, 1))
print(*store.loaded)
"""
PORTABLE = {"NUMBA_CPU_NAME": store.PORTABLE, "NUMBA_CPU_FEATURES": ""}

pytestmark = pytest.mark.skipif(
    not all(binding.get_host_cpu_features().get(each, False) for each in store._NEEDED),
    reason=f"this processor is none of {store.PORTABLE}",
)


def call(
    installed: Path, cache: Path, before: str = "", **variables: str
) -> tuple[list[str], list[str]]:
    """What a process that calls a kernel prints, and what it says on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(installed), before],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel as installations have it."""
    cache, target = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("built")
    assert call(target, cache, **PORTABLE) == (["compiling", "True"], [])
    (stored,) = (path for path in cache.rglob("*") if path.is_file())
    # Kernels of one state of the sources go into one folder, and may be there from a build before.
    for _ in range(2):
        assert store.install(stored, target) == the_file(target).stat().st_size
    return target


@pytest.fixture
def installed(built: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    file = the_file(built)
    copy = tmp_path / "installed" / file.relative_to(built)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(file.read_bytes())
    return tmp_path / "installed"


def the_file(folder: Path) -> Path:
    (file,) = (path for path in folder.rglob("*") if path.is_file())
    return file


def test_nothing_is_compiled_and_nothing_stored(installed: Path, tmp_path: Path) -> None:
    used = str(the_file(installed))
    for _ in range(2):
        assert call(installed, tmp_path / "cache") == (["True", used], [])
    assert not (tmp_path / "cache").exists()


def test_kernels_for_this_processor_come_first(installed: Path, tmp_path: Path) -> None:
    own = "store.use_installed = False"
    cache = tmp_path / "cache"
    assert call(installed, cache, own) == (["compiling", "True"], [])
    assert call(installed, cache) == (["True", str(the_file(cache))], [])


def test_it_is_part_of_the_installation_whoever_owns_it(installed: Path, tmp_path: Path) -> None:
    """As the sources beside it are, which are executed whatever their mode."""
    file = the_file(installed)
    file.chmod(0o664)
    file.parent.chmod(0o775)
    if os.geteuid() == 0:
        os.chown(file, 54321, 54321)
    assert call(installed, tmp_path / "cache") == (["True", str(file)], [])


def test_a_damaged_one_is_compiled_with_one_line(installed: Path, tmp_path: Path) -> None:
    file = the_file(installed)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    printed, (said,) = call(installed, tmp_path / "cache")
    assert printed == ["compiling", "True"]
    assert said == f"kernel cache: {file}: damaged; kernels are compiled again"


@pytest.mark.parametrize(
    "otherwise",
    ["store._NEEDED = ('avx9',)", "store.PORTABLE = 'x86-64-v4'", "store.use_installed = False"],
)
def test_it_is_not_for_this_processor(installed: Path, tmp_path: Path, otherwise: str) -> None:
    assert call(installed, tmp_path / "cache", otherwise) == (["compiling", "True"], [])


def test_other_settings_have_other_kernels(installed: Path, tmp_path: Path) -> None:
    printed = call(installed, tmp_path / "cache", NUMBA_BOUNDSCHECK="1")
    assert printed == (["compiling", "True"], [])
