"""The names at the top of the library: what they are, and what ``help`` says of them."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import darwinn_testbench
import pytest
from sample_files import sample

FUNCTIONS = {
    "cycles": "chip.cycles.measure",
    "diff": "difference.difference.difference",
    "explain": "explain.explain.explain",
    "inspect": "chip.inspection.inspect",
    "layers": "layers.view.view_layers",
    "profile": "profile.profile.profile",
    "run": "chip.execution.run",
    "verify": "comparison.verify.verify",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_name_is_the_function_with_its_signature(name: str) -> None:
    module, _, attribute = FUNCTIONS[name].rpartition(".")
    function = getattr(import_module(f"darwinn_testbench.{module}"), attribute)
    found = getattr(darwinn_testbench, name)
    assert inspect.signature(found) == inspect.signature(function)
    assert name in dir(darwinn_testbench)
    text = pydoc.render_doc(found, renderer=pydoc.TextDoc())
    first = next(iter(inspect.signature(function).parameters))
    assert f"({first}" in text
    assert "Annotated" not in text and "0x" not in text
    assert (inspect.getdoc(function) or "").splitlines()[0] in text


def test_every_name_is_there() -> None:
    assert set(FUNCTIONS) <= set(darwinn_testbench.__all__)
    for name in darwinn_testbench.__all__:
        assert getattr(darwinn_testbench, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'verfy'"):
        _ = darwinn_testbench.verfy


def test_a_user_completes_public_names_alone() -> None:
    completed = {name for name in dir(darwinn_testbench) if not name.startswith("__")}
    assert completed == set(darwinn_testbench.__all__) - {"__version__"}


def test_folders_are_called_and_still_hold_their_modules(tmp_path: Path) -> None:
    """In a process of its own: before and after modules of the folder are loaded."""
    sample(tmp_path)
    code = """
from darwinn_testbench import layers, profile
first = profile("dense_edgetpu.tflite")
import darwinn_testbench.profile.summary as summary
from darwinn_testbench import profile as again
from darwinn_testbench.layers import rows
assert again is profile and again("dense_edgetpu.tflite").rows == first.rows
assert summary.summary_lines(first)
print(type(layers("dense_edgetpu.tflite").rows[0]) is rows.LayerRow)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import sys, darwinn_testbench; print([n for n in sys.modules if 'numba' in n])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
