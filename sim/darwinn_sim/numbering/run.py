"""A run on value numbers: a program is executed once, and stands for every input.

Control flow, addresses and moves of a program do not depend on its data. So one run, in which a
number goes with every byte that is not known, says of each output byte which function of the inputs
it is (``kernel.field``). Memory is bounded by the chip's, whatever the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol, cast

import numpy as np
from darwinn_formats.darwinn import Buffer, Description, Executable
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator, ModelEngine
from darwinn_sim.device.chip import Chip
from darwinn_sim.device.run import ProgramRun
from darwinn_sim.host.buffers import Request, batches_of
from darwinn_sim.host.memory import Region
from darwinn_sim.kernel import numbering, state
from darwinn_sim.kernel.numbering import Made, Use
from darwinn_sim.kernel.shadows import KNOWN, ORIGINS, SHADOW
from darwinn_sim.kernel.structure import Records
from darwinn_sim.lifting.foundation import CONTROL
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.machine.observer import Wanted
from darwinn_sim.numbering import kernels
from darwinn_sim.units import numbered_sums

Elements = NDArray[np.uint64]

_HELD = ("narrow", "scale_bias", "memory", "registers", "activations", "low", "high", "wide")
"""Memories whose bytes say nothing before a run, by the names of their numbers, and the sums that
tensor units hold; of the last one only words that inferences write. Each byte has a number of its
own, by its place."""

_NO_WORD = 0xFFFFFFFF
"""A word of a descriptor that the program has not set: with it DMA fails."""

_HALF = 32
"""So many bits less has a part of an element."""

_MARK = np.uint32(2)
"""Bit of the shadow of each byte of a word that holds what it held before."""

_ORIGINS = np.uint32(SHADOW * 0x01010101)
"""Bits of the shadow of a word whose numbers say where its bytes are from."""

_WORK_OF_A_TURN = 1 << 15
"""Where uses are noted, which take more room than results."""

_COURSE = "its course may depend on data, or on what came before"


class Collector(Protocol):
    """Takes all results of a run, in the order of time."""

    def take(self, made: Records[Made]) -> None:
        """Some of them; what they are in is used again."""

    def forget(self) -> None:
        """Those so far were no results of every run."""


class Tracer(Collector, Protocol):
    """Takes the uses of parameters, too, in the sums that are ``wanted``: of each, by its number
    from 1 on, bits of lanes. Behind its end none are wanted."""

    @property
    def wanted(self) -> NDArray[np.uint64]:
        """Bits of lanes, by sum."""

    def take_uses(self, uses: Records[Use]) -> None:
        """Some of them; what they are in is used again."""


class Traced(NamedTuple):
    """Of a run that traces parameters: ``numbered``; bits of what each byte is ``used_as``, those
    that are cached first (``kernel.origins``); and the sum that each ``goes_on`` from, or 0."""

    numbered: Numbered
    used_as: NDArray[np.uint8]
    goes_on: NDArray[np.int64]


@dataclass(frozen=True)
class Sets:
    """Maxima with the values that each is of: ``numbers``, and of each where its values are in the
    ``pool``. Values may be maxima."""

    numbers: Elements
    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]
    pool: Elements


@dataclass(frozen=True)
class Numbered:
    """``outputs``: numbers of the bytes of each output layer in device order; those that the
    program does not write have numbers of their own. ``maxima`` were taken on the way."""

    outputs: Mapping[str, Elements]
    maxima: Sets


class _Before(NamedTuple):
    """What an inference finds: tiles, which words of their wide memory are ``stale``, as inferences
    write them, ``flags`` of the scalar core, and where parameters are from if that is asked:
    numbers of wide memory, and bits of its shadows."""

    tiles: Records[state.Tile]
    stale: NDArray[np.bool_]
    flags: NDArray[np.int64]
    origins: tuple[Elements, NDArray[np.uint32]] | None = None


class _NumberedRun(ProgramRun):
    """Results are taken whenever the kernels stand still."""

    collector: Collector

    def _run_chip(self) -> int:
        reason = super()._run_chip()
        numbers = self.core["numbering"]
        count = int(numbers["results_made"])
        if count:
            self.collector.take(numbers["made"][:count])
            numbers["results_made"] = 0
        count = int(numbers["uses_noted"])
        if count:
            cast("Tracer", self.collector).take_uses(numbers["uses"][:count])
            numbers["uses_noted"] = 0
        return reason


class _Engine(ModelEngine):
    def __init__(self, collector: Collector) -> None:
        super().__init__()
        self._collector = collector

    def run_of(self, device: Chip, program: LoweredProgram, wanted: Wanted) -> ProgramRun:
        """A run whose results are taken."""
        run = _NumberedRun(device, program, wanted)
        run.collector = self._collector
        return run


def number_program(
    accelerator: Accelerator,
    executable: Executable,
    inputs: Mapping[str, Elements],
    collector: Collector,
) -> Numbered:
    """Run ``executable`` on numbers.

    Args:
        accelerator: a chip in the state in which inferences find it: parameters are cached, and one
            inference has been made. It makes another one, on zeros.
        executable: what to run.
        inputs: the number of each byte of the input layers, in device order, by layer.
        collector: gets all results, in the order of time.

    Raises:
        NotLifted: what it does may depend on data, or on what memories held before.
        SimulationError: its program fails.
    """
    before = _before(accelerator, executable)
    return _numbered(accelerator.load(executable), executable, inputs, before, collector)[0]


def trace_program(
    accelerator: Accelerator,
    caching: Executable | None,
    executable: Executable,
    inputs: Mapping[str, Elements],
    tracer: Tracer,
) -> Traced:
    """As :func:`number_program`, and follow the parameters: those that ``caching`` has brought to
    the chip, and those of ``executable``."""
    origins = None if caching is None else _origins(accelerator, caching)
    before = _before(accelerator, executable)._replace(origins=origins)
    cached = 0 if caching is None else len(caching.parameters)
    program = accelerator.load(executable)
    numbered, device = _numbered(program, executable, inputs, before, tracer, cached)
    numbers = device.core["numbering"]
    if int(numbers["sums_begun"]) + 1 >= numbering.MOST_SUMS:
        raise NotLifted("it makes more sums than are told from each other")
    return Traced(
        numbered,
        numbers["used_as"][: cached + len(executable.parameters)].copy(),
        numbers["goes_on"][: int(numbers["sums_begun"]) + 1].copy(),
    )


def _origins(accelerator: Accelerator, caching: Executable) -> tuple[Elements, NDArray[np.uint32]]:
    """Where parameters are from that have been cached, and bits of the shadows of their words."""
    beside = Accelerator(numbered=True)
    beside.take(accelerator.load(caching))
    beside.chip.core["numbering"]["traces"] = 1
    _walk(beside, caching, lambda request: _fill(caching, request, {}, 0))
    shadows = beside.chip.tiles["wide_written"] & _ORIGINS
    return beside.chip.core["numbering"]["wide"].reshape(chip.TILES, -1, 4).copy(), shadows


def _numbered(
    program: LoweredProgram,
    executable: Executable,
    inputs: Mapping[str, Elements],
    before: _Before,
    collector: Collector,
    cached: int | None = None,
) -> tuple[Numbered, Chip]:
    """Of a run; parameters are followed if so many bytes of them are ``cached``."""
    stale = before.stale
    while True:
        beside, outputs = _run(program, executable, inputs, before, collector, cached)
        # Where parameters are from does not matter here.
        shadows = beside.chip.tiles["wide_written"] & ~_ORIGINS
        written = (shadows != _untouched()) & ~stale
        if not written.any():
            break
        # What has been taken for a constant is none: once more, with that known.
        stale |= written
        collector.forget()
    _check(beside.chip, before)
    return Numbered(_outputs(outputs), _sets(beside.chip)), beside.chip


@cache
def _untouched() -> NDArray[np.uint32]:
    """Shadows of words of wide memory that hold what they held before the run: no two are the same,
    so that a copy of such a word is told from it. No byte is 0, or has the bit of an origin."""
    words = np.arange(chip.TILES * chip.WIDE_ROWS * chip.ROW_WORDS, dtype=np.uint32)
    shadows = np.zeros_like(words)
    for k in range(4):
        part = words >> np.uint32(6 * k) & np.uint32(63)
        shadows |= (part & 1 | _MARK | part >> 1 << 3) << np.uint32(8 * k)
    return shadows.reshape(chip.TILES, -1)


def _run(
    program: LoweredProgram,
    executable: Executable,
    inputs: Mapping[str, Elements],
    before: _Before,
    collector: Collector,
    cached: int | None,
) -> tuple[Accelerator, Mapping[Buffer, Region]]:
    beside = Accelerator(engine=_Engine(collector), numbered=True)
    beside.take(program)
    beside.chip.work_of_a_turn = numbering.WORK_OF_A_TURN
    _hold(beside.chip, before)
    outputs: dict[Buffer, Region] = {}
    if cached is not None:
        numbers = beside.chip.core["numbering"]
        numbers["traces"] = 1
        beside.chip.work_of_a_turn = _WORK_OF_A_TURN
        wanted = cast("Tracer", collector).wanted[: numbering.MOST_SUMS]
        numbers["wanted"][: len(wanted)] = wanted

    def fill(request: Request) -> None:
        _fill(executable, request, inputs, cached)
        for buffer, mapped in request.buffers.items():
            if buffer.desc == Description.BASE_ADDRESS_OUTPUT_ACTIVATION:
                outputs[buffer] = mapped.region

    _walk(beside, executable, fill)
    return beside, outputs


def _walk(beside: Accelerator, executable: Executable, fill: Callable[[Request], None]) -> None:
    """Execute a program on a chip with numbers."""
    beside.follow(np.uint64)
    beside.walk(executable, fill, None)
    # A run and its chip, with hundreds of MiB of numbers, refer to each other.
    beside.chip.run = None


def _before(accelerator: Accelerator, executable: Executable) -> _Before:
    """What an inference finds. One is made to see which words of wide memory they write."""
    device = accelerator.chip
    shadow = device.tiles["wide_written"].copy()
    device.tiles["wide_written"] = _untouched()
    accelerator.walk(executable, lambda request: None, None)
    stale = device.tiles["wide_written"] != _untouched()
    tiles = device.tiles.copy()
    device.tiles["wide_written"] = np.where(stale, device.tiles["wide_written"], shadow)
    return _Before(tiles, stale, device.core["flags"].copy())


def _hold(device: Chip, before: _Before) -> None:
    """Give a chip what an inference finds; what inferences write of it says nothing."""
    device.tiles[:] = before.tiles
    numbers = device.core["numbering"]
    shadows = _untouched()
    if before.origins is not None:
        numbers["wide"].reshape(chip.TILES, -1, 4)[:] = before.origins[0]
        shadows = shadows | before.origins[1]
    for memory, name in enumerate(_HELD[:-1]):
        kernels.unknown(memory, numbers[name].reshape(-1).view(np.uint64))
    stale = before.stale.reshape(-1)
    kernels.unknown_words(len(_HELD) - 1, stale, numbers[_HELD[-1]].reshape(-1))
    for name in ("low", "high"):
        numbers[name] >>= _HALF
    numbers["varying"], numbers["reach"] = numbered_sums.MANY, numbering.UNBOUNDED
    held = device.tiles
    held["wide_written"] = np.where(before.stale, np.uint32(0), shadows)
    for name in ("narrow_written", "scale_bias_written", "table_written"):
        held[name] = 0
    core = device.core_array
    core["flags"], core["descriptor"] = before.flags, _NO_WORD
    for name in ("memory_written", "registers_written", "predicates_written"):
        core[name] = 0
    for name in ("activations_written", "parameters_written"):
        core[name] = 0


def _fill(
    executable: Executable,
    request: Request,
    inputs: Mapping[str, Elements],
    first_parameter: int | None = None,
) -> None:
    """Numbers of inputs, and of parameters if these are followed."""
    batches = batches_of(executable)
    for place, (buffer, mapped) in enumerate(request.buffers.items()):
        region = mapped.region
        region.follow(np.uint64)
        known = region.payload_known
        assert known is not None
        if buffer.desc == Description.BASE_ADDRESS_INPUT_ACTIVATION:
            numbers = inputs[buffer.name].reshape(batches, -1)[buffer.batch]
            region.payload[: numbers.size] = 0
            known[: numbers.size] = numbers
        elif buffer.desc == Description.BASE_ADDRESS_PARAMETER and first_parameter is not None:
            places = first_parameter + np.arange(len(request.executable.parameters))
            known[: places.size] = np.uint64(ORIGINS) + places.astype(np.uint64)
        elif buffer.desc in (
            Description.BASE_ADDRESS_OUTPUT_ACTIVATION,
            Description.BASE_ADDRESS_SCRATCH,
        ):
            kernels.unknown(len(_HELD) + place, known)


def _check(device: Chip, before: _Before) -> None:
    """Nothing that a run leaves behind, or decides, depends on its data."""
    if device.core["uninitialised"]:
        raise NotLifted(_COURSE)
    if device.core["numbering"]["lost"]:
        raise NotLifted("it takes more maxima than there is room for")
    for name in CONTROL:
        if not np.array_equal(device.tiles[name], before.tiles[name]):
            raise NotLifted(f"it leaves {name.replace('_', ' ')} otherwise than it found them")
    if not np.array_equal(device.core["flags"], before.flags):
        raise NotLifted("it leaves flags otherwise than it found them")


def _sets(device: Chip) -> Sets:
    numbers = device.core["numbering"]
    used = np.flatnonzero(numbers["set_count"])
    return Sets(
        numbers["set_number"][used],
        numbers["set_first"][used],
        numbers["set_count"][used],
        numbers["pool"][: int(numbers["pooled"])].copy(),
    )


def _outputs(regions: Mapping[Buffer, Region]) -> dict[str, Elements]:
    parts: dict[str, list[tuple[int, Elements]]] = {}
    for buffer, region in regions.items():
        known = region.payload_known
        assert known is not None
        numbers = np.where(known == KNOWN, region.payload.astype(np.uint64), known)
        parts.setdefault(buffer.name, []).append((buffer.batch, numbers))
    return {
        name: np.concatenate([each for _, each in sorted(found, key=lambda part: part[0])])
        for name, found in parts.items()
    }
