"""The fixture `darwinn` in the test suite of a user."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from darwinn_formats import darwinn
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense, uncompiled
from sample_runs import change, flip_parameter

pytest_plugins = ["pytester"]

SUITE = """
def test_right(darwinn):
    report = darwinn.verify("dense_edgetpu.tflite", "dense.tflite", runs=2)
    assert len(report.rows) == 2

def test_policy(darwinn):
    darwinn.verify("dense_edgetpu.tflite", reference="dense.tflite", policy="lsb:1", seed=9)

def test_inputs(darwinn):
    darwinn.verify("dense_edgetpu.tflite", "dense.tflite", ["input.bin"])

def test_wrong_parameters(darwinn):
    darwinn.verify("damaged_edgetpu.tflite", "dense.tflite")

def test_budget(darwinn):
    assert 0 < darwinn.cycles("dense_edgetpu.tflite", at_most=10_000_000) < 10_000_000

def test_too_slow(darwinn):
    darwinn.cycles("dense_edgetpu.tflite", at_most=10)

def test_baseline(darwinn):
    assert darwinn.cycles("dense_edgetpu.tflite", baseline="cycles.json") > 0

def test_another_baseline(darwinn):
    darwinn.cycles("dense_edgetpu.tflite", at_most=10_000_000, baseline="other.json")

def test_no_baseline(darwinn):
    darwinn.cycles("dense_edgetpu.tflite", baseline="none.json")

def test_wrong_reference(darwinn):
    darwinn.verify("dense_edgetpu.tflite", "convolution.tflite")
"""


def test_a_users_suite_passes_and_fails_as_verify_does(pytester: pytest.Pytester) -> None:
    network, other = random_dense([16, 70], 0), random_convolution(16, 64, 8, 20, 0)
    package = compile_network(network)
    caching = 1
    wrong = change(package, caching, flip_parameter(4 * 5 + 3))
    for name, data in {
        "dense_edgetpu.tflite": darwinn.dump(package),
        "damaged_edgetpu.tflite": darwinn.dump(wrong),
        "dense.tflite": uncompiled(network),
        "convolution.tflite": uncompiled(other),
        "input.bin": bytes(16),
    }.items():
        (pytester.path / name).write_bytes(data)
    command = ["cycles", "dense_edgetpu.tflite", "--update", "--reason", "x", "--baseline"]
    assert run_command_line([*command, "cycles.json"]) == 0
    written = json.loads((pytester.path / "cycles.json").read_text())
    written["entries"][0]["metrics"]["cycles"]["value"] += 1
    (pytester.path / "other.json").write_text(json.dumps(written))
    pytester.makepyfile(SUITE)
    result = pytester.runpytest("-p", "no:xdist", "--darwinn-seed=7", "--junit-xml=out.xml")
    assert result.parseoutcomes() == {"passed": 5, "failed": 5}
    result.stdout.fnmatch_lines(
        [
            "darwinn verify *damaged_edgetpu.tflite: mismatch: *",
            "  run 0: output: * differ*",
            "  seed 7; *",
            "darwinn cycles dense_edgetpu.tflite: * cycles on beagle-max behind usb3, 10 allowed*",
            "darwinn cycles *other.json: regression: *changed for the better*",
            "  dense_edgetpu.tflite: executable 0: cycles: * changed for the better*",
            "darwinn cycles dense_edgetpu.tflite: bad-input: *none.json: no such file*",
            "darwinn verify dense_edgetpu.tflite: bad-input: *is not the model before compilation*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    junit = (pytester.path / "out.xml").read_text()
    assert 'name="darwinn_verdict" value="pass"' in junit


def test_the_plugin_costs_nothing_where_it_is_not_used() -> None:
    """No test suite of the environment starts to import NumPy because of it."""
    code = "import sys, darwinn_testbench.pytest_plugin; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
