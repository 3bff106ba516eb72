"""A command waits only for what it needs: which modules are loaded, not how long that takes."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_formats.darwinn import dump
from darwinn_sim.isa.codec import encode_operations
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, random_dense

START = """
import sys
from darwinn_testbench.cli.application import run_command_line
code = run_command_line(sys.argv[1:])
print(code, *sys.modules, file=sys.stderr)
"""
HEAVY = {"PIL", "ai_edge_litert", "igraph", "jinja2", "numba", "perfetto", "scipy"}


def loaded_by(*arguments: str) -> set[str]:
    """Modules that are there when a command has ended well, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", START, *arguments], capture_output=True, text=True, check=True
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(modules)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_list_of_commands_loads_none_of_them(option: str) -> None:
    modules = loaded_by(option)
    assert modules & (HEAVY | {"numpy", "darwinn_formats.darwinn"}) == set()
    model = {name for name in modules if name.startswith("darwinn_sim.")}
    assert model <= {"darwinn_sim.chips"}, "more of the model than how its chip is chosen"
    assert not any(f"darwinn_testbench.cli.{name}" in modules for name in commands.SUMMARIES)


@pytest.mark.parametrize("command", ["inspect", "disasm"])
def test_looking_at_a_file_loads_no_chip_and_no_references(command: str, tmp_path: Path) -> None:
    stream = tmp_path / "tiny.coral"
    stream.write_bytes(
        encode_operations([("LoadProgram", {"bundles": 1}), ("Scalar", {}), ("Execute", {})])
    )
    modules = loaded_by(command, str(stream))
    assert modules & HEAVY == set()
    references = {name for name in modules if name.startswith("darwinn_reference.")}
    light = ("arrays", "errors", "graph", "observation", "protocol")
    assert references <= {f"darwinn_reference.{name}" for name in light}


COMPARING = {
    "darwinn_formats.executorch",
    "darwinn_sim.lifting",
    "darwinn_testbench.chip.whole",
    "darwinn_testbench.comparison",
    "rich.progress",
}
"""What runs whole models and compares, what reads other formats, and what draws bars."""


@pytest.mark.parametrize("command", [("layers",), ("profile", "--operations"), ("cycles",)])
def test_showing_a_program_loads_nothing_that_compares(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    compiled = tmp_path / "dense.package"
    compiled.write_bytes(dump(compile_network(random_dense((12, 8), seed=1))))
    modules = loaded_by(*command, "--json", str(compiled))
    assert modules & ((HEAVY - {"numba"}) | COMPARING) == set()


def test_the_help_of_each_command_begins_with_its_line_in_the_list() -> None:
    for name, summary in commands.SUMMARIES.items():
        help_text = inspect.cleandoc(commands.load(name).help or "")
        assert " ".join(help_text.split("\n\n")[0].split()) == summary


def test_commands_are_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = [line.split()[1] for line in lines if line.startswith("│ ") and line[2].isalpha()]
    assert [name for name in first if not name.startswith("-")] == list(commands.SUMMARIES)
