"""The command on real models: what a person sees, what a script reads, and what is written."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_sim.machine.examine import Tap
from darwinn_testbench.cli.application import run_command_line

COMMAND = "from darwinn_testbench.cli import main; main()"
GABOR = "gabor_64x64_7k_4o_2s"


def compiled(corpus: Path, name: str = GABOR) -> str:
    return str(corpus / "darwinn" / f"{name}_edgetpu.tflite")


def uncompiled(corpus: Path, name: str = GABOR) -> str:
    return str(corpus / "tflite" / f"{name}.tflite")


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run_command_line([*arguments, "--json"])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {"command", "verdict", "file", "message", "rows"} <= report.keys()
    assert all({"name", "verdict", "message"} <= row.keys() for row in report["rows"])
    return code, report


def test_inspect_tells_executables_and_layers(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = run_json(capsys, "inspect", compiled(corpus))
    assert code == 0
    assert [row["type"] for row in report["rows"]] == ["EXECUTION_ONLY", "PARAMETER_CACHING"]
    assert [row["unexplained_bits"] for row in report["rows"]] == [0, 0]
    assert [layer["shape"] for layer in report["rows"][0]["layers"]] == [[64, 64, 1], [64, 64, 8]]
    assert run_command_line(["inspect", compiled(corpus)]) == 0
    assert "TensorMac" in capsys.readouterr().out


def test_disasm_names_relocations(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["disasm", compiled(corpus), "--executable", "0"]) == 0
    listing = capsys.readouterr().out
    assert "input" in listing
    assert "LoadProgram" in listing
    code, report = run_json(capsys, "disasm", compiled(corpus))
    assert code == 0
    assert sum("relocation" in entry for entry in report["rows"][0]["instructions"]) > 0


def test_a_reader_that_goes_away_is_no_error(corpus: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "disasm", compiled(corpus, "mobilenet_v2_1.0_224_quant")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 141
    assert errors == b""


def test_dma_is_as_hinted(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = run_json(capsys, "dma", compiled(corpus))
    assert code == 0
    assert [row["verdict"] for row in report["rows"]] == ["pass", "pass"]
    entries = report["rows"][0]["entries"]
    assert [entry["issued"]["kind"] for entry in entries][-2:] == ["output", "interrupt"]
    assert run_command_line(["dma", compiled(corpus), "--full"]) == 0
    assert "equal    output outfeed 'output' offset 0 size 32768" in capsys.readouterr().out


def test_run_writes_outputs_in_every_form(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = np.arange(4096, dtype=np.uint8).reshape(64, 64)
    np.save(tmp_path / "in.npy", np.stack([image, image.T])[..., None])
    arguments = ["run", compiled(corpus), "--inputs", str(tmp_path / "in.npy"), "--output"]
    for name in ("out.npz", "out.npy", "out.bin"):
        assert run_command_line([*arguments, str(tmp_path / name)]) == 0
    array = np.load(tmp_path / "out.npz")["output"]
    assert array.shape == (2, 1, 64, 64, 8)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), array)
    assert (tmp_path / "out.bin").read_bytes() == array.tobytes()
    capsys.readouterr()
    code, report = run_json(capsys, "run", compiled(corpus), "--inputs", str(tmp_path / "in.npy"))
    assert code == 0
    assert [row["run"] for row in report["rows"]] == [0, 1]
    assert len({row["sha256"] for row in report["rows"]}) == 2


def test_run_stops_and_taps(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "taps.npz"
    code, report = run_json(
        capsys,
        *("run", compiled(corpus), "--until", "layer:1", "--output", str(out)),
        *("--tap", "narrow:0:0:0x100", "--tap", "wide:1:0:1", "--tap", "layer:0"),
    )
    assert code == 0
    assert report["stopped"]
    assert report["rows"] == []
    assert [tap["bytes"] for tap in report["taps"][:2]] == [256, 256]
    assert [tap["tap"] for tap in report["taps"]] == [
        "narrow:0:0x0:0x100",
        "wide:1:0x0:0x1",
        "layer:0",
    ]
    assert [str(Tap.parse(tap["tap"])) for tap in report["taps"]] == [
        tap["tap"] for tap in report["taps"]
    ]
    taps = np.load(out)
    assert taps["tap0"].dtype == np.uint8
    assert len(taps["tap2"])
    assert run_command_line(["run", compiled(corpus), "--until", "layer:999"]) == 2
    assert "there is no layer 999" in capsys.readouterr().err


def test_verify_passes_and_writes_junit(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "result.xml"
    arguments = ["verify", compiled(corpus), "--reference", uncompiled(corpus)]
    code, report = run_json(capsys, *arguments, "--runs", "2", "--junit", str(junit))
    assert code == 0
    assert report["verdict"] == "proved"
    assert report["seed"] == 0
    assert [row["chip_arithmetic"]["differing"] for row in report["rows"]] == [0, 0]
    assert all(row["litert"]["max_difference"] <= 1 for row in report["rows"])
    suite = ElementTree.parse(junit).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("3", "0")
    assert run_command_line(arguments) == 0
    assert "vs chip" in capsys.readouterr().out


def test_policy_lets_litert_decide(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["verify", compiled(corpus), "--reference", uncompiled(corpus), "--policy"]
    code, report = run_json(capsys, *arguments, "exact")
    assert (code, report["verdict"]) == (1, "mismatch")
    assert report["rows"][0]["decided_by"] == "LiteRT"
    code, report = run_json(capsys, *arguments, "lsb:1,2%")
    assert (code, report["verdict"]) == (0, "pass")


def test_verify_without_reference_says_what_was_checked(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = run_json(capsys, "verify", compiled(corpus), "--strict")
    assert (code, report["verdict"]) == (0, "ran")
    assert report["rows"][0]["decided_by"] == "completion"
    assert "DMA as hinted" in report["message"]
    assert "compared with nothing" in report["message"]
