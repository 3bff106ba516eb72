"""Exporters that call `edgetpu_compiler` by its name find ours on the path, and what they expect.

Each test is the way in which one public exporter calls the compiler and reads what it gives; the
conversion before it is replaced by a ready ``.tflite``.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from darwinn_formats.darwinn import load
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler.random_networks import random_network


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the compiler under the vendor's name, first on the path; a model beside it."""
    tools = tmp_path / "tools"
    tools.mkdir()
    program = tools / "edgetpu_compiler"
    program.write_text(
        f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "
        "'from darwinn_testbench.cli.edgetpu_compiler import main; main()' \"$@\"\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    folder = tmp_path / "best saved model"
    folder.mkdir()
    (folder / "best_full_integer_quant.tflite").write_bytes(random_network(3, 2, ["CONV_2D"]))
    return folder


def shell(command: str, folder: Path) -> str:
    """Run a line as exporters do, and give its standard output."""
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, timeout=300, check=True
    )
    return done.stdout.decode()


def fields_of(text: str) -> Mapping[str, str]:
    """What scripts that read the output look for: a field at the beginning of a line."""
    return dict(re.findall(r"^([A-Z][^:\n]*?): *(.+)$", text, re.MULTILINE))


def test_ultralytics(path: Path) -> None:
    """YOLOv8, YOLO11: a version check, compilation by the shell, metadata appended as zip."""
    assert shell("edgetpu_compiler --version > /dev/null", path) == ""
    version = shell("edgetpu_compiler --version", path).rsplit(maxsplit=1)[-1]
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", version)
    model = path / "best_full_integer_quant.tflite"
    printed = shell(
        f'edgetpu_compiler --out_dir "{path}" --show_operations --search_delegate '
        f'--delegate_search_step 30 --timeout_sec 180 "{model}"',
        path.parent,
    )
    result = Path(str(model).replace(".tflite", "_edgetpu.tflite"))
    assert result.exists()
    fields = fields_of(printed)
    assert fields["Number of Edge TPU subgraphs"] == "1"
    assert fields["Output model"] == str(result)
    with zipfile.ZipFile(result, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", json.dumps({"task": "detect"}))
    assert load(result).executables
    assert run_command_line(["verify", str(result), "--reference", str(model)]) == 0


def test_yolov5_and_scripts_that_read_the_log(path: Path) -> None:
    """Words without a shell, short options, a folder without blanks; sizes of the log by units."""
    plain = path.rename(path.with_name("runs"))
    model = plain / "best_full_integer_quant.tflite"
    words = f"edgetpu_compiler -s -d -k 10 --out_dir {plain} {model}".split()
    subprocess.run(words, check=True, timeout=300, stdout=subprocess.DEVNULL)
    assert (plain / "best_full_integer_quant_edgetpu.tflite").exists()
    log = (plain / "best_full_integer_quant_edgetpu.log").read_text()
    sizes = {
        name: re.search(rf"^{name}:\s*([\d.]+)(B|KiB|MiB|GiB)\s*$", log, re.MULTILINE)
        for name in (
            "Input size",
            "Output size",
            "On-chip memory used for caching model parameters",
            "On-chip memory remaining for caching model parameters",
            "Off-chip memory used for streaming uncached model parameters",
        )
    }
    assert all(sizes.values()), sizes
    assert re.search(r"^Model compiled successfully in \d+ ms\.$", log, re.MULTILINE)
    assert re.search(r"^CONV_2D +2 +Mapped to Edge TPU$", log, re.MULTILINE)


@pytest.mark.nightly
def test_scripts_that_compile_segments_or_several_models(path: Path) -> None:
    """Options behind the models, joined short options, results in the current folder."""
    model = "best_full_integer_quant.tflite"
    shell(f"edgetpu_compiler -sa {model}", path)
    (path / "best_full_integer_quant_edgetpu.tflite").unlink()
    shell(f"edgetpu_compiler --num_segments 2 -o . {model}", path)
    parts = sorted(each.name for each in path.glob("*_edgetpu.tflite"))
    assert parts == [f"best_full_integer_quant_segment_{k}_of_2_edgetpu.tflite" for k in range(2)]
    (path / "other.tflite").write_bytes(random_network(4, 1, ["CONV_2D"]))
    printed = shell(f"edgetpu_compiler {model} other.tflite --num_segments=1", path)
    assert printed.count("Number of Edge TPU subgraphs: 1") == 2
    assert (path / "other_edgetpu.tflite").exists()
