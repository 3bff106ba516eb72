"""The sample on a chip of four tiles with small memories: the same bytes as on Beagle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.cli.application import run_command_line
from other_chip import SMALL, command, report
from sample_files import sample

NETWORKS = ("dense", "convolution")
RUNS = ("--runs", "3", "--seed", "5")


@pytest.fixture(scope="module")
def beagle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beagle")
    sample(folder)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    report("sample", folder)
    return folder


def outputs(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["name"], row["sha256"]) for row in rows]


@pytest.mark.nightly  # its kernels compile for minutes
@pytest.mark.parametrize("network", NETWORKS)
def test_networks_give_the_bytes_of_beagle(
    beagle: Path, small: Path, network: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compiled anew: other programs, and the convolution has larger parts with other borders."""
    file = f"{network}_edgetpu.tflite"
    assert (beagle / f"{network}.tflite").read_bytes() == (small / f"{network}.tflite").read_bytes()
    assert (beagle / file).read_bytes() != (small / file).read_bytes()
    assert run_command_line(["run", str(beagle / file), *RUNS, "--no-hazards", "--json"]) == 0
    expected = outputs(json.loads(capsys.readouterr().out)["rows"])
    found = outputs(report("run", small / file, *RUNS, "--no-hazards")["rows"])
    assert len(found) == 3 and found == expected


@pytest.mark.nightly
@pytest.mark.parametrize("network", NETWORKS)
def test_the_event_model_gives_the_same_cycles_each_time(small: Path, network: str) -> None:
    file = small / f"{network}_edgetpu.tflite"
    first = report("cycles", file)
    assert report("cycles", file) == first
    assert report("cycles", file, "--chip", SMALL, chip="") == first, "chosen by the option"
    assert (first["chip"], first["host"]) == (SMALL, "harness")
    assert len(first["rows"]) == 2 and all(row["cycles"] > 0 for row in first["rows"])


def test_a_program_for_another_grid_is_refused(beagle: Path, small: Path) -> None:
    """Its words would go to other neighbours, and nothing would say so."""
    for words in (["run"], ["cycles"], ["verify", "--reference", small / "dense.tflite"]):
        done = command(*words, beagle / "dense_edgetpu.tflite")
        assert done.returncode == 2
        assert "Executable.chip: the program is for beagle, and this process" in done.stderr
    done = command("cycles", small / "dense_edgetpu.tflite", chip="")
    assert done.returncode == 2
    assert "the program is for 2x2, and this process simulates beagle, 4 x 4" in done.stderr


def test_a_stream_that_names_tiles_that_are_not_there_is_refused(
    beagle: Path, tmp_path: Path
) -> None:
    """A bare stream does not say for which chip it is."""
    (model,) = open_models(beagle / "dense_edgetpu.tflite")
    stream = tmp_path / "stream.bin"
    stream.write_bytes(bytes(model.compiled.inference.instruction_bitstreams[0].bitstream))
    done = command("dma", stream)
    assert done.returncode == 3
    assert "TileFence" in done.stderr and "the chip has 4 tiles" in done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("network", NETWORKS)
def test_everything_is_proved(small: Path, network: str) -> None:
    """Each output is the network's function of the inputs, in every legal timing."""
    files = small / f"{network}_edgetpu.tflite", "--reference", small / f"{network}.tflite"
    assert report("verify", *files)["verdict"] == "proved"
