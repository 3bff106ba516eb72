"""A copy of the project in which mutants are tried, each with a kernel cache of its own.

A mutant's cache begins with what is compiled of the project as it is. Where its source is part of
the key of the cache, kernels that cannot reach what is changed are entered under the new key, and
those that can are compiled again: no mutant is tried with another one's kernels, and none leaves
its own behind.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from darwinn_sim.kernel import compiled
from darwinn_sim.kernel.private_files import Unusable, read_whole, write_whole
from darwinn_testbench.confinement import Confinement, confine

from tests.mutation.forks import CANNOT, WALL_FACTOR
from tests.mutation.mutants import KERNEL_DECORATORS, Mutant

ROOT = Path(__file__).parents[2]
PACKAGES = ("formats", "sim", "testbench")
_UNSET = ("DARWINN_CORPUS", "DARWINN_WILD", "DARWINN_WILD2", "DARWINN_TRACES")
_KEEPS_KERNELS = tuple(
    f"sim/darwinn_sim/kernel/{name}.py"
    for name in ("compiled", "compiling", "private_files", "pruning", "store")
)
"""Their mutants may spoil the kernels that forks of a process share."""

_RUN_AT_IMPORT = """
import importlib, pathlib, pkgutil, sys
root, called = pathlib.Path.cwd(), set()
sys.setprofile(lambda frame, event, argument: called.add(frame.f_code))
import darwinn_formats.darwinn, darwinn_sim
for package in (darwinn_formats.darwinn, darwinn_sim):
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(each.name)
import darwinn_testbench.kernels
sys.setprofile(None)
for code in called:
    path = pathlib.Path(code.co_filename)
    if path.is_relative_to(root):
        print(f"{path.relative_to(root)}:{code.co_qualname.replace('.<locals>', '')}")
"""


class ToolError(Exception):
    """The tool cannot do what it is for; the text says why."""


@dataclass(frozen=True)
class Ran:
    """How a run of tests ended: exit ``code`` (negative: a signal), None if it did not end."""

    code: int | None
    output: str


class Tree:
    """The copy in ``folder``, with the kernels of the project as it is in folders of ``out``."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder = folder
        self._scratch = folder.parent
        self.warm = {optimised: out / name for optimised, name in _CACHES.items()}
        for cache_folder in self.warm.values():
            cache_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for name in filter(None, listed.decode().split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        self._own_keys = self.keys()
        for key in self._own_keys.values():
            self._take_over(compiled.CACHES / key)

    def _take_over(self, known: Path) -> None:
        """Kernels that this user has compiled of the same sources; they are checked when loaded."""
        warm = self.warm[True] / known.name
        for path in known.iterdir() if known.is_dir() else ():
            if path.is_file() and not (warm / path.name).exists():
                warm.mkdir(mode=0o700, exist_ok=True)
                shutil.copy2(path, warm / path.name)

    def control(self, tests: Sequence[str], *, optimised: bool = True) -> None:
        """Compile the kernels that these tests need, and see that they pass as the project is."""
        variables = _cache(self.warm[optimised], optimised)
        ran = self.pytest(["-x", *tests], variables, seconds=_CONTROL_SECONDS)
        if ran.code != 0:
            raise ToolError(f"tests fail although nothing is changed:\n{ran.output[-2000:]}")

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], *, seconds: int) -> Ran:
        """``python`` with these arguments in the copy; everything that it starts ends with it."""
        parent = os.getpid()
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.folder,
                env={**self._environment(), **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: confine(Confinement(seconds=seconds), parent=parent),
            )
            code: int | None
            try:
                code = process.wait(WALL_FACTOR * seconds)
                if code in (-signal.SIGXCPU, -signal.SIGKILL):
                    code = None
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            return Ran(code, output.read())

    def pytest(
        self, arguments: Sequence[str], variables: Mapping[str, str], *, seconds: int
    ) -> Ran:
        """Tests in the copy, one after the other."""
        return self.run(["-m", "pytest", *_OPTIONS, *arguments], variables, seconds=seconds)

    def forked(
        self,
        mutant: Mutant,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        *,
        seconds: int,
    ) -> Ran | None:
        """The same, of a mutant that the copy has, in a fork of a process that has loaded all of
        the simulator; None where that cannot be done (``forks.py``).
        """
        server = self._forking
        output = self._scratch / f"{self.folder.name}.output"
        request = {
            "file": str(self.folder / mutant.file),
            "arguments": [*_OPTIONS, *arguments],
            "variables": dict(variables),
            "output": str(output),
            "seconds": seconds,
        }
        assert server.stdin is not None
        print(json.dumps(request), file=server.stdin, flush=True)
        code = _answer(server)
        return None if code == CANNOT else Ran(code, output.read_text(errors="replace"))

    @cached_property
    def _forking(self) -> subprocess.Popen[str]:
        """A process of ``forks.py``, which has loaded the copy as it is, and ends with this one."""
        server = subprocess.Popen(
            # Kernels that nobody has compiled are left to the tests that need them.
            [sys.executable, "-m", "tests.mutation.forks", *["kernels"] * self._has_kernels()],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        _answer(server)
        return server

    def _has_kernels(self) -> bool:
        return any((self.warm[True] / key).is_dir() for key in self._own_keys.values())

    def _environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name not in _UNSET},
            **_cache(self.warm[True], optimised=True),
            "PYTHONPATH": os.pathsep.join(
                str(self.folder / each) for each in (*PACKAGES, "tests/support")
            ),
            "HYPOTHESIS_PROFILE": "mutation",
            "OPENBLAS_NUM_THREADS": "1",
        }

    @contextmanager
    def mutated(
        self, mutant: Mutant, source: bytes, *, optimised: bool = True
    ) -> Iterator[Mapping[str, str]]:
        """Within, the copy has the mutant; gives the variables with which to run it.

        Not ``optimised``, kernels are compiled in a seventh of the time, and take three times as
        long: enough for a few tests.
        """
        path = self.folder / mutant.file
        anything = self.compiles(mutant) and not mutant.kernel
        if self.forks(mutant):
            self._forking  # noqa: B018 - what it loads has no mutant
        with tempfile.TemporaryDirectory(prefix="kernels-", dir=self._scratch) as kernels:
            try:
                _write(path, mutant.apply(source))
                # A result of what is called at import may be in any kernel, as a constant.
                stale = None if anything else frozenset[str]()
                if mutant.kernel:
                    stale = reaching(self.folder, mutant.function)
                self._fill(Path(kernels), self.warm[optimised], stale)
                yield _cache(Path(kernels), optimised)
            finally:
                _write(path, source)

    @cached_property
    def run_at_import(self) -> frozenset[str]:
        """Files and names of the functions that are called when the simulator is loaded."""
        ran = self.run(["-c", _RUN_AT_IMPORT], {}, seconds=_CONTROL_SECONDS)
        if ran.code != 0:
            raise ToolError(f"the simulator cannot be loaded:\n{ran.output[-2000:]}")
        return frozenset(ran.output.splitlines())

    def forks(self, mutant: Mutant) -> bool:
        """Whether a mutant is tried in forks: not where what is loaded already has it."""
        return not self.compiles(mutant) and mutant.file not in _KEEPS_KERNELS

    def compiles(self, mutant: Mutant) -> bool:
        """Whether kernels have to be compiled for a mutant."""
        return mutant.kernel or f"{mutant.file}:{mutant.function}" in self.run_at_import

    def keys(self) -> dict[str, str]:
        """The key of the kernel cache for each package, as the copy is now."""
        root = self.folder / "sim" / "darwinn_sim"
        folders = [root, *(path.parent for path in root.glob("*/__init__.py"))]
        with _ROOT_LOCK, patch.object(compiled, "_ROOT", root):
            key_of = compiled._cache_folder.__wrapped__
            return {folder.name: key_of(folder).name for folder in folders}

    def _fill(self, kernels: Path, warm: Path, stale: frozenset[str] | None) -> None:
        """What is warm, and under changed keys what is not ``stale`` (None: everything may be)."""
        for folder in filter(Path.is_dir, warm.iterdir()):
            _link(folder, kernels / folder.name)
        for package, new in self.keys().items():
            old = self._own_keys[package]
            if new != old and stale is not None and (warm / old).is_dir():
                _enter(warm / old, kernels / new, stale)


_CACHES = {True: "kernels", False: "kernels-not-optimised"}
_ROOT_LOCK = threading.Lock()
_CONTROL_SECONDS = 3600
# Half of a short run is the loading of plugins, of which these tests use none.
_OPTIONS = ("-q", "-rfE", "--tb=line", "-p", "no:cacheprovider", "--disable-plugin-autoload")


def _cache(folder: Path, optimised: bool) -> dict[str, str]:
    return {"NUMBA_CACHE_DIR": str(folder), "NUMBA_OPT": "3" if optimised else "0"}


def _answer(server: subprocess.Popen[str]) -> Any:
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        raise ToolError("the process that tries mutants in its forks has ended")
    return json.loads(line)


def _write(path: Path, source: bytes) -> None:
    """Also where size and time of the file stay the same."""
    path.write_bytes(source)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def _link(source: Path, target: Path) -> None:
    """The same files in another folder: what is written there replaces the link, not the file."""
    target.mkdir(mode=0o700)
    for path in source.iterdir():
        if path.is_file() and not path.name.startswith("."):
            os.link(path, target / path.name)


def _enter(source: Path, target: Path, stale: frozenset[str]) -> None:
    """Kernels under another key, which their checksums cover, without those named in ``stale``, and
    without damaged ones: both are compiled.
    """
    target.mkdir(mode=0o700, exist_ok=True)
    for path in source.iterdir():
        # MODULE.FUNCTION.DIGEST
        if path.is_file() and path.name.split(".")[-2] not in stale:
            with suppress(Unusable):
                write_whole(target / path.name, read_whole(path))


def reaching(root: Path, kernel: str) -> frozenset[str]:
    """Names of the kernels that may call ``kernel``, itself among them.

    By name: whoever mentions a kernel's name, or an attribute of that name, may call it.
    """
    mentioned = _mentioned(root / "sim")
    callers: Mapping[str, set[str]] = defaultdict(set)
    for name, names in mentioned.items():
        for each in names & mentioned.keys():
            callers[each].add(name)
    found, left = set(), {kernel.rpartition(".")[2]}
    while left:
        name = left.pop()
        found.add(name)
        left |= callers[name] - found
    return frozenset(found)


@cache
def _mentioned(root: Path) -> dict[str, frozenset[str]]:
    """Of each kernel's name, the names in its body."""
    found: dict[str, frozenset[str]] = {}
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef) and KERNEL_DECORATORS & {
                ast.unparse(each).rpartition(".")[2] for each in node.decorator_list
            }:
                found[node.name] = found.get(node.name, frozenset()) | names_in(node)
    return found


def names_in(node: ast.AST) -> frozenset[str]:
    """Names and attributes that are mentioned."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return frozenset(
        names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    )
