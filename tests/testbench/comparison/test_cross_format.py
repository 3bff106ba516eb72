"""One network in four formats: the simulated chip against the reference of each.

The network is written once, in integers. As a BEF, or as a .vmfb that was there first, it is the
same on every byte; as a .pte, which computes in float32 between quantised values, within 1 step.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import tfrt
from darwinn_formats.darwinn import dump
from darwinn_formats.errors import ExecutionError
from darwinn_reference.errors import Unsupported
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.original import OriginalRuntime, unavailable
from darwinn_reference.iree import IreeReference
from darwinn_reference.protocol import Intermediate, Reference
from darwinn_reference.tfrt import TfrtReference, dense
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import (
    NATIVES,
    Convolution,
    DenseNetwork,
    bef_file,
    bef_text,
    compile_network,
    executorch_program,
    matrix_product,
    random_convolution,
    random_dense,
)
from darwinn_testbench.compiler.fixed_point import exact_factor
from darwinn_testbench.compiler.network import Sample
from darwinn_testbench.compiler.uncompiled import uncompiled
from darwinn_testbench.policy import parse
from darwinn_testbench.report import Verdict
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sample_files import sample
from sample_runs import Array, Chip, chips, random_input
from vmfb_matmul import constants_of, weights_of

NETWORKS: dict[str, Sample] = {
    "dense": random_dense((200, 160, 72), 0),
    "convolution": random_convolution(24, 32, 4, 20, 0),
    "convolution, int8": random_convolution(12, 16, 8, 12, 1, signed=True),
    "convolution of 1 x 1": random_convolution(5, 6, 4, 9, 2, kernel=1, signed=True),
    "one layer": random_dense((9, 5), 3),
}
RUNS = 5
SEED = 20
QMATMUL = ("v17/qmatmul_const.vmvx", "v15/qmatmul_const.vmvx")


def inputs_of(network: Sample) -> list[Array]:
    """Random inputs, both extremes, and extremes at random."""
    images = [random_input(network, SEED + run) for run in range(RUNS)]
    limits = np.iinfo(images[0].dtype)
    extremes = [np.full_like(images[0], value) for value in (limits.min, limits.max)]
    mixed = np.where(images[0] > images[0].mean(), limits.max, limits.min)
    return [*images, *extremes, mixed.astype(images[0].dtype)]


def output_of(network: Sample) -> tuple[np.float32, int]:
    """Scale and zero point of the result."""
    last = network.layers[-1] if isinstance(network, DenseNetwork) else network
    return last.output.scale, last.output.zero_point


def chip_of(network: Sample) -> Chip:
    (chip,) = chips(compile_network(network))
    return chip


def run_float(reference: Reference, network: Sample, image: Array) -> NDArray[np.int64]:
    """The quantised outputs, flat, of a reference of float32 in NCHW, if there are channels."""
    values = (image.astype(np.float32) - network.input.zero_point) * network.input.scale
    is_image = isinstance(network, Convolution)
    if is_image:
        values = np.ascontiguousarray(values.transpose(0, 3, 1, 2))
    (output,) = reference.run([values])
    result = np.asarray(output.data)
    if is_image:
        result = result.transpose(0, 2, 3, 1)
    scale, zero_point = output_of(network)
    steps = result / scale
    # What comes out are steps of the quantiser, and nothing between.
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3)
    quantised: NDArray[np.int64] = np.rint(steps).astype(np.int64).ravel() + zero_point
    return quantised


def check_float(reference: Reference, network: Sample) -> None:
    """Within 1 step everywhere, and another value in at most one of a hundred places."""
    chip = chip_of(network)
    for image in inputs_of(network):
        difference = np.abs(run_float(reference, network, image) - chip.infer(image))
        assert difference.max() <= 1
        assert np.count_nonzero(difference) <= difference.size // 100


@pytest.mark.parametrize("name", NETWORKS)
def test_a_bef_is_exact(name: str) -> None:
    network = NETWORKS[name]
    chip, reference = chip_of(network), TfrtReference(bef_file(network), natives=NATIVES)
    for image in inputs_of(network):
        (output,) = reference.run([image])
        assert isinstance(output.data, np.ndarray)
        assert output.data.dtype == image.dtype
        np.testing.assert_array_equal(output.data.ravel(), chip.infer(image))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_pte_is_one_step_off_at_most(name: str) -> None:
    network = NETWORKS[name]
    check_float(ExecutorchReference(executorch_program(network)), network)


@pytest.mark.skipif(bool(unavailable()), reason=unavailable())
@pytest.mark.parametrize("name", NETWORKS)
def test_a_pte_in_the_original_runtime(name: str) -> None:
    network = NETWORKS[name]
    check_float(OriginalRuntime(executorch_program(network)), network)


def test_ports_carry_the_names_of_the_network() -> None:
    for network in NETWORKS.values():
        reference = ExecutorchReference(executorch_program(network))
        (source,), (result,) = reference.inputs(), reference.outputs()
        assert (source.name, result.name) == (network.source, network.result)
        assert source.dtype == result.dtype == np.float32


def test_text_and_bytes_of_a_bef_say_the_same() -> None:
    network = random_dense((6, 5, 4), 1)
    data = bef_file(network)
    text = tfrt.to_text(tfrt.load(data), exact=True)
    assert tfrt.dump(tfrt.from_text(text, f"{network.name}.mlir")) == data
    again = tfrt.from_text(bef_text(network), f"{network.name}.mlir")
    assert tfrt.to_text(again, exact=True) == text


def test_a_tap_sees_every_layer_of_a_bef() -> None:
    network = random_dense((20, 12, 9, 4), 5)
    reference = TfrtReference(bef_file(network), natives=NATIVES)
    image = random_input(network, 0)
    seen: list[Array] = []

    def tap(value: Intermediate) -> None:
        if value.operation == "tfrt.call":
            assert value.location == f'"{network.tensor_name(len(seen))}"'
            seen.append(value.data.ravel().copy())

    reference.run([image], tap=tap)
    assert len(seen) == len(network.layers)
    for count, values in enumerate(seen, 1):
        np.testing.assert_array_equal(values, chip_of(network.part(0, count)).infer(image))


def test_native_functions_that_are_not_registered_are_named() -> None:
    with pytest.raises(Unsupported, match=r"native functions .* darwinn\.fully_connected"):
        TfrtReference(bef_file(NETWORKS["one layer"]))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros((1, 8), np.int8), "values and weights do not fit"),
        (np.zeros((1, 9), np.float32), "values are float32, not int8"),
    ],
)
def test_values_that_do_not_fit_the_weights_are_an_error(values: Array, reason: str) -> None:
    reference = TfrtReference(bef_file(NETWORKS["one layer"]), natives=NATIVES)
    with pytest.raises(ExecutionError, match=reason):
        reference.run([values])


@pytest.mark.parametrize("position", ["weights", "bias", "factors"])
def test_a_wrong_constant_shows(position: str) -> None:
    """The arithmetic takes everything that the file says into account."""
    network = NETWORKS["one layer"]
    image = random_input(network, 0)

    def spoil(*arguments: Any) -> object:
        tensors = dict(zip(("weights", "bias", "factors"), arguments[2:5], strict=True))
        wrong = np.asarray(tensors[position].data)
        changed = dense(wrong.copy() * wrong.dtype.type(0))
        given = [changed if name == position else value for name, value in tensors.items()]
        return NATIVES["darwinn.fully_connected"](*arguments[:2], *given, *arguments[5:])

    natives = {"darwinn.fully_connected": spoil}
    (output,) = TfrtReference(bef_file(network), natives=natives).run([image])
    assert not np.array_equal(np.asarray(output.data).ravel(), chip_of(network).infer(image))


# --- the command --------------------------------------------------------------------------------


def verified(
    capsys: pytest.CaptureFixture[str], device: Path, reference: Path, *options: str
) -> list[dict[str, Any]]:
    """Rows of a verdict that has to be pass."""
    command = ["verify", str(device), "--reference", str(reference), "--json", "--strict"]
    assert run_command_line([*command, *options]) == 0, capsys.readouterr()
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return rows


@pytest.mark.parametrize("network", ["dense", "convolution"])
@pytest.mark.parametrize(
    ("suffix", "policy", "more"),
    [
        (".pte", "lsb:1", ()),
        (".bef", "exact", ("--natives", "darwinn_testbench.compiler.natives")),
    ],
)
def test_the_command_verifies_a_network_by_its_other_formats(
    samples: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    network: str,
    suffix: str,
    policy: str,
    more: tuple[str, ...],
) -> None:
    device, reference = samples / f"{network}_edgetpu.tflite", samples / f"{network}{suffix}"
    images = inputs_of(NETWORKS[network])
    np.save(tmp_path / "images.npy", np.stack(images))
    inputs = ("--inputs", str(tmp_path / "images.npy"))
    rows = verified(capsys, device, reference, *inputs, *more)
    assert len(rows) == len(images)
    assert {(row["verdict"], row["policy"]) for row in rows} == {("pass", policy)}


PAIRS = [
    ("_edgetpu.tflite", ".tflite"),
    ("_edgetpu.tflite", ".pte"),
    ("_edgetpu.tflite", ".bef"),
    (".tflite", ".pte"),
    (".tflite", ".bef"),
]


@pytest.mark.parametrize("network", ["dense", "convolution"])
@pytest.mark.parametrize(("file", "reference"), PAIRS)
def test_the_files_of_a_network_agree(
    samples: Path, network: str, file: str, reference: str
) -> None:
    """Within the step by which LiteRT and float arithmetic round otherwise than the chip."""
    report = verify(
        samples / f"{network}{file}",
        samples / f"{network}{reference}",
        natives=NATIVES if reference == ".bef" else None,
        policy=parse("lsb:1,1%"),
        seed=SEED,
        runs=RUNS,
    )
    assert len(report.rows) == RUNS
    assert report.verdict is Verdict.PASS, report.message


FORMATS = (".tflite", ".pte", ".bef")


@pytest.mark.parametrize("network", ["dense", "convolution"])
@pytest.mark.parametrize(("file", "reference"), list(permutations(FORMATS, 2)))
def test_all_pairs_of_formats_agree_by_their_own_policy_both_ways(
    samples: Path, network: str, file: str, reference: str
) -> None:
    """Generated inputs, no map and no policy: all follow from the two files."""
    report = verify(
        samples / f"{network}{file}",
        samples / f"{network}{reference}",
        natives=NATIVES if ".bef" in (file, reference) else None,
        localise=True,
        runs=2,
    )
    assert report.verdict is Verdict.PASS, report.message
    assert not report.figures["divergences"]
    assert {row.policy for row in report.rows} == {"lsb:1"}


def hidden_error() -> tuple[DenseNetwork, DenseNetwork]:
    """Two networks that differ in a weight of the first layer, which no output shows: what it makes
    is multiplied by zero.
    """
    network = random_dense((40, 24, 12), 5)
    first, last = network.layers
    blind = last.weights.copy()
    blind[:, 7] = 0
    wrong = first.weights.copy()
    wrong[7] = np.where(wrong[7] > 0, -100, 100)
    ends = replace(network, layers=(first, replace(last, weights=blind)))
    return ends, replace(ends, layers=(replace(first, weights=wrong), ends.layers[1]))


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both networks in every format."""
    folder = tmp_path_factory.mktemp("hidden")
    for name, network in zip(("right", "wrong"), hidden_error(), strict=True):
        (folder / f"{name}.pte").write_bytes(executorch_program(network))
        (folder / f"{name}.bef").write_bytes(bef_file(network))
        (folder / f"{name}.tflite").write_bytes(uncompiled(network))
    return folder


@pytest.mark.parametrize(("file", "reference"), list(product(FORMATS, FORMATS))[1:])
def test_an_error_that_no_output_shows_is_a_mismatch(
    hidden: Path, file: str, reference: str
) -> None:
    # Two models before compilation, the first pair, are nothing that this command compares.
    natives = NATIVES if ".bef" in (file, reference) else None
    options: dict[str, Any] = {"natives": natives, "runs": 1, "localise": True}
    if file == reference == ".bef":
        # Neither says the type of its input.
        (port,) = TfrtReference(hidden / "right.bef", natives=NATIVES).inputs()
        options["inputs"] = [{port.name: np.arange(-20, 20, dtype=np.int8).reshape(1, 40)}]
    right = verify(hidden / f"right{file}", hidden / f"right{reference}", **options)
    assert right.verdict is Verdict.PASS, right.message
    wrong = verify(hidden / f"wrong{file}", hidden / f"right{reference}", **options)
    assert all(row.verdict is Verdict.PASS for row in wrong.rows), wrong.message
    assert wrong.verdict is Verdict.MISMATCH
    assert "though all outputs agree" in wrong.message


def test_the_command_sees_what_is_wrong(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The network of another seed, in the same formats, is another network."""
    sample(tmp_path, seed=1)
    for suffix in (".pte", ".bef"):
        device, reference = samples / "dense.package", tmp_path / f"dense{suffix}"
        command = ["verify", str(device), "--reference", str(reference), "--json", "--runs", "1"]
        command += ["--natives", "darwinn_testbench.compiler.natives"] * (suffix == ".bef")
        assert run_command_line(command) == 1
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert row["verdict"] == "mismatch"


# --- a matrix product of IREE -------------------------------------------------------------------


@pytest.mark.parametrize("name", QMATMUL)
def test_a_matrix_product_of_iree_is_exact_on_the_chip(corpus: Path, name: str) -> None:
    """Weights, zero points and scale are read from the module, and compiled for the chip."""
    path = corpus / "vmfb" / f"{name}.vmfb"
    reference = IreeReference(path)
    with np.load(path.with_suffix(".npz")) as stored:
        golden, expected = stored["call0_in0"], stored["call0_out0"]
    network = matrix_product(
        "qmm", weights_of(path, golden.shape[1]), len(golden), **constants_of(path)
    )
    chip = chip_of(network)
    np.testing.assert_array_equal(chip.infer(golden), expected.ravel())
    for image in inputs_of(network):
        rows = image.reshape(golden.shape)
        (output,) = reference.run([rows])
        np.testing.assert_array_equal(chip.infer(image), np.asarray(output.data).ravel())


@pytest.mark.parametrize("name", QMATMUL)
def test_the_command_verifies_a_matrix_product_by_its_module(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = corpus / "vmfb" / f"{name}.vmfb"
    network = matrix_product("qmm", weights_of(path, 8), 4, **constants_of(path))
    device = tmp_path / "qmm.package"
    device.write_bytes(dump(compile_network(network)))
    # Modules of version 15 do not say what their inputs are.
    shape = ("--map", "input=0:4x8") if name.startswith("v15") else ()
    rows = verified(capsys, device, path, "--runs", "5", *shape)
    assert [(row["verdict"], row["policy"]) for row in rows] == [("pass", "exact")] * 5


def fixed_point(total: NDArray[np.int64], multiplier: int, shift: int) -> NDArray[np.int64]:
    return (total * multiplier + (1 << (shift - 1))) >> shift


@settings(max_examples=15)
@given(
    rows=st.integers(1, 6),
    inner=st.integers(1, 5).map(lambda count: 4 * count),
    columns=st.integers(1, 20),
    divisor=st.integers(3, 2000).filter(lambda number: number & (number - 1) != 0),
    zero_points=st.tuples(st.integers(-30, 30), st.integers(-30, 30)),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_matrix_product_in_fixed_point(
    rows: int, inner: int, columns: int, divisor: int, zero_points: tuple[int, int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    weights = random.integers(-128, 128, (inner, columns), np.int8)
    shift = 30 + divisor.bit_length()
    multiplier = (1 << shift) // divisor
    network = matrix_product(
        "product",
        weights,
        rows,
        input_zero_point=zero_points[0],
        output_zero_point=zero_points[1],
        multiplier=multiplier,
        shift=shift,
    )
    values = random.integers(-128, 128, (rows, inner), np.int8)
    total = (values.astype(np.int64) - zero_points[0]) @ weights.astype(np.int64)
    expected = np.clip(fixed_point(total, multiplier, shift) + zero_points[1], -128, 127)
    np.testing.assert_array_equal(chip_of(network).infer(values), expected.ravel())


@pytest.mark.parametrize(
    ("multiplier", "shift", "reason"),
    [
        # Halves of exact powers of two go up here, and to even on the chip.
        (1 << 30, 38, "no float32 factor rounds every sum up to 1000 alike"),
        (0, 8, "no factor of a fixed point"),
        (1 << 32, 8, "no factor of a fixed point"),
        (1, 63, "no factor of a fixed point"),
    ],
)
def test_what_no_factor_expresses_is_refused(multiplier: int, shift: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        exact_factor(multiplier, shift, 1000, 0)
