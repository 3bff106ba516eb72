"""Programs whose constants are in further files: `--data`, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import executorch_files as files
import numpy as np
import pytest
from darwinn_testbench.cli.application import run_command_line
from sample_files import sample


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program, its data under another name, inputs and what comes of them."""
    (tmp_path / "net.pte").write_bytes(files.external_program())
    (tmp_path / "weights.ptd").write_bytes(files.data_bytes())
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "inputs.npy", values)
    np.save(tmp_path / "expected.npy", values + files.WEIGHTS.reshape(2, 3))
    return tmp_path


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code = run_command_line([*map(str, words), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


@pytest.mark.parametrize("name", ["--data", "--with"])
def test_data_is_given_to_run_and_verify(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words = (folder / "net.pte", name, folder / "weights.ptd", "--inputs", folder / "inputs.npy")
    assert asked(capsys, "run", *words)[0] == 0
    code, found = asked(capsys, "verify", *words, "--expected", folder / "expected.npy")
    assert (code, found["verdict"]) == (0, "pass")


@pytest.mark.parametrize("command", ["run", "layers"])
def test_without_its_data_a_program_says_how_to_give_it(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, found = asked(capsys, command, folder / "net.pte")
    assert (code, found["verdict"]) == (2, "bad-input")
    assert "no data file has 'linear.weight': --data FILE" in found["message"]
    assert asked(capsys, command, folder / "net.pte", "--data", folder / "weights.ptd")[0] == 0


def test_without_its_data_a_program_is_shown_all_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = asked(capsys, "inspect", folder / "net.pte")
    assert code == 0
    files_and_names = {
        "files": ["net.ptd", "_default_external_constant.ptd"],
        "tensors": ["linear.weight"],
    }
    assert found["description"]["absent"] == files_and_names
    assert "external data of 1 tensors is not at hand (linear.weight ...)" in found["warnings"][0]
    code, whole = asked(capsys, "inspect", folder / "net.pte", "--data", folder / "weights.ptd")
    assert (code, "absent" in whole["description"], "warnings" in whole) == (0, False, False)
    assert whole["description"]["methods"] == found["description"]["methods"]
    listings = []
    for data in ((), ("--data", folder / "weights.ptd")):
        code, listed = asked(capsys, "disasm", folder / "net.pte", *data)
        assert code == 0
        listings.append(listed["rows"])
    assert listings[0] == listings[1]


def test_data_is_refused_where_it_is_of_no_use(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(folder)
    data = ("--data", folder / "weights.ptd")
    for command in ("inspect", "disasm", "run", "verify"):
        for file in ("dense_edgetpu.tflite", "dense.bef"):
            code, found = asked(capsys, command, folder / file, *data)
            assert (code, found["verdict"]) == (2, "bad-input"), (command, file)


def test_a_program_that_is_the_reference_gets_its_data(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = folder / "elsewhere"
    other.mkdir()
    (other / "net.pte").write_bytes(files.external_program())
    words = ("verify", folder / "net.pte", "--reference", other / "net.pte")
    assert asked(capsys, *words, "--data", folder / "weights.ptd")[1]["verdict"] == "pass"
