"""`darwinn run` and `inspect` of IREE modules: open sizes, machine code, signatures first."""

from __future__ import annotations

from pathlib import Path

import iree_modules
import numpy as np
import pytest
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference, why_not
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.engine import Engine
from darwinn_testbench.programs import iree
from darwinn_testbench.programs.run import run_program

OPEN = "sync func @f(%x: tensor<?x4xi8>) -> (%y: tensor<?x4xi8>)"
ELF = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0\x3e\0" + bytes(44)


def open_module() -> bytes:
    """A module that gives back a tensor one of whose sizes is open."""
    source: list[iree_modules.Source] = ["entry", ("return", [[iree_modules.ref(0)]])]
    attributes = {"iree.abi.declaration": OPEN}
    return iree_modules.module(
        [iree_modules.FunctionSource("f", "0r_r", source, attributes=attributes)]
    )


def machine_code() -> bytes:
    """A module whose one executable is machine code, which it never makes."""
    source: list[iree_modules.Source] = ["entry", ("return", [[0]])]
    return iree_modules.module(
        [iree_modules.FunctionSource("f", "0i_i", source)],
        imported_functions=iree_modules.imports(("hal.executable.create", "0rIrrr_r")),
        rodata_segments=iree_modules.rodata(b"embedded-elf-x86_64", ELF),
    )


def test_a_size_that_is_open_is_stated_where_it_was_drawn() -> None:
    report = run_program(open_module(), seed=1, runs=1)
    assert [row.shape for row in report.rows] == [(8, 4)]
    (warning,) = report.figures["warnings"]
    assert warning.startswith("x (int8 ?x4): drawn as 8x4")
    checked = verify(open_module(), reference=open_module(), runs=1)
    assert not checked.verdict.failed
    assert checked.figures["warnings"] == [warning]
    given = verify(open_module(), reference=open_module(), inputs=[{"x": np.ones((2, 4), np.int8)}])
    assert "warnings" not in given.figures


def test_inspect_begins_with_what_a_function_takes_and_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "open.vmfb"
    path.write_bytes(open_module())
    assert run_command_line(["inspect", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == [
        "function 0 f: 2 instructions",
        "  input  x (int8 ?x4)",
        "  output y (int8 ?x4)",
    ]


def test_machine_code_is_refused_by_name_without_the_original(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(iree, "why_not", lambda: "not installed")
    with pytest.raises(Unsupported, match=r"embedded-elf-x86_64 .*darwinn-testbench\[iree\]"):
        run_program(machine_code(), runs=1)


def test_machine_code_is_run_by_the_original_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Original(IreeReference):
        """Stands for the original runtime: it has no machine code to make."""

        def __init__(self, source: bytes) -> None:
            super().__init__(source.replace(b"\x7fELF", b"\x7felf"))

    monkeypatch.setattr(iree, "why_not", lambda: None)
    monkeypatch.setattr(iree, "OriginalIree", Original)
    monkeypatch.setattr("darwinn_testbench.programs.run._original_of", lambda _: Original)
    report = run_program(machine_code(), runs=1)
    assert report.figures["engine"] is Engine.ORIGINAL
    assert any("machine code" in warning for warning in report.figures["warnings"])


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
@pytest.mark.parametrize("name", ["add", "matmul_i8_dyn", "tosa_mlp"])
def test_machine_code_runs_without_being_asked_twice(corpus: Path, name: str) -> None:
    report = run_program(corpus / "vmfb" / "v17" / f"{name}.llvmcpu.vmfb", runs=1)
    assert not report.verdict.failed
    assert report.figures["engine"] is Engine.ORIGINAL
