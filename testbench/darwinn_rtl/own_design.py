"""A design of your own on the harness: a folder with sources that replace ours, and cocotb tests.

The folder has ``rtl/``, whose files take the place of ours by their names, and ``test_*.py``.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from darwinn_rtl.build import Design, simulate
from darwinn_rtl.source_files import SOURCES_VARIABLE, source
from darwinn_rtl.waves import WAVES_VARIABLE

SOURCES, TESTS = "rtl", "test_*.py"
"""Folder of the sources, and names of the modules with tests, in the folder of a design."""

TEMPLATE = Path(__file__).with_name("template")
"""A folder to begin with."""

DUT = "dma_engine.sv"
"""The source of ours that the template begins with."""


@dataclass(frozen=True)
class OwnTest:
    """A cocotb or pyuvm test, by the name of its module and its own."""

    module: str
    name: str


def begin(folder: Path) -> list[Path]:
    """Write the template to ``folder``, which is made; return the files.

    Raises:
        FileExistsError: one of the files is there already.
    """
    texts = {path.relative_to(TEMPLATE): path.read_text() for path in sorted(_files(TEMPLATE))}
    texts[Path(SOURCES, DUT)] = source(DUT).read_text()
    for name in texts:
        if (folder / name).exists():
            raise FileExistsError(17, "is there already", str(folder / name))
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [folder / name for name in texts]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def tests_of(folder: Path) -> list[OwnTest]:
    """The tests in ``folder``, in the order of their modules and lines.

    The modules are read and not imported: they can be imported in a simulation only. Raises
    ``SyntaxError`` if one of them is no Python.
    """
    return [
        OwnTest(path.stem, node.name)
        for path in sorted(folder.glob(TESTS))
        for node in ast.parse(path.read_text(), str(path)).body
        if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef)
        if any(_says_test(decorator) for decorator in node.decorator_list)
    ]


def _says_test(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called) in ("cocotb.test", "pyuvm.test", "test")


def run(
    folder: Path, test: OwnTest, *, data_bytes: int, seed: int, waves: Path | None, work: Path
) -> None:
    """Run ``test`` on the harness with the sources of ``folder``; ``work`` keeps its log, and
    ``waves`` its waves.

    Raises ``BuildFailed`` or ``SimulationFailed``.
    """
    parameters = {"DataBytes": data_bytes}
    design = Design("harness", parameters, registers=True)
    sources = folder / SOURCES
    chosen = {SOURCES_VARIABLE: sources if sources.is_dir() else None, WAVES_VARIABLE: waves}
    with _environment(chosen), _importable(folder):
        simulate(design, test.module, test.name, seed=seed, work=work)


@contextmanager
def _environment(chosen: Mapping[str, Path | None]) -> Iterator[None]:
    """Environment variables that name folders, where there is one."""
    given = {name: str(path.absolute()) for name, path in chosen.items() if path is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """The simulator's Python takes the path of this one."""
    sys.path.insert(0, str(folder.absolute()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.absolute()))
