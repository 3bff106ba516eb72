"""Constants of IREE modules, which have no types, are found by those of the other program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.iree import load, load_parameters
from darwinn_reference.iree import IreeReference
from darwinn_testbench.comparison.constant import Constant
from darwinn_testbench.comparison.constants import differing
from darwinn_testbench.comparison.untyped_constants import Store, cut, rows_of, stores_of
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import matrix_product, uncompiled
from darwinn_testbench.report import Verdict
from iree_parameters import Entry, archive
from vmfb_matmul import constants_of, weights_of

RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(-127, 128, (8, 3, 3, 4)).astype(np.int8)
FLOATS = RANDOM.normal(size=(24, 10)).astype(np.float32)
BIAS = RANDOM.integers(-900, 900, 21).astype(np.int32)


def packed(*arrays: Any) -> Store:
    """Constants one after another, each at a multiple of 64 bytes."""
    parts = (each.tobytes() + bytes(-each.nbytes % 64) for each in arrays)
    return Store("data 0", memoryview(b"".join(parts)))


def differences(stored: list[Any], constants: list[Any]) -> list[tuple[str, str, int]]:
    others = [Constant(f"c{number}", data) for number, data in enumerate(constants)]
    found = differing(cut([packed(*stored)], others), others)
    return [(each.where, each.name, each.differing) for each in found]


def changed(data: Any, count: int = 1) -> Any:
    copy = np.array(data, order="C")
    copy.reshape(-1)[5 : 5 + count] += 3
    return copy


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (1, 2, 3, 0)])
def test_a_changed_element_is_found_where_it_is_in_any_order(order: Any) -> None:
    constants = [WEIGHTS, FLOATS, BIAS]
    turned = np.ascontiguousarray(WEIGHTS.transpose(order))
    assert differences([FLOATS, turned, BIAS], constants) == []
    assert differences([FLOATS, changed(turned), BIAS], constants) == [
        ("constant data 0 at byte 960", "c0", 1)
    ]
    (of_floats,) = differences([changed(FLOATS.T), turned, BIAS], constants)
    assert of_floats == ("constant data 0 at byte 0", "c1", 1)
    (of_bias,) = differences([FLOATS, turned, changed(BIAS)], constants)
    assert of_bias == ("constant data 0 at byte 1280", "c2", 1)


def test_a_row_without_sizes_is_found_as_a_matrix_turned() -> None:
    row = np.ascontiguousarray(FLOATS.T).reshape(-1)
    assert differences([WEIGHTS, FLOATS], [row]) == []
    assert differences([WEIGHTS, changed(FLOATS)], [row]) == [
        ("constant data 0 at byte 320", "c0", 1)
    ]


def test_elements_in_tiles_are_the_same_elements() -> None:
    tiled = FLOATS.reshape(6, 4, 5, 2).transpose(2, 0, 3, 1)
    assert differences([WEIGHTS, tiled], [FLOATS]) == []
    (same,) = cut([packed(WEIGHTS, tiled)], [Constant("c", FLOATS)])
    assert same.name == "data 0 at byte 320"


def test_integers_are_found_in_a_wider_type() -> None:
    assert differences([changed(WEIGHTS.astype(np.int32))], [WEIGHTS]) == [
        ("constant data 0 at byte 0", "c0", 1)
    ]


def test_constants_of_other_networks_are_not_compared() -> None:
    other = RANDOM.integers(-127, 128, WEIGHTS.shape).astype(np.int8)
    assert differences([other, FLOATS], [WEIGHTS]) == []
    assert differences([changed(WEIGHTS, 100)], [WEIGHTS]) == []
    # Mostly zeros are in any zeros.
    few = np.zeros(400, np.int8)
    few[[3, 50, 200]] = 1, 2, 3
    assert differences([np.zeros(400, np.int8), WEIGHTS], [few]) == []


def test_the_counterpart_is_not_one_that_another_constant_has() -> None:
    near = changed(WEIGHTS)
    assert differences([near, WEIGHTS], [WEIGHTS, near]) == []
    assert differences([near], [WEIGHTS, near]) == []


def test_floats_that_compilers_round_apart_are_the_same() -> None:
    rounded = FLOATS.copy()
    rounded[0, :3] = np.nextafter(rounded[0, :3], np.float32(9))
    assert differences([rounded], [FLOATS]) == []
    pair = [Constant("a", FLOATS)], [Constant("b", rounded)]
    assert differing(*pair) == []


def test_data_of_two_modules_are_rows() -> None:
    def found(left: Any, right: Any) -> int:
        ours, theirs = (rows_of([packed(each)]) for each in (left, right))
        return sum(each.differing for each in differing(ours, theirs))

    assert found(WEIGHTS, WEIGHTS) == found(FLOATS, FLOATS) == 0
    assert found(WEIGHTS, changed(WEIGHTS)) == 1
    assert found(FLOATS, changed(FLOATS)) == 1


def test_a_file_of_parameters_is_data_of_its_module(corpus: Path) -> None:
    module = load(corpus / "vmfb" / "v17" / "add.vmvx.vmfb").module
    file = load_parameters(archive([Entry("weights", changed(FLOATS).tobytes())]))
    others = [Constant("c", FLOATS)]
    (difference,) = differing(cut(stores_of(module, [file]), others), others)
    assert difference.where == "constant parameter weights at byte 0"
    program = IreeReference(corpus / "vmfb" / "v17" / "add.vmvx.vmfb", parameters=[file])
    assert program.parameters == (file,)


@pytest.mark.parametrize("name", ["v17/qmatmul_const.vmvx", "v15/qmatmul_const.vmvx"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_weight_of_a_module_that_differs_is_a_mismatch(
    corpus: Path, name: str, swapped: bool
) -> None:
    path = corpus / "vmfb" / f"{name}.vmfb"
    weights, numbers = weights_of(path, 8), constants_of(path)

    def judged(weights: Any) -> Any:
        sides = path, uncompiled(matrix_product("qmm", weights, 4, **numbers))
        left, right = sides[::-1] if swapped else sides
        return verify(left, reference=right, runs=2)

    assert judged(weights).figures["divergences"] == []
    planted = weights.copy()
    planted[3, 3] += 1
    report = judged(planted)
    assert report.verdict is Verdict.MISMATCH
    (difference,) = report.figures["divergences"]
    assert (difference.differing, difference.elements) == (1, 64)
