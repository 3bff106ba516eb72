"""Find which element of a network each byte of a program's parameters is.

A run on value numbers also follows the parameters (``numbering.run.trace_program``). For each sum
it records which bytes are multiplied with which numbers. The number of the result identifies the
element of the network, and the numbers of the operands identify its terms. So each byte is known as
a weight at a place in the network, whatever its value.

Then the findings are tested. Attributed bytes, and the weights that they are, get new values, the
same on both sides. Bytes that nothing depends on get any value. Each element must be the same
function of the inputs again. New values also separate channels that were alike, so a further round
finds more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from darwinn_formats.darwinn import CompiledModel
from darwinn_reference.tflite.graph import Network, Operator
from darwinn_sim.chip import LANES
from darwinn_sim.kernel import numbering
from darwinn_sim.kernel.field import CONSTANTS
from darwinn_sim.kernel.numbering import Made, Use
from darwinn_sim.kernel.structure import Records
from darwinn_sim.numbering.run import Elements, trace_program
from numpy.typing import NDArray

from darwinn_testbench.chip.session import Session
from darwinn_testbench.proof.network import NetworkNumbers
from darwinn_testbench.proof.number_set import NumberSet
from darwinn_testbench.proof.prove import Uncompiled, numbers_of_inputs
from darwinn_testbench.proof.unsigned import unsigned
from darwinn_testbench.proof.windows import LAYERS, Window, windows

_MOST_ROUNDS = 16
"""Each round gets past one layer that differs."""
_RANDOM_BIAS = 1 << 20
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SIGN = np.uint8(0x80)
_WORD = 4
_AT_ONCE = 1 << 18
"""Uses that are handled in one go; this bounds memory."""
_ALL_LANES = np.uint64(2**64 - 1)
_LIKE = 2
"""A lane gets a channel that no result identifies if at least one in so many of its weights agrees.
"""

Places = NDArray[np.int64]


class Kind(IntEnum):
    """What a byte of the parameters is. ``PADDING``: nothing depends on it. ``ABSENT``: it is the
    weight of an operand that an element does not have, and holds the zero point.
    ``UNEXPLAINED``: it is used, and found to be none of these."""

    UNEXPLAINED = 0
    PADDING = 1
    WEIGHT = 2
    BIAS = 3
    FACTOR = 4
    ZERO_POINT = 5
    ABSENT = 6


_KINDS = {
    numbering.BIAS: Kind.BIAS,
    numbering.SCALE: Kind.FACTOR,
    numbering.ZERO_POINT: Kind.ZERO_POINT,
}


@dataclass
class Attribution:
    """For each byte of the parameters (``data``, the cached ones first): its ``kind``, and the
    ``tensor`` and flat ``element`` of the network that it is, or -1.

    For words of biases, factors and zero points, ``element`` is four times the channel plus the
    number of the byte. The tensor of factors and zero points is that of the weights. ``network`` is
    unsigned (``proof.unsigned``). ``layers`` are the operators whose parameters were searched.
    ``reason`` says why the findings failed the test.
    """

    network: Network
    data: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    tensor: NDArray[np.int32]
    element: Places
    layers: tuple[Operator, ...] = ()
    reason: str = ""

    def places(self, tensor: int, kind: Kind) -> Places:
        """Bytes that are elements of a tensor."""
        found: Places = np.flatnonzero((self.tensor == tensor) & (self.kind == kind))
        return found

    def octets(self, tensor: int) -> NDArray[np.uint8]:
        """The bytes of a constant, in its order."""
        constant = self.network.tensors[tensor].constant
        assert constant is not None
        return np.ascontiguousarray(constant).reshape(-1).view(np.uint8)

    def found(self, tensor: int, kind: Kind) -> NDArray[np.bool_]:
        """Which bytes of a constant have a place."""
        found = np.zeros(len(self.octets(tensor)), np.bool_)
        found[self.element[self.places(tensor, kind)]] = True
        return found

    def changed(self, tensor: int, kind: Kind) -> Places:
        """Bytes that hold another value than the element that they are."""
        at = self.places(tensor, kind)
        found: Places = at[self.data[at] != self.octets(tensor)[self.element[at]]]
        return found

    def constants(self) -> dict[int, Kind]:
        """The weights and biases of the layers."""
        weights = {each.inputs[1]: Kind.WEIGHT for each in self.layers}
        biases = (_bias_of(self.network, each) for each in self.layers)
        return weights | {each: Kind.BIAS for each in biases if each >= 0}


def attribute(session: Session, uncompiled: Uncompiled) -> Attribution:
    """Find what the parameters of a program are.

    The chip is left as after an inference.

    Raises:
        NotLifted: its course may depend on data.
        SimulationError: its program fails.
    """
    return _Search(session, uncompiled).result()


class _Search:
    """Rounds of finding: the first one is of the files as they are."""

    def __init__(self, session: Session, uncompiled: Uncompiled) -> None:
        self._session, self._uncompiled = session, uncompiled
        data = _data(session.model.compiled)
        none = np.full(len(data), -1)
        self._found = Attribution(
            unsigned(uncompiled.network),
            data,
            np.full(len(data), Kind.UNEXPLAINED, np.uint8),
            none.astype(np.int32),
            none.astype(np.int64),
        )
        self._random = np.random.default_rng(len(data))
        self._held = np.zeros(len(data), np.bool_)

    def result(self) -> Attribution:
        """The findings that pass the test."""
        found = self._found
        first = _Round(self._session, self._uncompiled, found)
        found.layers = first.layers
        found.kind[first.used_as == 0] = Kind.PADDING
        # A program with a zero point of more than 17 bits has no numbers.
        upper = np.arange(len(found.data)) % _WORD >= _WORD // 2
        self._held = upper & (first.used_as & numbering.ZERO_POINT != 0)
        more, latest, best = first.attribute(), first, first
        for _ in range(_MOST_ROUNDS):
            complete = self._is_complete()
            guessed = latest.in_vain() if complete or not more else np.zeros(0, np.int64)
            found.kind[guessed] = Kind.PADDING
            latest = self._again()
            if not latest.has_all_of(best) and len(guessed):
                # Something depends on them all the same.
                found.kind[guessed] = Kind.UNEXPLAINED
                latest = self._again()
            if not latest.has_all_of(best):
                return self._nothing()
            best = latest
            if complete or not more:
                break
            more = latest.attribute()
        return found

    def _nothing(self) -> Attribution:
        found = self._found
        found.kind[found.kind > Kind.PADDING] = Kind.UNEXPLAINED
        found.tensor[:], found.element[:] = -1, -1
        found.reason = "with new values on both sides, the functions differ"
        return found

    def _is_complete(self) -> bool:
        found = self._found
        return all(found.found(*each).all() for each in found.constants().items())

    def _again(self) -> _Round:
        """With other values of all that has been found."""
        found, random = self._found, self._random
        data = found.data.copy()
        padding = (found.kind == Kind.PADDING) & ~self._held
        data[padding] = random.integers(0, 256, int(padding.sum()), np.uint8)
        tensors = list(self._uncompiled.network.tensors)
        for index, kind in found.constants().items():
            at, octets = found.places(index, kind), found.octets(index).copy()
            if kind is Kind.BIAS:
                whole = np.bincount(found.element[at] // _WORD, minlength=len(octets) // _WORD)
                at = at[whole[found.element[at] // _WORD] == _WORD]
                size = len(octets) // _WORD
                drawn = random.integers(-_RANDOM_BIAS, _RANDOM_BIAS, size, np.int32)
                other = drawn.view(np.uint8)
            else:
                other = random.integers(0, 256, len(octets), np.uint8)
            octets[found.element[at]] = data[at] = other[found.element[at]]
            tensor = tensors[index]
            if tensor.dtype == np.int8:
                octets = octets ^ _SIGN
            constant = octets.view(tensor.dtype).reshape(tensor.shape)
            tensors[index] = replace(tensor, constant=constant)
        network = replace(self._uncompiled.network, tensors=tuple(tensors))
        model = self._session.model
        changed = replace(model, compiled=_with_data(model.compiled, data))
        device = self._session.device
        assumptions = device.accelerator.assumptions
        session = Session(changed, preloads=device.preloads, assumptions=assumptions)
        return _Round(session, replace(self._uncompiled, network=network), found)


def _data(model: CompiledModel) -> NDArray[np.uint8]:
    parts = [each.parameters for each in (model.caching, model.inference) if each is not None]
    return np.frombuffer(b"".join(map(bytes, parts)), np.uint8)


def _with_data(model: CompiledModel, data: NDArray[np.uint8]) -> CompiledModel:
    """The same program with other parameters."""
    cached = 0 if model.caching is None else len(model.caching.parameters)
    parts = data[:cached].tobytes(), data[cached:].tobytes()
    caching = model.caching and replace(model.caching, parameters=parts[0])
    return replace(model, caching=caching, inference=replace(model.inference, parameters=parts[1]))


def _bias_of(network: Network, operator: Operator) -> int:
    """The tensor of the biases of a layer; -1 without."""
    index = operator.inputs[2] if len(operator.inputs) > 2 else -1
    constant = network.tensors[index].constant if index >= 0 else None
    channels = network.tensors[operator.outputs[0]].shape[-1]
    of_channels = constant is not None and constant.dtype == np.int32 and constant.size == channels
    return index if of_channels else -1


# --- what is looked for --------------------------------------------------------------------------


class _Site(NamedTuple):
    """Where the terms of a layer are known: the number of its first element among those looked for,
    the tensors of its weights and biases, the zero points of its input and of its weights (-1 if
    channels have others), and its terms."""

    first: int
    weights: int
    bias: int
    zero_point: int
    weight_zero_point: int
    window: Window


class _Wanted:
    """Elements that are looked for, and their terms, by numbers."""

    def __init__(self) -> None:
        self.sites: list[_Site] = []
        self.layers: list[Operator] = []
        self._results: list[Elements] = []
        self._keys: list[Elements] = []
        self._groups: list[Places] = []
        self._weights: list[Places] = []
        self._count = 0

    def watch(self, network: Network, operator: Operator, numbers: Mapping[int, Elements]) -> None:
        """An operator has numbers: look for some of its elements if it is a layer."""
        if operator.name not in LAYERS:
            return
        constant = network.tensors[operator.inputs[1]].constant
        if constant is None or constant.dtype.itemsize != 1:
            return
        self.layers.append(operator)
        operands = numbers[operator.inputs[0]].reshape(-1)
        results = numbers[operator.outputs[0]]
        results = results.reshape(-1, results.shape[-1])
        for each in windows(network, operator):
            bias = _bias_of(network, operator)
            self._enter_terms(each, operands[each.sources])
            source, weights = (_zero_point(network, index) for index in operator.inputs[:2])
            place = self._count, operator.inputs[1], bias
            self.sites.append(_Site(*place, source, weights, each))
            self._results.append(results[each.row])
            self._count += len(results[each.row])

    def _enter_terms(self, terms: Window, numbers: Elements) -> None:
        """By their operands; -1 of one that several terms have."""
        _, first, counts = np.unique(numbers, return_index=True, return_counts=True)
        flat = numbers.reshape(-1)
        varies = flat[first] >= CONSTANTS
        first, alone = first[varies], counts[varies] == 1
        self._keys.append(_keys(np.full(len(first), len(self.sites)), flat[first]))
        self._groups.append(first // numbers.shape[1])
        self._weights.append(np.where(alone, terms.weights.reshape(-1)[first], -1))

    def close(self) -> None:
        """All are there."""
        keys = np.concatenate([np.zeros(0, np.uint64), *self._keys])
        order = np.argsort(keys)
        self.keys = keys[order]
        self.groups = np.concatenate([np.zeros(0, np.int64), *self._groups])[order]
        self.weights = np.concatenate([np.zeros(0, np.int64), *self._weights])[order]
        results = np.concatenate([np.zeros(0, np.uint64), *self._results])
        numbers, first, counts = np.unique(results, return_index=True, return_counts=True)
        alone = (counts == 1) & (numbers >= CONSTANTS)
        self.results, self.elements = numbers[alone], first[alone]
        self.site_of = np.repeat(
            np.arange(len(self.sites)), [len(each) for each in self._results]
        ).astype(np.int64)

    def terms(self, sites: Places, numbers: Elements) -> tuple[NDArray[np.bool_], Places]:
        """Which numbers are operands at sites, and where their terms are."""
        if not len(self.keys):
            return np.zeros(len(numbers), np.bool_), np.zeros(len(numbers), np.int64)
        keys = _keys(sites, numbers)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.keys[at] == keys, at


def _zero_point(network: Network, tensor: int) -> int:
    points = network.tensors[tensor].zero_point
    return int(points[0]) if len(points) and (points == points[0]).all() else -1


def _keys(sites: Places, numbers: Elements) -> Elements:
    with np.errstate(over="ignore"):
        found: Elements = sites.astype(np.uint64) * _MIX + numbers
    return found


# --- what the chip does --------------------------------------------------------------------------


class _Results:
    """Takes the results of a run, with their sums and lanes."""

    wanted = np.zeros(0, np.uint64)

    def __init__(self) -> None:
        self.chip = NumberSet()
        self.numbers: list[Elements] = []
        self.places: list[NDArray[np.uint32]] = []
        self.totals: list[Elements] = []

    def take(self, made: Records[Made]) -> None:
        """All of them."""
        numbers = np.ascontiguousarray(made["number"])
        self.chip.enter(numbers)
        self.numbers.append(numbers)
        self.places.append((made["sum"] * LANES + made["lane"]).astype(np.uint32))
        self.totals.append(made["total"].copy())

    def take_uses(self, uses: Records[Use]) -> None:
        """None are wanted."""

    def forget(self) -> None:
        """Begin anew."""
        self.chip.forget()
        for each in (self.numbers, self.places, self.totals):
            each.clear()


class _Sums(NamedTuple):
    """Of each sum its ``site``, or -1, and the ``last`` sum that goes on from it. ``lanes`` of last
    sums (``sum * LANES + lane``, in order) that make ``elements``."""

    site: Places
    last: Places
    lanes: Places
    elements: Places


class _Round:
    """A program and a network of some values, beside each other."""

    def __init__(self, session: Session, uncompiled: Uncompiled, found: Attribution) -> None:
        self._session, self._found = session, found
        session.infer({port.name: np.zeros(port.shape, port.dtype) for port in session.ports})
        given, self._inputs = numbers_of_inputs(session, uncompiled)
        compiled, self._made = session.model.compiled, _Results()
        traced = trace_program(
            session.accelerator, compiled.caching, compiled.inference, self._inputs, self._made
        )
        self.used_as, self._goes_on = traced.used_as, traced.goes_on
        for each in self._inputs.values():
            self._made.chip.enter(each)
        self._wanted = _Wanted()
        network = NetworkNumbers(
            *(uncompiled.network, uncompiled.choices, uncompiled.on_chip),
            *(self._made.chip, traced.numbered.maxima, given),
            kept=set(uncompiled.outputs.values()),
            watch=self._wanted.watch,
        )
        self._wanted.close()
        self.layers = tuple(self._wanted.layers)
        self._operators = network.operators
        self._idle = np.zeros(len(found.data), np.bool_)

    def has_all_of(self, other: _Round) -> bool:
        """Each operator has at least as many elements that the chip makes as in another round."""
        return all(
            each.reason in ("", before.reason) and each.missed <= before.missed
            for each, before in zip(self._operators, other._operators, strict=True)
        )

    def attribute(self) -> bool:
        """Find what bytes are; whether any more were."""
        before = int(np.count_nonzero(self._found.tensor >= 0))
        sums = self._sums()
        compiled = self._session.model.compiled
        uses = _Uses(sums, self._wanted, self._found)
        trace_program(
            self._session.accelerator, compiled.caching, compiled.inference, self._inputs, uses
        )
        uses.close()
        self._idle = uses.idle & ~uses.open
        return int(np.count_nonzero(self._found.tensor >= 0)) > before

    def in_vain(self) -> Places:
        """Bytes that are used, and that nothing depends on as far as is known."""
        found: Places = np.flatnonzero(self._idle & (self._found.kind == Kind.UNEXPLAINED))
        return found

    def _sums(self) -> _Sums:
        wanted, made = self._wanted, self._made
        known = NumberSet()
        known.enter(wanted.results)
        lanes, elements = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        totals = [np.zeros(0, np.uint64)]
        for numbers, places, total in zip(made.numbers, made.places, made.totals, strict=True):
            met = np.flatnonzero((numbers >= CONSTANTS) & known.have(numbers))
            lanes.append(places[met].astype(np.int64))
            elements.append(wanted.elements[np.searchsorted(wanted.results, numbers[met])])
            totals.append(total[met])
        for each in (made.numbers, made.places, made.totals):
            each.clear()
        every, which = np.unique(np.concatenate(lanes), return_index=True)
        element, total = np.concatenate(elements)[which], np.concatenate(totals)[which]
        # What has another sum than the first with this result is a copy of it.
        _, first, of = np.unique(element, return_index=True, return_inverse=True)
        made_here = total == total[first[of]]
        every, element = every[made_here], element[made_here]
        site, last = np.full((2, len(self._goes_on)), -1)
        sums = every // LANES
        site[sums] = wanted.site_of[element]
        last[sums] = sums
        while len(sums):
            before = self._goes_on[sums]
            new = (before > 0) & (site[before] < 0)
            sums, before = sums[new], before[new]
            site[before], last[before] = site[sums], last[sums]
            sums = before
        return _Sums(site, last, every, element)


class _Column(NamedTuple):
    """Uses of bytes: the lane (of the last sum), the byte, its role and number, the site and where
    its term is."""

    lane: Places
    place: Places
    role: NDArray[np.uint8]
    number: Elements
    site: Places
    term: Places

    def of(self, which: NDArray[Any] | slice) -> _Column:
        """Some of them."""
        return _Column(*(each[which] for each in self))  # type: ignore[arg-type]


def _joined(parts: list[_Column]) -> _Column:
    return _Column(*map(np.concatenate, zip(*parts, strict=True)))


class _Uses:
    """Takes uses of parameters in the sums of wanted elements, and says what the bytes are."""

    def __init__(self, sums: _Sums, wanted: _Wanted, found: Attribution) -> None:
        self._sums, self._wanted, self._found = sums, wanted, found
        self.wanted = np.where(sums.site >= 0, _ALL_LANES, np.uint64(0))
        self.idle, self.open = np.zeros((2, len(found.data)), np.bool_)
        """Bytes of lanes of which no element is made, or that are multiplied with 0; and those of
        which it is not known."""
        self._rest: list[_Column] = []
        self._channels = np.array([each.window.channels for each in wanted.sites] or [1], np.int64)
        self._steps = np.array([each.window.step for each in wanted.sites] or [1], np.int64)
        self._firsts = np.array([each.first for each in wanted.sites] or [0], np.int64)
        self._tensors = np.array([each.weights for each in wanted.sites] or [-1], np.int64)
        self._biases = np.array([each.bias for each in wanted.sites] or [-1], np.int64)
        self._weights = wanted.weights if len(wanted.weights) else np.zeros(1, np.int64)
        self._zeros = np.array([each.zero_point for each in wanted.sites] or [-1], np.int64)
        self._absent = np.array([each.weight_zero_point for each in wanted.sites] or [-1], np.int64)

    def take(self, made: Records[Made]) -> None:
        """Results are known."""

    def forget(self) -> None:
        """Begin anew."""
        self._rest.clear()

    def take_uses(self, uses: Records[Use]) -> None:
        """Those of lanes whose element is known say what their bytes are."""
        for begin in range(0, len(uses), _AT_ONCE):
            part = uses[begin : begin + _AT_ONCE]
            self._take(part[self._found.tensor[part["place"]] < 0])

    def _take(self, uses: Records[Use]) -> None:
        sums, wanted = self._sums, self._wanted
        place, role = uses["place"].astype(np.int64), uses["role"].copy()
        number = np.ascontiguousarray(uses["number"])
        site = sums.site[uses["sum"]]
        lane = sums.last[uses["sum"]] * LANES + uses["lane"]
        at = np.minimum(np.searchsorted(sums.lanes, lane), len(sums.lanes) - 1)
        known = sums.lanes[at] == lane
        other = role != numbering.WEIGHT
        met, term = wanted.terms(site, number)
        several = met & ~other & (self._weights[term] < 0)
        columns = _Column(lane, place, role, number, site, term)
        nought = ~met & ~other & (number == self._zeros[site].astype(np.uint64))
        self.idle[place[nought | ~known & ~met & ~other]] = True
        self._set_absent(columns.of(known & ~met & ~other))
        self.open[place[known & (several | ~met & ~other & ~nought)]] = True
        met = (met | other) & ~several
        rest = ~known & met
        self._rest.append(columns.of(rest))
        mine = known & met
        channel = sums.elements[at[mine]] - self._firsts[site[mine]]
        self._assign(columns.of(mine), channel)

    def _assign(self, uses: _Column, channel: Places) -> None:
        """Bytes that are used in sums of channels."""
        weight = uses.role == numbering.WEIGHT
        group, within = np.divmod(channel, self._channels[uses.site])
        if weight.any():
            mine = self._wanted.groups[uses.term] == group
            self._set_absent(uses.of(weight & ~mine))
            weight &= mine
        element = self._weights[uses.term[weight]]
        element = element + (within * self._steps[uses.site])[weight]
        self._set(uses.place[weight], Kind.WEIGHT, self._tensors[uses.site[weight]], element)
        for role, kind in _KINDS.items():
            mine = uses.role == role
            tensors = self._biases if kind is Kind.BIAS else self._tensors
            element = channel[mine] * _WORD + uses.number[mine].astype(np.int64)
            self._set(uses.place[mine], kind, tensors[uses.site[mine]], element)

    def _set_absent(self, uses: _Column) -> None:
        """Bytes that multiply what the elements do not have."""
        found, place = self._found, uses.place
        absent = (found.data[place] == self._absent[uses.site]) & (found.tensor[place] < 0)
        found.kind[place[absent]] = Kind.ABSENT

    def _set(self, place: Places, kind: Kind, tensor: Places, element: Places) -> None:
        found = self._found
        new = (found.tensor[place] < 0) & (tensor >= 0)
        place, tensor, element = place[new], tensor[new], element[new]
        found.kind[place], found.tensor[place], found.element[place] = kind, tensor, element

    def close(self) -> None:
        """Give channels that no result identifies to lanes without a known element.

        This goes site by site; each lane gets the channel with the most equal bytes. Channels that
        are alike cannot be told apart, which makes no difference.
        """
        if not self._rest:
            return
        rest = _joined(self._rest)
        named = np.zeros(len(self._wanted.site_of), np.bool_)
        named[self._sums.elements] = True
        for number in np.unique(rest.site).tolist():
            missing = np.flatnonzero(~named[self._wanted.site_of == number])
            which = np.flatnonzero(rest.site == number)
            which = which[np.argsort(rest.lane[which], kind="stable")]
            self._match(rest.of(which), number, missing)

    def _match(self, rest: _Column, number: int, missing: Places) -> None:
        """The lanes of a site, and its channels that are missing."""
        octets = self._found.octets(int(self._tensors[number]))
        begins = np.flatnonzero(np.diff(rest.lane, prepend=-1))
        for begin, end in zip(begins, np.append(begins[1:], len(rest.lane)), strict=True):
            uses = rest.of(slice(begin, end))
            weight = uses.role == numbering.WEIGHT
            if not len(missing) or not weight.any():
                self.idle[uses.place] = True
                self.open[uses.place] |= len(missing) > 0
                continue
            group, within = np.divmod(missing, self._channels[number])
            terms = uses.term[weight]
            element = self._weights[terms] + (within * self._steps[number])[:, None]
            mine = self._wanted.groups[terms] == group[:, None]
            held = self._found.data[uses.place[weight]]
            same = (octets[np.where(mine, element, 0)] == held) & mine
            count = same.sum(axis=1)
            best = int(np.argmax(count))
            if count[best] * _LIKE < max(1, int(mine[best].sum())):
                self.open[uses.place] = True
                continue
            self._assign(uses, np.full(len(uses.place), missing[best]))
            missing = np.delete(missing, best)
