"""The steps of a lifted program, as kernels and products of matrices make them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel.structure import Records, join
from darwinn_sim.lifting.kernels import Span, Step, StepPlan, find_spans
from darwinn_sim.lifting.scalar_steps import WordOperation, placed_operations
from darwinn_sim.lifting.slots import Placed
from darwinn_sim.lifting.stage import Made, Stage
from darwinn_sim.lifting.stages import split
from darwinn_sim.units.tensor_records import Parameters

_SPARSE, _DENSE, _TAKEN = 8.0, 48.0, 2.0
"""How much is done in a time: products with few weights, in matrices, and bytes gathered for the
latter."""

_COEFFICIENTS = chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS
_BOUNDS = chip.TABLE_SEGMENTS - 1


class Matrix(NamedTuple):
    """Weights of a step whose sums are products of matrices: (lanes, columns). ``parts``: where
    the columns end that are added up by themselves, so that sums are exact."""

    step: int
    parts: tuple[int, ...]
    weights: NDArray[np.float32]


def planned(placed: Iterable[Placed], tensor: Records[Parameters]) -> tuple[StepPlan, list[Matrix]]:
    """All steps, and the weights of those that are matrices."""
    planner = _Planner()
    for each in placed:
        planner.add(each)
    return planner.plan(tensor), planner.matrices


class _Planner:
    def __init__(self) -> None:
        self.matrices: list[Matrix] = []
        self._steps: list[Records[Step]] = [Step.zeros(0)]
        self._spans: list[Records[Span]] = [Span.zeros(0)]
        self._numbers: dict[str, list[NDArray[Any]]] = {}
        self._counts = {"lanes": 0, "columns": 0, "spans": 0, "weight": 0}
        self._tables: dict[bytes, int] = {bytes(4 * chip.ROW_WORDS): 0}
        self._operations: list[Records[WordOperation]] = [WordOperation.zeros(0)]

    def add(self, placed: Placed) -> None:
        """The next step."""
        stage = placed.stage
        if stage.how is Made.OPERATIONS:
            self._add_operations(placed)
            return
        step = Step.zeros(1)
        step["how"], step["positions"] = stage.how, stage.positions
        step["column"], step["columns"] = self._counts["columns"], placed.operands.shape[1]
        step["others"] = placed.others.shape[1]
        step["width"], step["other_width"] = stage.width, stage.other_width
        zeros = stage.zeros if stage.how is Made.PAIRS else (stage.zero, 0)
        step["zero"], step["other_zero"] = zeros
        step["lane"], step["lanes"] = self._counts["lanes"], stage.lanes
        step["biased"] = stage.bias is not None
        step["bias_column"] = placed.operands.shape[1] - stage.of_bias
        step["parameters"], step["table"] = stage.row, self._table(stage)
        for name in ("slot", "of_lane", "of_byte", "of_position"):
            step[name] = getattr(placed, name)
        parts = _parts(stage)
        if parts:
            weights = np.ascontiguousarray(stage.weights.T, np.float32)
            self.matrices.append(Matrix(len(self._steps) - 1, parts, weights))
        self._steps.append(step)
        self._add_lanes(stage, not parts)
        self._add_spans(placed.operands)
        self._add_spans(placed.others)

    def _add_operations(self, placed: Placed) -> None:
        step = Step.zeros(1)
        step["how"], step["positions"] = placed.stage.how, placed.stage.positions
        step["operation"] = sum(map(len, self._operations))
        self._steps.append(step)
        made = placed_operations(placed.stage.operations, placed.operands, placed.slot)
        self._operations.append(made)

    def _table(self, stage: Stage) -> int:
        if stage.table is None:
            return 0
        return self._tables.setdefault(stage.table.tobytes(), len(self._tables))

    def _add_lanes(self, stage: Stage, sparse: bool) -> None:
        """Offsets and scales of lanes, and weights that are not 0 if they are few."""
        lane, column = np.nonzero(stage.weights.T) if sparse else (_NOTHING, _NOTHING)
        weight = stage.weights[column, lane]
        offset = stage.offset
        if sparse:
            # The zero point is the same for all bytes: it is part of what is added once.
            summed = stage.weights[: len(stage.weights) - stage.of_bias]
            offset = offset - np.int32(stage.zero) * summed.sum(axis=0, dtype=np.int32)
        begin = self._counts["weight"] + np.searchsorted(lane, np.arange(stage.lanes))
        bias = np.zeros(stage.lanes, np.int32) if stage.bias is None else stage.bias
        self._append(offset=offset, bias=bias, scale=stage.scale)
        self._append(weights=begin, weight=weight, weighted=column)
        self._counts["lanes"] += stage.lanes
        self._counts["weight"] += len(weight)

    def _add_spans(self, slots: NDArray[np.int32]) -> None:
        columns = np.ascontiguousarray(slots.T)
        spans, ends = Span.zeros(columns.size), np.empty(len(columns), np.int32)
        find_spans(columns, spans, ends)
        count = int(ends[-1]) if len(ends) else 0
        self._spans.append(spans[:count].copy())
        begins = np.append(0, ends[:-1]) if len(ends) else ends
        self._append(columns=self._counts["spans"] + begins)
        self._counts["columns"] += len(columns)
        self._counts["spans"] += count

    def _append(self, **numbers: NDArray[Any]) -> None:
        for name, each in numbers.items():
            self._numbers.setdefault(name, []).append(each)

    def _all(self, name: str, *last: int) -> NDArray[np.int32]:
        return np.concatenate([*self._numbers.get(name, []), last]).astype(np.int32)

    def plan(self, tensor: Records[Parameters]) -> StepPlan:
        """All of them."""
        words = np.frombuffer(b"".join(self._tables), np.float32).reshape(-1, chip.ROW_WORDS)
        return StepPlan(
            tensor=tensor,
            steps=join(self._steps),
            spans=join(self._spans),
            columns=self._all("columns", self._counts["spans"]),
            offset=self._all("offset"),
            bias=self._all("bias"),
            scale=np.concatenate([np.zeros(0, np.float32), *self._numbers.get("scale", [])]),
            weights=self._all("weights", self._counts["weight"]),
            weight=self._all("weight"),
            weighted=self._all("weighted"),
            coefficient=words[:, :_COEFFICIENTS].copy(),
            lower_bound=words[:, _COEFFICIENTS:][:, :_BOUNDS].copy(),
            operations=join(self._operations),
        )


def _parts(stage: Stage) -> tuple[int, ...]:
    """Where the parts of a matrix end; none if the stage is no such product, or is done sooner
    weight by weight."""
    if stage.how is not Made.PRODUCTS or stage.of_bias:
        return ()
    few = np.count_nonzero(stage.weights) / _SPARSE
    many = stage.weights.size / _DENSE + len(stage.weights) / _TAKEN
    return () if few <= many else split(stage) or ()


_NOTHING = np.zeros(0, np.intp)
