"""The delegate's library: applications of LiteRT compute on the chip what the interpreter does."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import delegate_client
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRt
from ai_edge_litert.interpreter import load_delegate
from corpus_models import path_of
from darwinn_testbench import Interpreter
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    multi_chip,
    random_convolution,
    random_dense,
)
from darwinn_testbench.device.delegate import build, server
from darwinn_testbench.errors import InputError
from sample_runs import expected, random_input
from whole_models import (
    random_floats,
    segments,
    stateful_expected,
    stateful_model,
    stateful_network,
    whole_expected,
    whole_model,
)

CLIENT = Path(delegate_client.__file__)
OTHER = "DARWINN_TFLITE_RUNTIME"
"""Environment variable: the Python of an environment with tflite_runtime."""

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")


@pytest.fixture(scope="session")
def library() -> str:
    return str(build.library())


def ready(library: str, model: bytes, **options: object) -> Any:
    delegate = load_delegate(library, options)
    interpreter = LiteRt(model_content=model, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    return interpreter


def infer(interpreter: Any, value: Any) -> Any:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_whole_models_compute_what_the_oracle_does(library: str) -> None:
    networks = segments()
    interpreter = ready(library, whole_model(networks), strict=True)
    for seed in range(3):
        floats = random_floats(seed)
        assert np.array_equal(infer(interpreter, floats), whole_expected(networks, floats))


def test_models_of_one_delegate_do_not_meet(library: str) -> None:
    """Several interpreters share a delegate, and their models' parameters stay apart."""
    delegate = load_delegate(library)
    networks = [random_convolution(8, 8, 4, 6, seed, kernel=3) for seed in (1, 2)]
    interpreters = []
    for network in networks:
        model = edgetpu_model(network, compile_network(network))
        interpreters.append(LiteRt(model_content=model, experimental_delegates=[delegate]))
        interpreters[-1].allocate_tensors()
    for network, interpreter in [*zip(networks, interpreters, strict=True)] * 2:
        image = random_input(network, 0)
        assert np.array_equal(infer(interpreter, image).ravel(), expected(network, image))


def test_variables_are_fed_back_and_reset(library: str) -> None:
    network = stateful_network()
    interpreter = ready(library, stateful_model(network))
    index = interpreter.get_output_details()[0]["index"]
    first, second, third = stateful_expected(network, 3)
    for wanted in (first, second, third):
        interpreter.invoke()
        assert np.array_equal(interpreter.get_tensor(index), wanted)
    # What LiteRT makes of a variable that it resets is its own affair; the chip begins with that.
    interpreter.set_tensor(0, first)
    interpreter.invoke()
    assert np.array_equal(interpreter.get_tensor(index), second)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("strict=perhaps", "option strict: 'perhaps' is neither true nor false"),
        ("Performance=fast", r"'fast' is none of its values \(low, medium, high, max\)"),
        *((f"{key}=", f"option {key}: ") for key in ("strict", "Performance")),
        *((f"strict={each}", "option strict: ") for each in (2, None)),
        ("assumptions=[1]", "option assumptions: "),
        ("device=5", "option device: "),
        ("Performance=11", "option Performance: "),
        ("Usb.AlwaysDfu=1", "option Usb.AlwaysDfu: "),
        ("Usb.MaxBulkInQueueLength=many", "option Usb.MaxBulkInQueueLength: "),
        *((f"timeout={each}", "is no number of seconds") for each in ("soon", 0, -1, 1.5, None)),
    ],
)
def test_an_option_is_refused(option: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        server.flags_of([option])


@pytest.mark.parametrize("device", ["", ":0", "usb", "pci", "usb:1", "PCI:1", "darwinn:1"])
def test_a_chip_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    monkeypatch.setenv("DARWINN_CHIPS", "2")
    assert server.flags_of([f"device={device}"]) == server.flags_of([])


@pytest.mark.parametrize(
    ("chips", "device", "message"),
    [
        ("2", "usb:2", "there is no chip 2, only 0 to 1; darwinn delegate --chips N"),
        ("2", ":" + "9" * 30, "there is no chip 999999999, only"),
        ("0", ":0", r"DARWINN_CHIPS: '0' is no number of chips \(1 to 16\)"),
        ("two", "pci", "DARWINN_CHIPS: 'two' is no number"),
    ],
)
def test_a_chip_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, chips: str, device: str, message: str
) -> None:
    monkeypatch.setenv("DARWINN_CHIPS", chips)
    with pytest.raises(InputError, match=message):
        server.flags_of([f"device={device}"])


CHIPS = """
import sys
from ai_edge_litert.interpreter import load_delegate
kept = [load_delegate("libedgetpu.so.1", {"device": name}) for name in (":0", "usb:1", "pci:1")]
try:
    load_delegate("libedgetpu.so.1", {"device": "usb:2"})
except ValueError as error:
    print(error)
"""


def test_an_application_has_the_chips_that_it_is_given(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["delegate", "--chips", "2", "--", sys.executable, "-c", CHIPS]
    assert run_command_line(words) == 0
    assert "darwinn: option device: there is no chip 2, only 0 to 1;" in capfd.readouterr().out
    assert run_command_line(["delegate", "--chips", "2"]) == 2
    assert "set DARWINN_CHIPS=2 where the application runs" in capfd.readouterr().err


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="refused on other machines")
def test_a_program_with_the_c_plus_plus_interface_is_answered(
    library: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It was linked with the library; what cannot be served is refused by name."""
    program = tmp_path / "client"
    source = Path(delegate_client.__file__).parent / "manager_client.cpp"
    words = ["g++", "-std=c++17", str(source), library, "-o", str(program)]
    subprocess.run(words, check=True, timeout=120)
    assert run_command_line(["delegate", "--chips", "3", "--", str(program)]) == 0
    shown = capfd.readouterr()
    assert shown.out.splitlines() == [
        *(f"1 darwinn:{number}" for number in range(3)),
        "darwinn-testbench, simulated",
        "verbosity 0 1",
        "opened 0",
        "context 0",
        "old context 0",
        "operator 1",
    ]
    for name in ("OpenDevice", "NewEdgeTpuContext"):
        assert f"calls edgetpu::EdgeTpuManager::{name}() of the vendor's C++ library" in shown.err
    assert "`darwinn device --usb` (darwinn docs device)" in shown.err


def test_what_is_refused_is_said_to_the_application(library: str) -> None:
    for options, message in (
        ({"speed": 11}, "\ndarwinn: there is no option 'speed', only Perf"),
        ({"strict": "perhaps", "timeout": 9}, "\ndarwinn: option strict: 'perhaps' is neither"),
        # The delegate itself reads these, before the chip's process does.
        ({"timeout": 1 << 32}, "is no number of seconds"),
        ({"timeout": "1" + "0" * 5000}, "is no number of seconds"),
    ):
        with pytest.raises(ValueError, match=message):
            load_delegate(library, options)
    network = random_dense([8, 8], 0)
    several = edgetpu_model(network, multi_chip([compile_network(network)] * 2))
    with pytest.raises(RuntimeError, match=r"darwinn: .*2 models"):
        ready(library, several)
    damaged = edgetpu_model(network, compile_network(network)).replace(b"DWN1", b"DWN9", 1)
    with pytest.raises(
        RuntimeError, match=r"darwinn: the custom operator of the model: byte \d+: .*identifier"
    ):
        ready(library, damaged)


def test_another_shape_of_an_input_is_refused(library: str) -> None:
    network = random_dense([8, 8], 0)
    interpreter = ready(library, edgetpu_model(network, compile_network(network)))
    interpreter.resize_tensor_input(0, [2, 8])
    with pytest.raises(RuntimeError, match=r"darwinn: .*cannot be resized"):
        interpreter.allocate_tensors()


def test_models_without_chip_operators_are_left_to_litert(library: str) -> None:
    from darwinn_testbench.compiler import uncompiled

    network = random_dense([8, 8], 0)
    interpreter = ready(library, uncompiled(network))
    assert infer(interpreter, random_input(network, 0)).shape == (1, 8)


def test_the_c_interface_of_the_vendor_is_there(library: str) -> None:
    loaded = ctypes.CDLL(library)
    count = ctypes.c_size_t()
    loaded.edgetpu_list_devices.restype = ctypes.c_void_p
    devices = loaded.edgetpu_list_devices(ctypes.byref(count))
    assert count.value == 1
    loaded.edgetpu_free_devices(ctypes.c_void_p(devices))
    loaded.edgetpu_version.restype = ctypes.c_char_p
    assert b"darwinn" in loaded.edgetpu_version()
    loaded.edgetpu_verbosity(0)
    loaded.edgetpu_create_delegate.restype = ctypes.c_void_p
    delegate = loaded.edgetpu_create_delegate(1, None, None, ctypes.c_size_t(0))
    assert delegate
    loaded.edgetpu_free_delegate(ctypes.c_void_p(delegate))


def run_client(python: str, library: str, model: Path, output: Path) -> list[Any]:
    environment = {key: each for key, each in os.environ.items() if key != "PYTHONPATH"}
    command = [python, str(CLIENT), library, str(model), str(output)]
    subprocess.run(command, env=environment, check=True, timeout=600)
    stored = np.load(output)
    return [stored[name] for name in stored.files]


def computed_by_interpreter(model: Path) -> list[Any]:
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    results = []
    for seed in range(3):
        delegate_client.draw(interpreter, seed)
        interpreter.invoke()
        results += delegate_client.outputs_of(interpreter)
    return results


def other_python() -> str:
    python = os.environ.get(OTHER)
    if not python:
        pytest.skip(f"{OTHER} is not set: no Python with tflite_runtime is at hand")
    return python


def sample(folder: Path) -> Path:
    path = folder / "whole_edgetpu.tflite"
    path.write_bytes(whole_model(segments()))
    return path


def test_an_application_of_tflite_runtime_computes_the_same(library: str, tmp_path: Path) -> None:
    model = sample(tmp_path)
    found = run_client(other_python(), library, model, tmp_path / "outputs.npz")
    for one, other in zip(found, computed_by_interpreter(model), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "name",
    [
        "libedgetpu.so.1",
        "libedgetpu.so.1.0",
        "libedgetpu.so",
        "/usr/lib/aarch64-linux-gnu/libedgetpu.so.1.0",
        "./lib/libedgetpu.so.1",
    ],
)
def test_an_application_finds_the_library_by_any_name_of_the_vendor_s(
    tmp_path: Path, name: str
) -> None:
    """`darwinn delegate -- COMMAND` runs the application unchanged."""
    model, output = sample(tmp_path), tmp_path / "outputs.npz"
    command = [sys.executable, str(CLIENT), name, str(model), str(output)]
    assert run_command_line(["delegate", "--", *command]) == 0
    assert len(np.load(output).files) == 3


@pytest.mark.parametrize("name", ["libedgetpu.1.dylib", "/usr/local/lib/libedgetpu.1.dylib"])
def test_names_of_other_systems_are_refused_by_name(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    load = f"import ctypes; ctypes.CDLL({name!r})"
    assert run_command_line(["delegate", "--", sys.executable, "-c", load]) == 1
    said = capfd.readouterr().err
    assert "darwinn: libedgetpu.1.dylib is the Edge TPU library of another operating system" in said


def test_other_libraries_are_found_as_before() -> None:
    """Names that only begin or end as the vendor's are none of it."""
    load = "import ctypes; ctypes.CDLL('libc.so.6'); ctypes.CDLL('libedgetpu.so.x')"
    assert run_command_line(["delegate", "--", sys.executable, "-c", load]) == 1
    assert run_command_line(["delegate", "--", sys.executable, "-c", load.split(";")[0]]) == 0


def test_the_exit_status_is_the_command_s(tmp_path: Path) -> None:
    assert run_command_line(["delegate", "--", sys.executable, "-c", "raise SystemExit(7)"]) == 7
    assert run_command_line(["delegate", "--", str(tmp_path / "none")]) == 2


def test_an_application_without_standard_streams_can_load_it(library: str, tmp_path: Path) -> None:
    model, output = sample(tmp_path), tmp_path / "outputs.npz"
    command = [sys.executable, str(CLIENT), library, str(model), str(output)]
    closed = ["sh", "-c", 'exec "$@" <&- 2>&-', "sh", *command]
    subprocess.run(closed, check=True, timeout=600, stdout=subprocess.DEVNULL)
    assert len(np.load(output).files) == 3


def test_the_library_is_built_once_and_its_path_printed(
    library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(library).stat().st_mtime_ns
    assert run_command_line(["delegate"]) == 0
    assert capsys.readouterr().out.strip() == library
    assert Path(library).stat().st_mtime_ns == before


def test_a_library_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = build.library()
    good = path.read_bytes()
    path.write_bytes(b"somebody's")
    path.chmod(0o777)
    assert build.library().read_bytes() == good
    path.parent.chmod(0o777)
    with pytest.raises(InputError, match="other users may write it"):
        build.library()


def test_without_a_compiler_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(InputError, match="no C compiler"):
        build.library()
    monkeypatch.setenv("CC", "false")
    with pytest.raises(InputError, match="cannot be built"):
        build.library()


SSD = "ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2"
DEEPLAB = "deeplabv3_mnv2_dm05_pascal_quant"
WHOLE = (SSD, "keras_lstm_mnist_ptq")
LARGE = (
    DEEPLAB,
    "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
)


@pytest.mark.parametrize(
    ("name", "in_litert"),
    [
        *((name, True) for name in WHOLE),
        *(pytest.param(name, True, marks=pytest.mark.nightly) for name in LARGE),
        *((SSD, False), (DEEPLAB, False)),
    ],
)
def test_corpus_models_give_the_same_final_outputs_both_ways(
    library: str, corpus: Path, tmp_path: Path, name: str, in_litert: bool
) -> None:
    model = path_of(corpus, name)
    python = sys.executable if in_litert else other_python()
    found = run_client(python, library, model, tmp_path / "outputs.npz")
    for one, other in zip(found, computed_by_interpreter(model), strict=True):
        assert np.array_equal(one, other)
