"""The drop-in interpreter: whole models, with the methods and the errors of LiteRT's."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import interpreter as litert
from corpus_models import path_of
from darwinn_formats import darwinn
from darwinn_formats.errors import FormatError
from darwinn_reference.errors import ModelError
from darwinn_testbench import Interpreter
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.session import Device
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    multi_chip,
    random_convolution,
    random_dense,
    uncompiled,
)
from darwinn_testbench.compiler.network import DenseNetwork
from darwinn_testbench.errors import InputError
from sample_runs import expected, random_input
from whole_models import random_floats, segments, whole_expected, whole_model

DENSE = random_dense([30, 20], 1)


def compiled(network: DenseNetwork = DENSE) -> bytes:
    return edgetpu_model(network, compile_network(network))


def ready(model: bytes, **options: Any) -> Interpreter:
    interpreter = Interpreter(model_content=model, **options)
    interpreter.allocate_tensors()
    return interpreter


def test_operators_around_several_chip_operators_run_too() -> None:
    networks = segments()
    interpreter = ready(whole_model(networks), strict=True)
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    for seed in range(4):
        floats = random_floats(seed)
        interpreter.set_tensor(source["index"], floats)
        interpreter.invoke()
        found = interpreter.get_tensor(result["index"])
        assert np.array_equal(found, whole_expected(networks, floats))


def test_threads_may_share_an_interpreter() -> None:
    networks = segments()
    interpreter = Interpreter(model_content=whole_model(networks))
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    floats = random_floats(0)

    def infer(_: int) -> bool:
        interpreter.allocate_tensors()
        interpreter.set_tensor(source["index"], floats)
        interpreter.invoke()
        found = interpreter.get_tensor(result["index"])
        return np.array_equal(found, whole_expected(networks, floats))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(infer, range(40)))


def test_threads_may_share_a_chip() -> None:
    networks = [random_dense([40, 30], seed) for seed in range(3)]
    device = Device()

    def infer(number: int) -> bool:
        network = networks[number % 3]
        interpreter = ready(compiled(network), device=device)
        image = random_input(network, number)
        results = []
        for _ in range(4):
            interpreter.set_tensor(0, image)
            interpreter.invoke()
            results.append(interpreter.get_tensor(1).ravel())
        return all(np.array_equal(each, expected(network, image)) for each in results)

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(infer, range(12)))


def test_a_convolution_and_interpreters_that_share_a_chip() -> None:
    networks = [random_convolution(8, 8, 4, 6, seed, kernel=3) for seed in (1, 2)]
    device = Device()
    interpreters = [
        Interpreter(model_content=edgetpu_model(each, compile_network(each)), device=device)
        for each in networks
    ]
    for network, interpreter in [*zip(networks, interpreters, strict=True)] * 2:
        interpreter.allocate_tensors()
        image = random_input(network, 0)
        interpreter.tensor(interpreter.get_input_details()[0]["index"])()[:] = image
        interpreter.invoke()
        index = interpreter.get_output_details()[0]["index"]
        assert np.array_equal(interpreter.tensor(index)().ravel(), expected(network, image))


def test_a_model_that_is_not_compiled_runs_in_litert() -> None:
    interpreter = ready(uncompiled(DENSE))
    image = random_input(DENSE, 3)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert np.abs(found.ravel().astype(int) - expected(DENSE, image)).max() <= 1


def test_the_public_methods_of_litert_are_there_with_its_names_of_arguments() -> None:
    for name, method in inspect.getmembers(litert.Interpreter, inspect.isfunction):
        if name.startswith("_"):
            continue
        ours = inspect.signature(getattr(Interpreter, name)).parameters
        assert list(inspect.signature(method).parameters) == list(ours), name


def test_details_are_litert_s() -> None:
    model = whole_model(segments())
    interpreter, theirs = ready(model), litert.Interpreter(model_content=model)
    for ours, their in [
        (interpreter.get_input_details(), theirs.get_input_details()),
        (interpreter.get_output_details(), theirs.get_output_details()),
        (interpreter.get_tensor_details(), theirs.get_tensor_details()),
        (interpreter._get_ops_details(), theirs._get_ops_details()),
    ]:
        assert repr(ours) == repr(their)
    assert interpreter.get_signature_list() == theirs.get_signature_list() == {}
    assert interpreter.num_subgraphs() == 1


def test_what_does_not_fit_is_said_as_litert_says_it() -> None:
    interpreter = Interpreter(model_content=compiled())
    with pytest.raises(ValueError, match="allocate_tensors"):
        interpreter.set_tensor(0, np.zeros((1, 30), np.int8))
    with pytest.raises(ValueError, match="allocate_tensors"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    with pytest.raises(ValueError, match="Got value of type UINT8 but expected type INT8"):
        interpreter.set_tensor(0, np.zeros((1, 30), np.uint8))
    with pytest.raises(ValueError, match=r"Got \[30\] but expected \[1, 30\]"):
        interpreter.set_tensor(0, np.zeros(30, np.int8))
    with pytest.raises(ValueError, match="Invalid tensor index 7"):
        interpreter.get_tensor(7)
    with pytest.raises(ValueError, match="subgraph_index 1"):
        interpreter.get_tensor(0, 1)
    with pytest.raises(ValueError, match="not an input"):
        interpreter.set_tensor(1, np.zeros((1, 20), np.int8))
    interpreter.resize_tensor_input(0, [1, 30])
    with pytest.raises(ValueError, match=r"resize_tensor_input.*cannot become \[2, 30\]"):
        interpreter.resize_tensor_input(0, [2, 30])
    with pytest.raises(ValueError, match="known: none"):
        interpreter.get_signature_runner("serving_default")
    with pytest.raises(ValueError, match="model_path"):
        Interpreter()
    with pytest.raises(InputError, match="takes no delegate: leave experimental_delegates out"):
        Interpreter(model_content=compiled(), experimental_delegates=[object()])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"num_threads": "a"}, "num_threads 'a': it is an integer"),
        ({"num_threads": -7}, "num_threads -7: it is an integer, 1 or more"),
        ({"time_limit": -1}, "time_limit -1: it is a finite number"),
        ({"time_limit": float("nan")}, "time_limit nan"),
        ({"time_limit": float("inf")}, "time_limit inf"),
        ({"time_limit": "1"}, "time_limit '1'"),
        ({"time_limit": True}, "time_limit True"),
        ({"num_threads": True}, "num_threads True"),
        ({"num_threads": 1.5}, "num_threads 1.5"),
        ({"model_content": 5}, "model_content 5: it is bytes"),
        ({"model_content": "5" * 99}, "model_content of type str: it is bytes"),
        ({"model_content": [5]}, r"model_content \[5\]: it is bytes"),
        ({"model_path": 5}, "model_path 5: it is the path of a file"),
        ({"model_path": b"x", "model_content": None}, "model_path b'x': it is the path"),
        ({"experimental_delegates": 5}, "experimental_delegates 5: it is a list"),
        ({"experimental_op_resolver_type": 5}, "experimental_op_resolver_type 5: it is one of"),
        ({"experimental_preserve_all_tensors": "no"}, "preserve_all_tensors 'no': it is True or"),
        ({"strict": 1}, "strict 1: it is True or False"),
        ({"assumptions": None}, "assumptions None: it is True or False"),
        ({"device": "usb"}, "device 'usb': it is a darwinn_testbench.chip.session.Device"),
        ({"model_path": "model.tflite"}, "only one of them can be given"),
        ({"model_path": "", "model_content": None}, "one of model_path and model_content is"),
        ({"model_content": None}, "one of model_path and model_content is"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Interpreter(**{"model_content": compiled(), **arguments})


def test_a_refused_shape_is_said_in_plain_numbers() -> None:
    sizes: Any = [2, np.int32(200)]
    with pytest.raises(ValueError, match=r"cannot become \[2, 200\]"):
        ready(compiled()).resize_tensor_input(0, sizes)


def test_an_index_is_any_integer_as_in_litert() -> None:
    interpreter, theirs = ready(uncompiled(DENSE)), litert.Interpreter(model_content=compiled())
    scalars: list[Any] = [np.array(0), np.int64(0), True]
    for index in scalars:
        assert interpreter.get_tensor(index).shape == interpreter.get_tensor(int(index)).shape
    others: list[Any] = ["0", 0.0, None, np.array([0, 1])]
    for index in others:
        with pytest.raises(TypeError):
            theirs.get_tensor(index)
        with pytest.raises(TypeError, match=r"tensor index .*: it is an integer"):
            interpreter.get_tensor(index)


def test_a_shape_is_refused_for_what_it_is() -> None:
    interpreter = ready(uncompiled(DENSE))
    with pytest.raises(ValueError, match=r"\[1, 30\] in the model, which is not compiled, and can"):
        interpreter.resize_tensor_input(0, [2, 30])
    ragged: Any = [[1, 2], [3]]
    with pytest.raises(
        ValueError, match=r"tensor_size \[\[1, 2\], \[3\]\]: it is a list of integers"
    ):
        interpreter.resize_tensor_input(0, ragged)


def test_tensors_between_operators_of_litert_are_kept_if_asked_for() -> None:
    networks = segments()
    model = whole_model(networks)
    between = {each["name"]: each["index"] for each in ready(model).get_tensor_details()}
    kept = ready(model, experimental_preserve_all_tensors=True)
    kept.set_tensor(0, random_floats(1))
    kept.invoke()
    assert np.array_equal(
        kept.get_tensor(between["floats1"]), whole_expected(networks[:1], random_floats(1))
    )
    with pytest.raises(ValueError, match="kept by no one"):
        ready(model).get_tensor(between["floats1"])


def test_damaged_models_end_in_one_error(tmp_path: Path) -> None:
    model = compiled()
    path = tmp_path / "cut_edgetpu.tflite"
    path.write_bytes(model[: len(model) // 2])
    with pytest.raises(FormatError, match=r"cut_edgetpu.*byte"):
        Interpreter(str(path))
    with pytest.raises(FileNotFoundError):
        Interpreter(tmp_path / "none.tflite")
    with pytest.raises(FormatError, match=r"byte 4: Model: .*a bare package: use Session"):
        Interpreter(model_content=darwinn.dump(compile_network(DENSE)))
    options = model.replace(b"DWN1", b"DWN9", 1)
    assert options != model
    with pytest.raises(FormatError, match=r"operators\[0\].custom_options"):
        Interpreter(model_content=options)
    unknown = whole_model(segments(), names=("edgetpu-custom-op", "SomebodysOp"))
    with pytest.raises(ModelError, match="unresolved custom op: SomebodysOp"):
        ready(unknown)
    several = multi_chip([compile_network(DENSE)] * 2)
    with pytest.raises(InputError, match="2 models"):
        Interpreter(model_content=edgetpu_model(DENSE, several))
    other = edgetpu_model(DENSE, compile_network(random_dense([30, 21], 1)))
    with pytest.raises(InputError, match="has output"):
        Interpreter(model_content=other)


def test_signatures_are_run_by_name_as_in_litert(corpus: Path) -> None:
    """No compiled model at hand has kept its signatures, so it is one before compilation."""
    path = str(corpus / "tflite" / "dense_256.tflite")
    ours, theirs = Interpreter(path), litert.Interpreter(path)
    assert ours.get_signature_list() == theirs.get_signature_list()
    assert ours._get_full_signature_list() == theirs._get_full_signature_list()
    runner, their_runner = ours.get_signature_runner(), theirs.get_signature_runner()
    (name,) = runner.get_input_details()
    assert repr(runner.get_input_details()) == repr(their_runner.get_input_details())
    assert repr(runner.get_output_details()) == repr(their_runner.get_output_details())
    detail = runner.get_input_details()[name]
    values = np.random.default_rng(1).integers(-128, 128, detail["shape"]).astype(detail["dtype"])
    found, wanted = runner(**{name: values}), their_runner(**{name: values})
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[key], wanted[key]) for key in wanted)
    with pytest.raises(ValueError, match="the inputs of the signature are"):
        runner(other=values)


def test_the_chip_of_a_corpus_model_computes_as_darwinn_run(corpus: Path) -> None:
    """MobileNet v1 is all on the chip: the whole model gives what its executable gives."""
    path = path_of(corpus, "mobilenet_v1_0.25_128_quant")
    image = np.random.default_rng(0).integers(0, 256, (1, 128, 128, 3), np.uint8)
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    source = interpreter.get_input_details()[0]
    interpreter.set_tensor(source["index"], image)
    interpreter.invoke()
    (row,) = run(path, [{source["name"]: image}]).rows
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert np.array_equal(found, row.tensor)
