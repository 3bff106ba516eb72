"""Input tensors for a model: from arrays, files, images or a seed, checked against its ports."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from darwinn_formats.errors import FormatError
from darwinn_formats.files import is_there, read_file
from darwinn_formats.limits import refuse_size
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Steps

from darwinn_testbench.chip.array_files import StoredArray, stored_array, stored_arrays
from darwinn_testbench.chip.images import IMAGE_MIDDLE, IMAGE_SUFFIXES, open_image, picture_shape
from darwinn_testbench.chip.input_kinds import draw
from darwinn_testbench.errors import InputError
from darwinn_testbench.request.inputs import InputKind
from darwinn_testbench.request.inputs import Inputs as Inputs

TensorMap = Mapping[str, AnyArray]
"""Tensors by the name of their port."""

Given = AnyArray | StoredArray
"""An array, or one that is in a file and has not been read."""

SEED_STEP = 1000
"""Step between the seeds of two runs: seeds below it share no set of inputs."""

FURTHER_SETS = 15
"""Most further sets of inputs that a verification generates for a small program."""

FURTHER_WORK = 12 << 20
"""Most work of the chip in all their inferences (docs/cli.md)."""

_MOST_SETS = 1 << 16
"""Most inferences of given data: each is a row of the report, and a small file can ask for any
number.
"""


@dataclass(frozen=True)
class TensorPort:
    """A tensor that a model takes or gives: its name, shape, dtype and quantisation.

    ``scale`` 0 means that the tensor is not quantised. The real value of an element q is
    ``scale * (q - zero_point)``. ``limits`` are the least and greatest value that a floating point
    tensor, or an integer that indexes something, is drawn from, where they are known. One that a
    program quantises first is drawn from the values that this leaves, ``steps``.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: float = 0.0
    zero_point: int = 0
    limits: tuple[float, float] | None = None
    steps: Steps | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __str__(self) -> str:
        return f"{self.name} ({self.dtype} {'x'.join(map(str, self.shape))})"


def choose_inputs(
    given: Inputs,
    ports: Sequence[TensorPort],
    *,
    seed: int,
    runs: int | None,
    inputs_kind: Sequence[str] = (),
) -> Sequence[dict[str, AnyArray]]:
    """Input sets from files, arrays or a seed.

    Without files and arrays, ``runs`` sets of the kinds ``inputs_kind`` (by default all) are
    generated, in their order and then again from the first; without ``runs``, one of each kind.
    Kinds apply only to generated inputs.

    Raises:
        InputError: data that does not fit the ports, or runs or kinds of given data.
        OSError: a file that cannot be read.
    """
    if given is None:
        return random_inputs(ports, seed, runs, inputs_kind)
    refuse_drawing(runs, inputs_kind)
    files = [item for item in given if not isinstance(item, Mapping)]
    if files:
        return read_inputs(files, ports)
    return [one for item in given if isinstance(item, Mapping) for one in input_sets(item, ports)]


def further_runs(work: int) -> int:
    """How many further sets are drawn of a program whose inference does so much work."""
    return min(FURTHER_SETS, FURTHER_WORK // max(work, 1))


def few_runs(runs: int | None, inputs_kind: Sequence[str]) -> int | None:
    """``runs`` where one set is enough unless more of them, or kinds, are asked for."""
    return 1 if runs is None and not inputs_kind else runs


def refuse_drawing(runs: int | None, inputs_kind: Sequence[str]) -> None:
    """Refuse settings of generated inputs beside given ones.

    Raises:
        InputError: kinds of inputs, or a number of runs that is not 1.
    """
    if runs not in (None, 1):
        raise InputError(
            f"{runs} runs: a number of runs applies to generated inputs; for several inferences, "
            "give your inputs a further leading dimension"
        )
    if inputs_kind:
        raise InputError(
            f"{', '.join(inputs_kind)}: a kind applies to generated inputs, not to given ones"
        )


def random_inputs(
    ports: Sequence[TensorPort],
    seed: int,
    runs: int | None = None,
    inputs_kind: Sequence[str] = (),
) -> DrawnSets:
    """Sets of drawn tensors, as :func:`choose_inputs` says; the same everywhere.

    The sets are made when they are asked for: any number of runs takes the memory of one.

    Raises:
        InputError: there is no such kind.
        FormatError: a tensor that is larger than may be allocated.
    """
    for port in ports:
        refuse_size(math.prod(port.shape) * port.dtype.itemsize, f"input {port.name}")
    known = [each.value for each in InputKind]
    for name in inputs_kind:
        if name not in known:
            raise InputError(f"{name}: unknown kind of inputs; the kinds are {', '.join(known)}")
    kinds = tuple(map(InputKind, inputs_kind)) or tuple(InputKind)
    return DrawnSets(tuple(ports), seed, len(kinds) if runs is None else runs, kinds)


@dataclass(frozen=True)
class Origin:
    """Kind and seed of a generated set: the first run of this kind and seed has the same set."""

    kind: InputKind
    seed: int

    def __str__(self) -> str:
        return f"{self.kind} {self.seed}"


@dataclass(frozen=True)
class DrawnSets(Sequence[dict[str, AnyArray]]):
    """``runs`` sets of drawn tensors, each made anew whenever it is asked for.

    A set depends on its seed and kind alone: that of run K is ``seed + K * SEED_STEP``, so that it
    is also the first set of that seed, whatever the number of runs. Every second set has the
    sizes of ``smaller``, if there are any.
    """

    ports: tuple[TensorPort, ...]
    seed: int
    runs: int
    kinds: tuple[InputKind, ...] = tuple(InputKind)
    smaller: tuple[TensorPort, ...] = ()

    def __len__(self) -> int:
        return self.runs

    @overload
    def __getitem__(self, index: int) -> dict[str, AnyArray]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, AnyArray]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, AnyArray] | list[dict[str, AnyArray]]:
        if isinstance(index, slice):
            return [self[number] for number in range(self.runs)[index]]
        number = range(self.runs)[index]
        origin = self.origin(number)
        generator = np.random.default_rng(origin.seed)
        ports = self.smaller if self.smaller and number % 2 else self.ports
        return {port.name: _drawn(port, origin.kind, generator) for port in ports}

    def origin(self, run: int) -> Origin:
        """What the set of a run is drawn from."""
        return Origin(self.kinds[run % len(self.kinds)], self.seed + run * SEED_STEP)


def _drawn(port: TensorPort, kind: InputKind, generator: np.random.Generator) -> AnyArray:
    steps = port.steps
    if steps is not None:
        drawn = draw(kind, port.shape, steps.dtype, generator, zero_point=steps.zero_point)
        real = (drawn.astype(np.float64) - steps.zero_point) * steps.scale
        return np.asarray(real.astype(port.dtype))
    return draw(
        kind, port.shape, port.dtype, generator, zero_point=port.zero_point, limits=port.limits
    )


def origin_of(sets: Sequence[Any], run: int) -> Origin | None:
    """Kind and seed of the inputs of a run; None if they were given."""
    return sets.origin(run) if isinstance(sets, DrawnSets) else None


def read_inputs(
    specifications: Sequence[str | os.PathLike[str]], ports: Sequence[TensorPort]
) -> list[dict[str, AnyArray]]:
    """Input sets from files; several if the arrays have a further leading dimension.

    Each specification is ``PATH`` or ``NAME=PATH``. ``.npy`` is one tensor; ``.npz`` is several, by
    port name or, if no name fits, in order; an image is converted to the port's channels and scaled
    to its size; any other file is the tensor's bytes. Specifications without a name take
    the ports in order.

    Raises:
        InputError: a file that does not fit its port, an unknown name, a port without data.
        OSError: a file that cannot be read.
    """
    return input_sets(read_arrays(specifications, ports), ports)


def read_arrays(
    specifications: Sequence[str | os.PathLike[str]], ports: Sequence[TensorPort]
) -> dict[str, Given]:
    """Arrays by port name from files, as :func:`read_inputs` takes them, of whatever shape: those
    of NumPy's files are not read before their shapes are known to fit.

    Raises:
        InputError: a file that cannot be read as data, an unknown name.
        OSError: a file that cannot be read.
    """
    arrays: dict[str, Given] = {}
    for specification in [os.fspath(item) for item in specifications]:
        name, path = _split(specification, ports)
        free = [port for port in ports if port.name not in arrays]
        chosen = [port for port in ports if port.name == name] if name else free
        if not chosen:
            raise InputError(f"{specification}: every input of the model already has data")
        for port, array in _read(path, chosen):
            if port.name in arrays:
                raise InputError(f"{specification}: input {port.name} already has data")
            arrays[port.name] = array
    return arrays


def input_sets(arrays: Mapping[str, Any], ports: Sequence[TensorPort]) -> list[dict[str, AnyArray]]:
    """Input sets from arrays by port name; a further leading dimension means several sets.

    Floating point values are quantised with the port's scale and zero point.

    Raises:
        InputError: an array that does not fit its port, an unknown name, a port without data.
    """
    _require_names(arrays, ports)
    given = {
        name: array if isinstance(array, StoredArray) else np.asarray(array)
        for name, array in arrays.items()
    }
    counts = {port.name: _sets_in(given[port.name], port) for port in ports}
    if len(set(counts.values())) > 1:
        raise InputError(f"the inputs hold different numbers of sets: {counts}")
    runs = next(iter(counts.values()), 1)
    stacks = {port.name: _stack(np.asarray(given[port.name]), port) for port in ports}
    return [{name: stack[run] for name, stack in stacks.items()} for run in range(runs)]


def require_mapping(tensors: object, ports: Sequence[TensorPort]) -> TensorMap:
    """``tensors``, if they are a mapping; InputError otherwise."""
    if isinstance(tensors, Mapping):
        return tensors
    raise InputError(
        f"a set of inputs must map names of inputs to arrays, got {type(tensors).__name__}; "
        f"{_taken(ports)}"
    )


def require_set(
    tensors: object, ports: Sequence[TensorPort], further: Sequence[TensorPort] = ()
) -> TensorMap:
    """``tensors``, if they are one set of inputs: an array by the name of each of ``ports``, and
    maybe of ``further`` ones.

    Nothing is converted (:func:`input_sets` does that): an array has the dtype of its port, and its
    shape, or another one of as many elements that does not have the same dimensions in another
    order.

    Raises:
        InputError: an array that does not fit its port, an unknown name, a port without data.
    """
    given = require_mapping(tensors, ports)
    _require_names(given, ports, further)
    for port in (*ports, *further):
        if port.name in given:
            _require_array(given[port.name], port)
    return given


def _require_names(
    names: Mapping[str, Any], ports: Sequence[TensorPort], further: Sequence[TensorPort] = ()
) -> None:
    """Refuse names that no port has, and ports that are not among them."""
    unknown = names.keys() - {port.name for port in (*ports, *further)}
    missing = [port.name for port in ports if port.name not in names]
    if unknown or missing:
        wrong = [_taken(ports)]
        wrong += [f"there is no input {', '.join(sorted(map(str, unknown)))}"] if unknown else []
        wrong += [f"no data for {', '.join(missing)}"] if missing else []
        raise InputError("; ".join(wrong))


def _taken(ports: Sequence[TensorPort]) -> str:
    return f"the model takes {', '.join(map(str, ports)) or 'no input'}"


def _require_array(array: object, port: TensorPort) -> None:
    """Refuse what is not one set of a port, in the port's dtype."""
    if not isinstance(array, np.ndarray):
        raise InputError(f"{port}: the data must be an array of NumPy, got {type(array).__name__}")
    if array.dtype != port.dtype:
        raise InputError(
            f"{port}: the data has dtype {array.dtype}; convert it with input_sets of "
            "darwinn_testbench.chip.inputs"
        )
    if array.shape == port.shape:
        return
    if array.size != port.elements:
        raise InputError(
            f"{port}: the data has shape {_dimensions(array)}: {array.size:,} elements, and one "
            f"inference takes {port.elements:,}"
        )
    _refuse_other_order(array, port)


def _refuse_other_order(array: Given, port: TensorPort) -> None:
    """Refuse an array of as many elements as the port that has its dimensions in another order."""
    if _transposed(array.shape, port.shape):
        raise InputError(
            f"{_file_of(array)}{port}: the data has shape {_dimensions(array)}: the same "
            "dimensions in another order"
        )


def _dimensions(array: Given) -> str:
    return "x".join(map(str, array.shape)) or "scalar"


def _file_of(array: Given) -> str:
    """How an error about an array begins: its file, if it is in one."""
    return f"{array.path}: " if isinstance(array, StoredArray) else ""


def _split(specification: str, ports: Sequence[TensorPort]) -> tuple[str, Path]:
    """The port name (empty if none) and the path of ``[NAME=]PATH``; a path may contain ``=``."""
    name, separator, path = specification.partition("=")
    if separator and (any(port.name == name for port in ports) or not is_there(specification)):
        if not any(port.name == name for port in ports):
            raise InputError(
                f"{specification}: the model has no input {name!r}; it takes "
                f"{', '.join(map(str, ports)) or 'none'}"
            )
        return name, Path(path)
    return "", Path(specification)


def _read(path: Path, ports: Sequence[TensorPort]) -> Sequence[tuple[TensorPort, Given]]:
    """The arrays of a file with the ports they are for: the first port, or several of an .npz."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _read_archive(path, ports)
    if suffix == ".npy":
        return [(ports[0], stored_array(path))]
    if suffix in IMAGE_SUFFIXES:
        return [(ports[0], _read_image(path, ports[0]))]
    try:
        data = read_file(path)
    except FormatError as error:
        raise InputError(str(error)) from error
    expected = ports[0].elements * ports[0].dtype.itemsize
    if expected == 0 or len(data) % expected or not data:
        raise InputError(f"{path}: {len(data)} bytes; {ports[0]} needs {expected}, or a multiple")
    return [(ports[0], np.frombuffer(data, ports[0].dtype).reshape(-1, *ports[0].shape))]


def _read_archive(
    path: Path, ports: Sequence[TensorPort]
) -> Sequence[tuple[TensorPort, StoredArray]]:
    arrays = stored_arrays(path)
    by_name = [(port, arrays[port.name]) for port in ports if port.name in arrays]
    if by_name:
        return by_name
    if len(arrays) > len(ports) or not arrays:
        raise InputError(
            f"{path}: holds {', '.join(arrays) or 'nothing'}; none is named like an input "
            f"({', '.join(port.name for port in ports)})"
        )
    return list(zip(ports, arrays.values(), strict=False))


def _read_image(path: Path, port: TensorPort) -> AnyArray:
    shape = picture_shape(port.shape)
    if shape is None:
        raise InputError(f"{path}: {port} is no image (height x width x 1, 3 or 4 channels)")
    height, width, channels = shape
    # Part of an extra: what needs no pictures does without.
    from PIL import Image

    scaled = open_image(path, channels).resize((width, height), Image.Resampling.BILINEAR)
    pixels: AnyArray = np.asarray(scaled, np.uint8).reshape(port.shape)
    if port.dtype == np.int8:
        return (pixels.astype(np.int16) - IMAGE_MIDDLE).astype(np.int8)
    return pixels


def _sets_in(array: Given, port: TensorPort) -> int:
    """How many sets of a port an array holds; InputError if it does not fit, or is too large."""
    inner = port.shape[1:] if port.shape[:1] == (1,) else port.shape
    single = array.size == port.elements
    several = array.ndim > len(inner) and array.shape[array.ndim - len(inner) :] == inner
    where = _file_of(array)
    if single:
        _refuse_other_order(array, port)
    if array.size == 0 or not (single or several):
        raise InputError(
            f"{where}{port}: the data has shape {_dimensions(array)}; "
            "a further leading dimension means several inferences"
        )
    if array.dtype != port.dtype and array.dtype.kind not in "fiub":
        raise InputError(f"{where}{port}: data of dtype {array.dtype} cannot be used")
    refuse_size(array.size * port.dtype.itemsize, f"input {port.name}")
    count = array.size // port.elements
    if count > _MOST_SETS:
        raise InputError(
            f"{where}{port}: {count} inferences in one file, at most {_MOST_SETS} are allowed"
        )
    return count


def _stack(array: AnyArray, port: TensorPort) -> list[AnyArray]:
    """``array``, which fits, as sets of ``port.shape`` in the port's dtype."""
    return [_as_dtype(each, port) for each in array.reshape(-1, *port.shape)]


def _transposed(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Whether the dimensions are those expected, but in another order (those of size 1 apart)."""
    given, own = ([size for size in sizes if size != 1] for sizes in (shape, expected))
    return given != own and sorted(given) == sorted(own)


def _as_dtype(array: AnyArray, port: TensorPort) -> AnyArray:
    if array.dtype == port.dtype:
        return array
    if port.dtype.kind == "f":
        return array.astype(port.dtype)
    limits = np.iinfo(port.dtype)
    if array.dtype.kind == "f":
        if not port.scale:
            raise InputError(f"{port}: {array.dtype} data, but the tensor has no scale")
        if not np.isfinite(array).all():
            raise InputError(f"{port}: the data holds NaN or infinity")
        quantised: AnyArray = np.rint(array / port.scale) + port.zero_point
        return quantised.clip(limits.min, limits.max).astype(port.dtype)
    if array.min() < limits.min or array.max() > limits.max:
        raise InputError(f"{port}: values {array.min()} to {array.max()} do not fit {port.dtype}")
    return array.astype(port.dtype)
