"""Old names of what has moved give the same modules and classes as the new ones, and warn."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from importlib import import_module

import darwinn_testbench
import pytest
from darwinn_testbench.moved import MODULES, NAMES

SUBMODULES = {
    "darwinn_testbench.reference.protocol": "darwinn_reference.protocol",
    "darwinn_testbench.reference.tflite.graph": "darwinn_reference.tflite.graph",
    "darwinn_testbench.rtl.dma.timing": "darwinn_rtl.dma.timing",
    "darwinn_testbench.rtl.source_files": "darwinn_rtl.source_files",
}


def forget(old: str) -> None:
    for name in [each for each in sys.modules if each == old or each.startswith(f"{old}.")]:
        del sys.modules[name]


@pytest.mark.parametrize(("old", "new"), [*MODULES.items(), *SUBMODULES.items()])
def test_an_old_module_is_the_new_one(old: str, new: str) -> None:
    forget(old)
    expected = import_module(new)
    specification = expected.__spec__
    with pytest.warns(DeprecationWarning) as noticed:
        found = import_module(old)
    assert str(noticed[-1].message).startswith(f"{old} is {new} now; ")
    assert found is expected
    assert found.__name__ == new
    assert found.__spec__ is specification


def test_the_notice_names_the_line_that_imports() -> None:
    forget("darwinn_testbench.rtl.source_files")
    with pytest.warns(DeprecationWarning) as noticed:
        exec(compile("import darwinn_testbench.rtl.source_files", __file__, "exec"))
    assert {each.filename for each in noticed} == {__file__}


def test_classes_of_old_modules_are_the_new_ones() -> None:
    for module in ("darwinn_testbench.reference", "darwinn_testbench.extras"):
        forget(module)
    code = """
import darwinn_testbench.reference.protocol
from darwinn_testbench import extras, reference
from darwinn_testbench.reference.tflite.graph import network
assert reference.protocol is darwinn_testbench.reference.protocol
result = reference.protocol.Port, network, extras.require
"""
    found: dict[str, tuple[object, ...]] = {}
    with pytest.warns(DeprecationWarning):
        exec(code, found)
    from darwinn_formats.extras import require
    from darwinn_reference.protocol import Port
    from darwinn_reference.tflite.graph import network

    assert found["result"] == (Port, network, require)


@pytest.mark.parametrize(
    ("module", "name", "home"),
    [(module, name, home) for module, names in NAMES.items() for name, home in names.items()],
)
def test_an_old_name_is_the_new_one(module: str, name: str, home: str) -> None:
    with pytest.warns(
        DeprecationWarning, match=rf"^{module}.{name} is {home}.{name} now"
    ) as noticed:
        found = getattr(import_module(module), name)
    assert found is getattr(import_module(home), name)
    assert {each.filename for each in noticed} == {__file__}


def test_what_was_pickled_is_read() -> None:
    """Errors travel between processes by the names of their classes."""
    with pytest.warns(DeprecationWarning):
        found = pickle.loads(b"cdarwinn_testbench.errors\nUnavailable\n.")
    assert found is import_module("darwinn_formats.errors").Unavailable


def test_other_names_are_missed() -> None:
    for module in NAMES:
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
            _ = import_module(module).nothing
    with pytest.raises(ModuleNotFoundError), pytest.warns(DeprecationWarning):
        forget("darwinn_testbench.reference")
        import_module("darwinn_testbench.reference.nothing")


def test_python_runs_an_old_module() -> None:
    command = [sys.executable, "-m", "darwinn_testbench.rtl.dma.waves", "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "FILE" in done.stdout


def test_no_command_imports_an_old_name() -> None:
    code = "from darwinn_testbench.cli import main; main()"
    words = ["-W", "error::DeprecationWarning:darwinn_testbench", "-c", code, "verify", "--help"]
    subprocess.run([sys.executable, *words], capture_output=True, check=True)


def test_the_names_of_the_package_itself_have_not_moved(recwarn: pytest.WarningsRecorder) -> None:
    importlib.reload(darwinn_testbench)
    assert all(hasattr(darwinn_testbench, name) for name in darwinn_testbench.__all__)
    assert [each for each in recwarn if each.category is DeprecationWarning] == []
