"""What is compared with nothing `ran`, it did not pass; a comparison can be required."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Executable
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, random_dense, uncompiled
from darwinn_testbench.profile.report import make_report
from darwinn_testbench.report import Verdict
from sample_runs import change

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("name", ["dense_edgetpu.tflite", "dense.pte"])
def test_verify_without_a_reference_ran_and_did_not_pass(
    samples: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, junit = str(samples / name), tmp_path / "junit.xml"
    assert run_command_line(["verify", file, "--json", "--junit", str(junit)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "ran"
    assert {(row["verdict"], row["decided_by"]) for row in found["rows"]} == {("ran", "completion")}
    assert "compared with nothing" in found["message"]
    suite = ElementTree.parse(junit).find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "0")
    assert "compared with nothing" in suite.findtext("testcase/system-out", "")
    assert run_command_line(["verify", file, "--require-reference"]) == 1
    printed = capsys.readouterr().out
    assert f"not-compared  {file}: " in printed
    assert "--reference MODEL" in printed


def test_a_comparison_satisfies_whoever_requires_one(samples: Path) -> None:
    file, reference = str(samples / "dense_edgetpu.tflite"), samples / "dense"
    for suffix in (".tflite", ".pte"):
        given = ["--reference", f"{reference}{suffix}", "--require-reference"]
        assert run_command_line(["verify", file, *given]) == 0


def test_dma_that_is_not_as_hinted_is_a_mismatch_without_a_reference(tmp_path: Path) -> None:
    def shortened(executable: Executable) -> Executable:
        hints = executable.dma_hints
        return replace(executable, dma_hints=replace(hints, hints=hints.hints[:2]))

    path = tmp_path / "a_edgetpu.tflite"
    path.write_bytes(darwinn.dump(change(compile_network(random_dense([16, 70], 0)), 0, shortened)))
    assert verify(path).verdict is Verdict.MISMATCH


def test_the_page_of_a_report_says_ran(samples: Path) -> None:
    page = make_report(samples / "dense_edgetpu.tflite")
    assert page.verification.verdict is Verdict.RAN
    assert b'class="verdict ran"' in page.html
    demanded = make_report(samples / "dense_edgetpu.tflite", require_reference=True)
    assert demanded.verification.verdict is Verdict.NOT_COMPARED


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_regression_counts_what_was_compared_with_nothing(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "m.toml"
    compared = f'[[case]]\nfile = "{samples}/dense_edgetpu.tflite"\nname = "compared"\n'
    compared += f'reference = "{samples}/dense.tflite"\n'
    alone = f'[[case]]\nfile = "{samples}/dense_edgetpu.tflite"\nname = "alone"\n'
    manifest.write_text(compared + alone)
    command = ["regress", str(manifest), "--jobs", "1", "--json", "--journal", str(tmp_path)]
    assert run_command_line(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["passed"], found["ran"]) == ("ran", 1, 1)
    assert "1 of 2 tasks pass, 1 ran and were compared with nothing" in found["message"]
    manifest.write_text(f"[defaults]\nrequire_reference = true\n{compared}{alone}")
    assert run_command_line(command) == 1
    found = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in found["rows"]] == ["proved", "not-compared"]
    assert found["rows"][1]["command"].endswith("--require-reference")


def test_the_fixture_fails_only_where_a_reference_is_required(pytester: pytest.Pytester) -> None:
    network = random_dense([16, 70], 0)
    (pytester.path / "a_edgetpu.tflite").write_bytes(darwinn.dump(compile_network(network)))
    (pytester.path / "a.tflite").write_bytes(uncompiled(network))
    pytester.makepyfile(
        """
        def test_alone(darwinn):
            assert darwinn.verify("a_edgetpu.tflite").verdict == "ran"

        def test_compared(darwinn):
            assert darwinn.verify("a_edgetpu.tflite", "a.tflite", require_reference=True)

        def test_required(darwinn):
            darwinn.verify("a_edgetpu.tflite", require_reference=True)
        """
    )
    result = pytester.runpytest("-p", "no:xdist", "--junit-xml=out.xml")
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    result.stdout.fnmatch_lines(["*a_edgetpu.tflite: not-compared: *compared with nothing*"])
    assert 'name="darwinn_verdict" value="ran"' in (pytester.path / "out.xml").read_text()
