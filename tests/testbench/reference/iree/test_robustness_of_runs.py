"""Whatever loads can be run, or fails with an error that says where."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_reference.iree import IreeReference
from darwinn_reference.protocol import Datum, Port

CHANGES = 700
BLOCKS = 5_000
LARGEST = 1 << 20
"""Elements of an argument that is made: types may come from checks, which are changed as well."""


def datum_for(port: Port) -> Datum:
    if port.dtype is None or port.shape is None:
        return np.ones((4, 4), np.float32)
    if not port.shape:
        number: Datum = port.dtype.type(3)
        return number
    shape = [size or 2 for size in port.shape]
    if math.prod(shape) > LARGEST:
        raise ExecutionError("an argument that is too large to be made")
    return np.ones(shape, port.dtype)


@pytest.mark.parametrize(
    "name",
    ["v17/scalar_ctl.vmvx", "v17/matmul_i8_dyn.vmvxinline", "v17/state_util.vmvx", "v15/add.vmvx"],
)
def test_changed_modules_run_or_fail_with_a_reason(
    corpus: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("darwinn_reference.iree.reference.MAXIMUM_BLOCKS", BLOCKS)
    monkeypatch.setattr("darwinn_reference.iree.memory.MAXIMUM_ALLOCATION", 1 << 20)
    data = (corpus / "vmfb" / f"{name}.vmfb").read_bytes()
    chosen = random.Random(name)
    outcomes = {"ran": 0, "failed": 0, "refused": 0}
    for _ in range(CHANGES):
        changed = bytearray(data)
        changed[chosen.randrange(len(data))] = chosen.randrange(256)
        outcomes[outcome(bytes(changed))] += 1
    assert all(outcomes.values()), outcomes


def outcome(data: bytes) -> str:
    try:
        reference = IreeReference(data)
    except FormatError:
        return "refused"
    except ExecutionError:
        return "failed"
    result = "ran"
    for function in reference.functions:
        try:
            inputs = [datum_for(port) for port in reference.inputs(function)]
            reference.run(inputs, function=function)
        except ExecutionError as error:
            assert str(error)
            result = "failed"
    return result
