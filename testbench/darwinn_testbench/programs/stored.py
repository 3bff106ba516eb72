"""Calls whose results are stored: in NumPy files, and in ExecuTorch's bundled programs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from darwinn_formats import executorch
from darwinn_formats.executorch import schema
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Datum, Output

from darwinn_testbench.chip.array_files import stored_array, stored_arrays
from darwinn_testbench.errors import InputError

_CALL_KEY = re.compile(r"call(\d+)_(?:fn|in(\d+)|out(\d+))")
_TAP_KEY = re.compile(r"tap\d+")
"""Arrays of ``darwinn run --tap``, which are no outputs."""


@dataclass(frozen=True)
class StoredCall:
    """A call with its expected outputs.

    ``function`` and ``inputs`` are None where the file does not say. Outputs without a name are in
    the order of the function. ``fresh`` calls begin with the state of a program just loaded.
    """

    outputs: tuple[Output, ...]
    function: str | None = None
    inputs: tuple[Datum, ...] | None = None
    fresh: bool = False


def read_stored(path: str | os.PathLike[str], runs: int = 1) -> list[StoredCall]:
    """Stored outputs: an .npz by names of outputs, an .npy of the only one, or an .npz of calls.

    The arrays of calls are ``call{i}_in{k}`` and ``call{i}_out{k}``, with the name of a function in
    ``call{i}_fn``. Of several ``runs`` the other forms have a further leading dimension.

    Raises:
        InputError: the file is not of these forms.
        OSError: it cannot be read.
    """
    path = Path(path)
    if path.suffix.lower() == ".npy":
        return _split({"": np.asarray(stored_array(path))}, runs, path)
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path}: stored outputs are in an .npz or .npy file")
    arrays = {name: np.asarray(each) for name, each in stored_arrays(path).items()}
    if any(_CALL_KEY.fullmatch(key) for key in arrays):
        return list(_calls(arrays, path))
    outputs = {key: array for key, array in arrays.items() if not _TAP_KEY.fullmatch(key)}
    if not outputs:
        raise InputError(f"{path}: holds no outputs")
    return _split(outputs, runs, path)


def _split(outputs: dict[str, AnyArray], runs: int, path: Path) -> list[StoredCall]:
    for name, array in outputs.items():
        if runs > 1 and array.shape[:1] != (runs,):
            raise InputError(f"{path}: {name or 'the array'} is not of {runs} inferences")
    return [
        StoredCall(
            tuple(
                Output(name, _datum(array if runs == 1 else np.asarray(array[run]), path, name))
                for name, array in outputs.items()
            )
        )
        for run in range(runs)
    ]


def _calls(arrays: dict[str, AnyArray], path: Path) -> Iterator[StoredCall]:
    def of_key(key: str) -> Datum:
        return _datum(arrays[key], path, key)

    matches = [match for key in arrays if (match := _CALL_KEY.fullmatch(key))]
    for number in range(1 + max(int(match[1]) for match in matches)):
        of_call = [match for match in matches if int(match[1]) == number]
        inputs = sorted(int(match[2]) for match in of_call if match[2])
        outputs = sorted(int(match[3]) for match in of_call if match[3])
        if not outputs or [*inputs, *outputs] != [*range(len(inputs)), *range(len(outputs))]:
            raise InputError(f"{path}: call {number} has inputs {inputs} and outputs {outputs}")
        name = f"call{number}_fn"
        yield StoredCall(
            tuple(Output("", of_key(f"call{number}_out{k}")) for k in outputs),
            str(arrays[name]) if name in arrays else None,
            tuple(of_key(f"call{number}_in{k}") for k in inputs),
        )


def _datum(array: AnyArray, path: Path, name: str) -> Datum:
    """A text or an array of numbers; InputError for anything else, which no output is."""
    if array.dtype.kind == "U" and array.ndim == 0:
        return str(array)
    if array.dtype.kind not in "fiub":
        where = f"{path}: {name}" if name else f"{path}"
        raise InputError(f"{where}: data of dtype {array.dtype} cannot be used")
    return array


def bundled_calls(file: executorch.ProgramFile) -> list[StoredCall]:
    """The test cases of a bundled program; none of other programs."""
    suites = () if file.bundle is None else file.bundle.method_test_suites
    return [
        StoredCall(
            tuple(Output("", _bundled(value)) for value in case.expected_outputs),
            suite.method_name,
            tuple(map(_bundled, case.inputs)),
            fresh=True,
        )
        for suite in suites
        for case in suite.test_cases
    ]


def _bundled(value: schema.BundledValue) -> Datum:
    match value.val:
        case schema.BundledTensor(scalar_type, sizes, data, dim_order):
            dtype = schema.DTYPES.get(scalar_type)
            if dtype is None:
                raise InputError(f"stored tensor of {scalar_type.name}: NumPy has no such type")
            order = tuple(dim_order) or tuple(range(len(sizes)))
            stored = np.frombuffer(data, dtype).reshape([sizes[axis] for axis in order])
            return stored.transpose(np.argsort(order))
        case schema.BundledInt(number) | schema.BundledBool(number) | schema.BundledDouble(number):
            return number
    return None
