"""Which operators of the network on the chip were compared, and how: byte for byte, or by policy.

Where the oracle computes everything, each operator is compared byte for byte through the outputs
that depend on it. Where it cannot, it goes on from what the chip has left (``taken_tensors``). What
lies between such a tensor and those before it that are known to be right on every byte is then
computed by LiteRT from the chip's own bytes, so that differences of other operators do not add up,
and compared under the policy of one layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from darwinn_formats.brief import brief
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.graph import Network, Operator, TensorValues
from darwinn_reference.tflite.litert import LiteRtPart

from darwinn_testbench.comparison.compare import Comparison, compare
from darwinn_testbench.layers.check import Finding, TensorRow
from darwinn_testbench.layers.on_chip import MOVING, RENAMING
from darwinn_testbench.layers.taken_tensors import TakenTensor
from darwinn_testbench.policy import LITERT_LAYER, LsbBudget, Policy
from darwinn_testbench.report import counted

_RELATED = 0.5
"""A layer is a wrong tensor, and not another one, if less than this share of its bytes differs."""

_NAMED = 6
"""Operators that one line names, at most."""


class How(StrEnum):
    """How an operator was compared, the best first."""

    EXACT = "exact"
    POLICY = "policy"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True)
class OperatorRecord:
    """How one operator of the network on the chip was compared.

    ``tensor`` is the name of its first output. ``reason`` says why it was not compared byte for
    byte, ``identified`` how its output was found on the chip, in ``layers``. If LiteRT decides,
    ``differing`` of ``elements`` differ, by at most ``max_difference``, which is ``within`` the
    policy or not. ``assumed`` is a rule that it was computed by and that no file has shown.
    """

    operator: int
    name: str
    tensor: str
    how: How
    reason: str = ""
    identified: str = ""
    layers: tuple[int, ...] = ()
    elements: int = 0
    differing: int = 0
    max_difference: float = 0
    within: bool = True
    assumed: str = ""

    def __str__(self) -> str:
        return f"{self.operator} {self.name}"


@brief
@dataclass(frozen=True)
class OperatorFigures:
    """Operators of the network on the chip by how they were compared, at worst in any inference."""

    exact: int = 0
    policy: int = 0
    missing: int = 0
    records: tuple[OperatorRecord, ...] = ()

    @classmethod
    def of(cls, inferences: Iterable[Sequence[OperatorRecord]]) -> OperatorFigures:
        """The figures of several inferences."""
        worst: dict[int, OperatorRecord] = {}
        for record in (each for records in inferences for each in records):
            before = worst.get(record.operator)
            if before is None or _badness(record) > _badness(before):
                worst[record.operator] = record
        records = tuple(worst[index] for index in sorted(worst))
        found = Counter(each.how for each in records)
        return cls(found[How.EXACT], found[How.POLICY], found[How.MISSING], records)

    def __str__(self) -> str:
        """One line: how many, and which were not compared byte for byte."""
        total = counted(len(self.records), "operator")
        parts = [f"{self.exact} of {total} compared byte for byte"]
        for how, text in ((How.POLICY, "by policy"), (How.MISSING, "not at all")):
            chosen = [each for each in self.records if each.how is how]
            if chosen:
                parts.append(f"{len(chosen)} {text} ({_names(chosen)})")
        wrong = [each for each in self.records if not each.within]
        if wrong:
            parts.append(f"outside the policy: {_names(wrong)}")
        return ", ".join(parts)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why operators were not compared byte for byte, each once."""
        return tuple(dict.fromkeys(each.reason for each in self.records if each.reason))


def _names(records: Sequence[OperatorRecord]) -> str:
    more = ", …" if len(records) > _NAMED else ""
    return ", ".join(map(str, records[:_NAMED])) + more


def _badness(record: OperatorRecord) -> tuple[int, bool]:
    return list(How).index(record.how), not record.within


@dataclass(frozen=True, eq=False)
class Region:
    """The operators between tensors that are known to be right, ``sources``, and a taken one."""

    tensor: int
    operators: tuple[int, ...]
    sources: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Coverage:
    """How the operators of one inference were compared.

    ``judged`` compares taken tensors with LiteRT, by index, or says why it cannot. ``wrong`` are
    tensors before a taken one that the tiles do not hold as they should.
    """

    records: tuple[OperatorRecord, ...] = ()
    taken: Mapping[int, TakenTensor] = field(default_factory=dict)
    judged: Mapping[int, Comparison | str] = field(default_factory=dict)
    wrong: Mapping[int, str] = field(default_factory=dict)

    def problems(self, network: Network, output: int) -> list[str]:
        """What is wrong before the tensor ``output`` and does not show in it."""
        before = ancestors(network, output)
        found = [text for index, text in self.wrong.items() if index in before]
        for index, judged in self.judged.items():
            if index in before and isinstance(judged, Comparison) and judged.verdict != "pass":
                found.append(f"tensor {index} against LiteRT from the same bytes: {judged.reason}")
        return found


def cover(
    network: Network,
    values: TensorValues,
    on_chip: Collection[int],
    inputs: Collection[int],
    outputs: Collection[int],
    taken: Mapping[int, TakenTensor],
    rows: Sequence[TensorRow],
    parts: LiteRtParts,
    policy: Policy | None = None,
    variables: Mapping[int, AnyArray] | None = None,
) -> Coverage:
    """How each operator on the chip was compared in an inference.

    Args:
        network: the network before compilation.
        values: its tensors as the oracle has them, the taken ones among them.
        on_chip: tensors that the chip computes.
        inputs: tensors that the chip was given.
        outputs: tensors that it has sent and that are compared.
        taken: tensors that were taken from the chip, by index.
        rows: what its layers hold, if they were looked at.
        parts: LiteRT for parts of the network.
        policy: how far a taken tensor may be from LiteRT's; None: as far as a layer may be, for
            each operator between.
        variables: what variables began with; among the values they are what they ended with.
    """
    held = {row.tensor for row in rows if row.finding is Finding.EQUAL}
    sinks = held | {row.tensor for row in rows if row.finding is Finding.DIFFERS}
    sinks |= set(outputs).intersection(values)
    exact = _computed_before(network, sinks.difference(taken), values, taken, inputs)
    known = held | set(inputs) | set(taken)
    regions = [_region(network, index, known, values) for index in taken]
    judged = parts.judge(regions, values, policy, variables)
    records = _Records(network, values, exact, taken, regions, judged).of(on_chip, inputs)
    return Coverage(records, taken, judged, _wrong(network, rows, taken))


def ancestors(network: Network, output: int) -> set[int]:
    """A tensor and all that it is computed from."""
    before = network.operators_before(output)
    return {output}.union(*(operator.inputs for operator in before))


def _walk_back(
    network: Network, tensors: Iterable[int], ends: Callable[[int], bool]
) -> tuple[set[int], set[int]]:
    """Operators that compute tensors, from those that end the way, and these."""
    makers = {index: each for each in network.operators for index in each.outputs}
    operators: set[int] = set()
    ended: set[int] = set()
    waiting = list(tensors)
    while waiting:
        index = waiting.pop()
        maker = makers.get(index)
        if maker is None or ends(index):
            ended.add(index)
        elif maker.index not in operators:
            operators.add(maker.index)
            waiting += maker.inputs
    return operators, ended


def _computed_before(
    network: Network,
    sinks: Iterable[int],
    values: TensorValues,
    taken: Collection[int],
    inputs: Collection[int],
) -> set[int]:
    """Operators that the oracle computed and that a compared tensor depends on."""
    stops = {*taken, *inputs}
    return _walk_back(network, sinks, lambda index: index in stops or index not in values)[0]


def _region(network: Network, tensor: int, known: Collection[int], values: TensorValues) -> Region:
    operators, ends = _walk_back(
        network, [tensor], lambda index: index in known and index != tensor
    )
    sources = (k for k in ends if k in values and network.tensors[k].constant is None)
    return Region(tensor, tuple(sorted(operators)), tuple(sorted(sources)))


def _wrong(network: Network, rows: Sequence[TensorRow], taken: Collection[int]) -> dict[int, str]:
    """Tensors before a taken one that a layer holds with some wrong bytes."""
    before: set[int] = set()
    for index in taken:
        before |= ancestors(network, index)
    return {
        row.tensor: f"tensor {row.tensor}, by {row.operator}: {row.message}"
        for row in rows
        if row.finding is Finding.DIFFERS
        and row.tensor in before
        and row.differing < _RELATED * row.elements
    }


class _Records:
    def __init__(
        self,
        network: Network,
        values: TensorValues,
        exact: Collection[int],
        taken: Mapping[int, TakenTensor],
        regions: Sequence[Region],
        judged: Mapping[int, Comparison | str],
    ) -> None:
        self.network, self.values, self.exact = network, values, exact
        self.taken, self.judged = taken, judged
        self.regions = {index: each for each in regions for index in each.operators}

    def of(self, on_chip: Collection[int], inputs: Collection[int]) -> tuple[OperatorRecord, ...]:
        chosen = [
            each
            for each in self.network.operators
            if any(k in on_chip and k not in inputs for k in each.outputs)
        ]
        return tuple(self._record(each) for each in chosen)

    def _record(self, operator: Operator) -> OperatorRecord:
        name = self.network.tensors[operator.outputs[0]].name
        assumed = self.values.assumed.get(operator.index, "")
        if operator.index in self.exact:
            return OperatorRecord(
                operator=operator.index,
                name=operator.name,
                tensor=name,
                how=How.EXACT,
                assumed=assumed,
            )
        region = self.regions.get(operator.index)
        taken = None if region is None else self.taken[region.tensor]
        judged = None if region is None else self.judged.get(region.tensor)
        lost = [self.values.missing[k] for k in operator.outputs if k in self.values.missing]
        reason = "; ".join(taken.reasons) if taken is not None else next(iter(lost), "")
        record = OperatorRecord(
            operator=operator.index,
            name=operator.name,
            tensor=name,
            how=How.MISSING,
            reason=reason or "nothing that depends on it can be compared",
            identified="" if taken is None else taken.identified,
            layers=() if taken is None else taken.layers,
        )
        if isinstance(judged, str):
            return replace(record, reason=f"{record.reason}; {judged}")
        if judged is None:
            return record
        return replace(
            record,
            how=How.POLICY,
            elements=judged.elements,
            differing=judged.differing,
            max_difference=float(judged.max_difference or 0),
            within=judged.verdict == "pass",
        )


class LiteRtParts:
    """LiteRT for parts of a network, each made once; ``data`` is the model."""

    def __init__(self, data: bytes, network: Network) -> None:
        self.data, self.network = data, network
        self._made: dict[tuple[tuple[int, ...], ...], LiteRtPart] = {}

    def estimate(
        self, index: int, operator: Operator, values: Mapping[int, AnyArray]
    ) -> AnyArray | None:
        """LiteRT's result of one operator; None if it cannot compute it from ``values``."""
        sources = [
            k for k in operator.inputs if k >= 0 and self.network.tensors[k].constant is None
        ]
        if not all(k in values for k in sources):
            return None
        region = Region(index, (operator.index,), tuple(sorted(set(sources))))
        try:
            return self._part([region]).run(values)[index]
        except ModelError:
            return None

    def judge(
        self,
        regions: Sequence[Region],
        values: TensorValues,
        policy: Policy | None,
        variables: Mapping[int, AnyArray] | None = None,
    ) -> dict[int, Comparison | str]:
        """Compare the tensor of each region with LiteRT's from the region's own sources.

        ``variables`` are what variables began with.
        """
        found: dict[int, Comparison | str] = {}
        given = dict(values) | dict(variables or {})
        for batch in self._batches(regions):
            try:
                computed = self._part(batch).run(given)
            except ModelError as error:
                # One operator that LiteRT lacks must not disable the rest either.
                if len(batch) > 1:
                    for each in batch:
                        found |= self.judge([each], values, policy, variables)
                else:
                    found[batch[0].tensor] = f"no LiteRT: {error.reason}"
                continue
            for region in batch:
                declared = policy or self._policy(region)
                found[region.tensor] = self._compare(region.tensor, values, computed, declared)
        return found

    def _policy(self, region: Region) -> Policy:
        """As far from LiteRT as one layer may be, for each operator that computes."""
        names = [self.network.operators[n].name for n in region.operators]
        count = max(1, sum(name not in RENAMING | MOVING for name in names))
        return LsbBudget(count * LITERT_LAYER.lsb, min(100.0, count * LITERT_LAYER.percent))

    def _compare(
        self,
        index: int,
        values: TensorValues,
        computed: Mapping[int, AnyArray],
        policy: Policy,
    ) -> Comparison:
        tensor = self.network.tensors[index]
        zero_point = int(tensor.zero_point[0]) if tensor.quantised else 0
        return compare(values[index], computed[index], policy, zero_point=zero_point)

    def _batches(self, regions: Sequence[Region]) -> list[list[Region]]:
        """Regions that can be computed together: none starts from what another one computes."""
        batches: list[list[Region]] = []
        made: list[set[int]] = []
        given: list[set[int]] = []
        for region in regions:
            outputs = {k for n in region.operators for k in self.network.operators[n].outputs}
            for batch, computed, sources in zip(batches, made, given, strict=True):
                if computed.isdisjoint(region.sources) and sources.isdisjoint(outputs):
                    batch.append(region)
                    computed |= outputs
                    sources.update(region.sources)
                    break
            else:
                batches.append([region])
                made.append(outputs)
                given.append(set(region.sources))
        return batches

    def _part(self, batch: Sequence[Region]) -> LiteRtPart:
        key = (
            tuple(sorted({n for each in batch for n in each.operators})),
            tuple(sorted({k for each in batch for k in each.sources})),
            tuple(sorted({each.tensor for each in batch})),
        )
        if key not in self._made:
            self._made[key] = LiteRtPart(self.data, self.network, *key)
        return self._made[key]
