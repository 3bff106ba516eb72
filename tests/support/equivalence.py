"""Whether a faulty program computes the same as the right one for every input: why, or None.

Both are lifted (``darwinn_sim.lifting``), and their stages are held against each other: what is the
same in both needs no word, and each lane that is not needs a reason why no input shows it. Neither
the network nor samples are asked. No reason means undecided, not different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain as chained

import numpy as np
from darwinn_formats.darwinn import CompiledModel, Executable
from darwinn_formats.errors import FormatError
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.buffers import batches_of, layer_bytes
from darwinn_sim.host.output_check import differing_output
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.kernel.structure import Records
from darwinn_sim.lifting import runs
from darwinn_sim.lifting.program import LiftedProgram
from darwinn_sim.lifting.stage import Made, Stage
from darwinn_sim.lifting.stages import stages
from darwinn_sim.lifting.tape import CONSTANTS
from darwinn_sim.lifting.walk import NotLifted, walk
from darwinn_sim.units.output_stage import OUTPUT_16BIT, RANGE_REDUCTION, TABLE
from darwinn_sim.units.tensor_cells import INTERPOLATE
from darwinn_sim.units.tensor_records import Parameters
from numpy.typing import NDArray

SAME = "the lifted programs are the same"
NOT_NEEDED = "no later sum and no output takes the result"
NO_PARTNER = "what is multiplied is constant, and adds the same"
SAME_RESULTS = "output stages agree on every reachable sum"
ARGUMENTS = (SAME, NOT_NEEDED, NO_PARTNER, SAME_RESULTS)

MOST_SUMS = 1 << 26
"""Sums of a stage at which two output stages are held against each other, at most."""

_OCTET = 255
_COEFFICIENTS = chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS

Numbers = NDArray[np.int64]
Reals = NDArray[np.float32]


@dataclass(frozen=True)
class Computed:
    """What a program computes: stages, the numbers of the bytes of outputs, and instructions."""

    stages: tuple[Stage, ...]
    outputs: Mapping[str, NDArray[np.int32]]
    tensor: Records[Parameters]
    identities: int
    executable: Executable
    lifted: LiftedProgram


_FAILURES = (SimulationError, DecodeError, FormatError)
"""A faulty program ends in one of these, or it is not read at all."""

WORK_LIMIT = 1 << 28
"""Work that a faulty program may do before it is called endless."""


def computed(model: CompiledModel) -> Computed:
    """What a model computes when its parameters are cached, and an inference has been made.

    Raises:
        NotLifted, SimulationError, DecodeError: it is not lifted.
    """
    accelerator = Accelerator(work_limit=WORK_LIMIT)
    if model.caching is not None:
        accelerator.run(model.caching, {})
    batches = batches_of(model.inference)
    zeros = {each.name: bytes(layer_bytes(each) * batches) for each in model.inference.input_layers}
    accelerator.run(model.inference, zeros)
    walked = walk(accelerator, model.inference)
    made = stages(runs.find(walked))
    tensor = walked.program.tables.tensor
    lifted = LiftedProgram(walked, made)
    return Computed(tuple(made), walked.outputs, tensor, walked.identities, model.inference, lifted)


def argument(right: Computed, faulty: Computed) -> str | None:
    """Why no input tells two programs apart; None if that is not known."""
    if len(right.stages) != len(faulty.stages) or not _alike(right.outputs, faulty.outputs):
        return None
    taken = _taken(right)
    found: set[str] = set()
    for one, other in zip(right.stages, faulty.stages, strict=True):
        if not _same_shape(one, other):
            return None
        reasons = _Pair(one, other, right.tensor, faulty.tensor, taken).reasons()
        if reasons is None:
            return None
        found |= reasons
    return "; ".join(each for each in ARGUMENTS if each in found) or SAME


class Truth(StrEnum):
    """What is known of a fault, by whatever no verification asks."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNDECIDED = "undecided"


def truth(right: Computed, model: CompiledModel) -> tuple[Truth, str]:
    """Whether a faulty model computes the same as the right one, and why: by an argument, or by an
    input on which it does not."""
    try:
        faulty = computed(model)
    except NotLifted as error:
        return Truth.UNDECIDED, f"it is not lifted: {error}"
    except _FAILURES as error:
        return Truth.DIFFERENT, f"it fails: {error}"
    if (why := argument(right, faulty)) is not None:
        return Truth.EQUIVALENT, why
    inputs = _inputs(right.executable)
    pairs = zip(right.lifted.run(inputs), faulty.lifted.run(inputs), strict=True)
    for number, (one, other) in enumerate(pairs):
        if differing_output(right.executable, one, other) is not None:
            return Truth.DIFFERENT, f"input {number} of those that it was tried on"
    return Truth.UNDECIDED, f"neither an argument, nor one of {len(inputs)} inputs"


ORDERS = 50
"""Legal orders of the units in which a fault of synchronisation is tried."""


def reordered(right: CompiledModel, model: CompiledModel) -> tuple[Truth, str]:
    """Whether a legal order of the units shows that a faulty model is not the right one."""
    inputs = _inputs(right.inference)[:3]
    chip_of_right = Accelerator()
    expected = [_inference(chip_of_right, right, each) for each in inputs]
    accelerator = Accelerator(work_limit=WORK_LIMIT, strict=True)
    for order in range(ORDERS):
        accelerator.schedule = order
        accelerator.power_up()
        which = order % len(inputs)
        try:
            made = _inference(accelerator, model, inputs[which])
        except _FAILURES as error:
            return Truth.DIFFERENT, f"in order {order} it fails: {error}"
        if differing_output(right.inference, made, expected[which]) is not None:
            return Truth.DIFFERENT, f"order {order} gives other bytes"
    return Truth.UNDECIDED, f"{ORDERS} orders give the same"


def _inference(
    accelerator: Accelerator, model: CompiledModel, inputs: Mapping[str, bytes]
) -> Mapping[str, bytes]:
    if model.caching is not None:
        accelerator.run(model.caching, {})
    return accelerator.run(model.inference, inputs).outputs


TRIED = 48
"""Inputs that are tried for a difference, a third of each kind: any bytes, bytes near to each
other, and the least and the greatest byte."""


def _inputs(executable: Executable) -> list[dict[str, bytes]]:
    """Always the same."""
    random = np.random.default_rng(0)
    batches = batches_of(executable)
    sizes = {each.name: layer_bytes(each) * batches for each in executable.input_layers}

    def one(kind: int, size: int) -> bytes:
        low = random.integers(0, 240)
        drawn = (
            lambda: random.integers(0, 256, size),
            lambda: random.integers(low, low + 16, size),
            lambda: 255 * random.integers(0, 2, size),
        )[kind]()
        return drawn.astype(np.uint8).tobytes()

    return [
        {name: one(number % 3, size) for name, size in sizes.items()} for number in range(TRIED)
    ]


def _alike(one: Mapping[str, NDArray[np.int32]], other: Mapping[str, NDArray[np.int32]]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(each, other[name]) for name, each in one.items()
    )


_SHAPE = ("operands", "others", "made", "operations")
_KIND = ("how", "blocks", "size", "width", "other_width", "zeros")


def _same_shape(one: Stage, other: Stage) -> bool:
    """Whether both take the same bytes in the same way, and their results are called the same."""
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in _SHAPE) and all(
        getattr(one, name) == getattr(other, name) for name in _KIND
    )


def _taken(program: Computed) -> NDArray[np.bool_]:
    """Which numbers of bytes any stage or output takes."""
    taken = np.zeros(program.identities + CONSTANTS, np.bool_)
    stages = chained.from_iterable((each.operands, each.others) for each in program.stages)
    for numbers in chained(stages, program.outputs.values()):
        taken[numbers] = True
    return taken


@dataclass(frozen=True)
class _Pair:
    """Two stages of the same shape, of which some lanes may differ."""

    one: Stage
    other: Stage
    tensor: Records[Parameters]
    other_tensor: Records[Parameters]
    taken: NDArray[np.bool_]

    def reasons(self) -> set[str] | None:
        """Why lanes that differ give the same; None if that is not known."""
        differing = self._differing()
        if not len(differing):
            return set()
        live = differing[self._live()[differing]]
        found = set() if len(live) == len(differing) else {NOT_NEEDED}
        if not len(live):
            return found
        if self.one.how is not Made.PRODUCTS:
            return None
        more = self._of_products(live)
        return None if more is None else found | more

    def _differing(self) -> NDArray[np.intp]:
        """Lanes that are not the same in both."""
        one, other = self.one, self.other
        if self._stage_differs():
            return np.arange(one.lanes)
        differs = (one.offset != other.offset) | (one.scale.view(np.int32) != _bits(other.scale))
        differs |= (one.weights != other.weights).any(axis=0)
        differs |= _added_last(one) != _added_last(other)
        return np.flatnonzero(differs)

    def _stage_differs(self) -> bool:
        """Whether anything differs that all lanes share."""
        one, other = self.one, self.other
        return (one.zero, one.of_bias) != (other.zero, other.of_bias) or self._output_differs()

    def _live(self) -> NDArray[np.bool_]:
        """Which lanes have results that anything takes."""
        live = np.zeros(self.one.lanes, np.bool_)
        begin = 0
        for first, lanes in zip(self.one.made.T, self.one.blocks, strict=True):
            lane = np.arange(lanes)[:, None] * self.one.size + np.arange(self.one.size)
            numbers = first[:, None, None] + lane + CONSTANTS
            live[begin : begin + lanes] = self.taken[numbers].any(axis=(0, 2))
            begin += lanes
        return live

    def _of_products(self, lanes: NDArray[np.intp]) -> set[str] | None:
        """As ``reasons``, of lanes of sums of products, if no bias may saturate."""
        if self.one.bias is not None or self.other.bias is not None:
            return None
        weights, base = _linear(self.one, lanes)
        others, other_base = _linear(self.other, lanes)
        if not np.array_equal(weights, others):
            return None
        low = np.minimum(weights * _OCTET, 0).sum(axis=0)
        high = np.maximum(weights * _OCTET, 0).sum(axis=0)
        if not all(_fits(low + each, high + each) for each in (base, other_base)):
            return None
        same = base == other_base
        same &= _bits(self.one.scale[lanes]) == _bits(self.other.scale[lanes])
        if same.all() and not self._output_differs():
            return {NO_PARTNER}
        if self.one.row < 0 or self.other.row < 0:
            return None
        if not self._agree(lanes[~same] if not self._output_differs() else lanes):
            return None
        return {SAME_RESULTS}

    def _output_differs(self) -> bool:
        """Whether anything but sums and scales differs."""
        if _words(self.one.table) != _words(self.other.table):
            return True
        if self.one.row < 0 or self.other.row < 0:
            return self.one.row != self.other.row
        mine, its = self.tensor[self.one.row], self.other_tensor[self.other.row]
        return any(mine[name] != its[name] for name in _OF_A_STAGE)

    def _agree(self, lanes: NDArray[np.intp]) -> bool:
        """Whether both output stages give the same at every sum that bytes can make."""
        spans: dict[tuple[int, int, int], tuple[int, int]] = {}
        for key, low, high in self._spans(lanes):
            before = spans.get(key, (low, high))
            spans[key] = min(low, before[0]), max(high, before[1])
        if sum(high - low + 1 for low, high in spans.values()) > MOST_SUMS:
            return False
        mine, its = self.tensor[self.one.row], self.other_tensor[self.other.row]
        for (scale, other_scale, more), (low, high) in spans.items():
            sums = np.arange(low, high + 1)
            one = outputs_of(sums, _real(scale), mine, self.one.table)
            other = outputs_of(sums + more, _real(other_scale), its, self.other.table)
            if one is None or other is None or not np.array_equal(one, other):
                return False
        return True

    def _spans(self, lanes: NDArray[np.intp]) -> Iterator[tuple[tuple[int, int, int], int, int]]:
        """Scales of a lane and what the other's sum has more; the least and the greatest sum."""
        weights, base = _linear(self.one, lanes)
        _, other = _linear(self.other, lanes)
        low = base + np.minimum(weights * _OCTET, 0).sum(axis=0)
        high = base + np.maximum(weights * _OCTET, 0).sum(axis=0)
        scales, others = _bits(self.one.scale[lanes]), _bits(self.other.scale[lanes])
        for k in range(len(lanes)):
            key = int(scales[k]), int(others[k]), int(other[k] - base[k])
            yield key, int(low[k]), int(high[k])


_OF_A_STAGE = (
    *("opcode", "high_clip", "low_clip", "function", "odd_function", "symmetric_function"),
    "output_zero_point",
)
"""Fields of an instruction that say what becomes of a sum, but for scales."""


def _added_last(stage: Stage) -> NDArray[np.int32]:
    """Biases that may saturate, of each lane."""
    return np.zeros_like(stage.offset) if stage.bias is None else stage.bias


def _words(table: NDArray[np.int32] | None) -> bytes:
    return b"" if table is None else table.tobytes()


def _bits(values: Reals) -> NDArray[np.int32]:
    return np.ascontiguousarray(values, np.float32).view(np.int32)


def _real(bits: int) -> np.float32:
    return np.float32(np.array([bits], np.int32).view(np.float32)[0])


def _fits(low: Numbers, high: Numbers) -> bool:
    """Whether no sum wraps."""
    return bool((low >= -(1 << 31)).all() and (high < 1 << 31).all())


def _linear(stage: Stage, lanes: NDArray[np.intp]) -> tuple[Numbers, Numbers]:
    """Sums of lanes as weights of bytes, and what is added; bytes that are the same constant at
    all positions are part of that."""
    weights = stage.weights[:, lanes].astype(np.int64)
    base = stage.offset[lanes].astype(np.int64) - stage.zero * weights.sum(axis=0)
    first = stage.operands[0]
    constant = (first < CONSTANTS) & (stage.operands == first).all(axis=0)
    base = base + first[constant].astype(np.int64) @ weights[constant]
    return weights[~constant], base


def outputs_of(
    sums: Numbers, scale: np.float32, parameters: Parameters, table: NDArray[np.int32] | None
) -> Numbers | None:
    """What an output stage makes of sums, by docs/isa.md; None for what is not written here."""
    function = int(parameters["function"])
    with np.errstate(all="ignore"):
        scaled = sums.astype(np.float32) * scale
        if parameters["opcode"] != INTERPOLATE:
            high, low = (np.float32(parameters[name]) for name in ("high_clip", "low_clip"))
            scaled = np.where(scaled > high, high, scaled)
            scaled = np.where(scaled < low, low, scaled)
        if function & TABLE:
            if function & RANGE_REDUCTION or table is None:
                return None
            scaled = _tabulated(scaled, parameters, table)
        whole = np.rint(scaled)
        point = int(parameters["output_zero_point"])
        if np.isinf(parameters["high_clip"]) and not function & OUTPUT_16BIT:
            if not np.isfinite(whole).all():
                return None
            low_byte: Numbers = (whole.astype(np.int64) + point) & 0xFF
            return low_byte
        whole = np.where(np.isnan(whole), np.float32(0), whole) + np.float32(point)
        highest = 0xFFFF if function & OUTPUT_16BIT else 0xFF
        saturated: Numbers = np.clip(whole, 0, highest).astype(np.int64)
        return saturated


def _tabulated(values: Reals, parameters: Parameters, table: NDArray[np.int32]) -> Reals:
    """Polynomials of a coefficient table, by Horner's rule in float32."""
    words = table.view(np.float32)
    bounds = words[_COEFFICIENTS : _COEFFICIENTS + chip.TABLE_SEGMENTS - 1]
    negates = bool(parameters["odd_function"]) & (values < 0)
    y = np.abs(values) if parameters["symmetric_function"] else values
    # The first bound that is above ends the search, whatever comes behind it.
    passed = np.logical_and.accumulate(bounds[:, None] <= y[None], axis=0)
    rows = words[:_COEFFICIENTS].reshape(chip.TABLE_SEGMENTS, -1)[passed.sum(axis=0)]
    value = rows[:, -1]
    for k in range(chip.TABLE_COEFFICIENTS - 2, -1, -1):
        value = value * y + rows[:, k]
    result: Reals = np.where(negates, -value, value)
    return result
