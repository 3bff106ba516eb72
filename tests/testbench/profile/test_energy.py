"""The estimate of energy: from published power alone, and where there is some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_dense
from darwinn_testbench.profile.profile import ProfileFigures, profile


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    network = random_dense([64, 64], 1)
    path = tmp_path_factory.mktemp("power") / "model_edgetpu.tflite"
    path.write_bytes(edgetpu_model(network, compile_network(network)))
    return path


@pytest.mark.parametrize("host", ["usb2", "usb3"])
def test_a_stick_takes_between_awake_and_its_peak(model: Path, host: str) -> None:
    found: ProfileFigures = profile(model, host_name=host, operations=False).figures["profile"]
    assert found.energy is not None
    # Awake for the whole time, and 2 W at 4 TOPS, which are 2e12 products a second.
    expected = 0.95 * found.milliseconds + 1e3 * found.products * (2.0 - 0.95) / 2e12
    assert found.energy.millijoules == pytest.approx(expected)
    assert found.energy.least_millijoules < found.energy.millijoules
    assert found.energy.millijoules < found.energy.most_millijoules
    assert any("datasheet" in each for each in found.energy.sources)


@pytest.mark.parametrize("host", ["pcie", "none"])
def test_without_a_source_there_is_none(
    model: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    words = ["profile", str(model), "--host", host, "--no-operations"]
    assert run_command_line([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["energy"] is None
    assert run_command_line(words) == 0
    assert "mJ" not in capsys.readouterr().out


def test_it_is_called_an_estimate(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["profile", str(model), "--no-operations"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "mJ of a USB stick, a rough estimate (" in text
    assert "darwinn docs timing#energy" in text
