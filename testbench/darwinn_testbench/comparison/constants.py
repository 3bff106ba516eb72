"""Constants of two programs, compared directly where they can be matched.

Exporters keep weights in other orders of dimensions and under other names. So constants are matched
by their elements: of one type and number, the same ones in any order first. Of those that are left,
two are taken for one constant if all but a few elements agree in some order of dimensions.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from darwinn_formats import executorch, iree, tfrt
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.xnnpack import XnnpackGraph
from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.xnnpack.operands import constant_of
from darwinn_reference.tflite.graph import Network

from darwinn_testbench.comparison.constant import LEAST, MOST_RANK, SHARE, Constant, mark
from darwinn_testbench.comparison.untyped_constants import Store, cut, rows_of, stores_of
from darwinn_testbench.layers.localise import Divergence

_MOST_TRIED = 1 << 26
"""Elements that are looked at to find the counterparts of constants that differ."""
_ROUNDED = 2.0**-20
"""Relative difference of two floats that compilers may have rounded apart."""


def constants_of_both(left: Any, right: Any) -> tuple[list[Constant], list[Constant]]:
    """Constants of two programs.

    Those of IREE have no types and sizes. They are found by what the other program has; of two such
    programs they are rows of bytes.
    """
    programs = (left, right)
    typed = [_typed_constants(each) for each in programs]
    stores = [_stores(each) for each in programs]
    first, second = (
        cut(stores[side], typed[1 - side]) if stores[side] else typed[side] for side in (0, 1)
    )
    return (rows_of(stores[0]), rows_of(stores[1])) if all(stores) else (first, second)


def _stores(program: Any) -> list[Store]:
    module = getattr(program, "module", None)
    if not isinstance(module, iree.Module):
        return []
    return stores_of(module, getattr(program, "parameters", ()))


def _typed_constants(program: Any) -> list[Constant]:
    """Constants of a program whose format says types and sizes: none of IREE."""
    network, file = getattr(program, "network", None), getattr(program, "file", None)
    if isinstance(network, Network):
        found = _of_network(network)
    elif isinstance(file, executorch.ProgramFile):
        found = _of_executorch(file)
    elif isinstance(file, tfrt.BefFile):
        found = _of_bef(file)
    else:
        return []
    kept = (each for each in found if each.data.size >= LEAST)
    return [each for each in kept if each.data.dtype.kind in "fiu"]


def _plain(data: AnyArray) -> AnyArray:
    """Elements in a type that all formats share: integers of 64 bits, floats as they are."""
    return data if data.dtype.kind == "f" else data.astype(np.int64)


def _of_network(network: Network) -> Iterator[Constant]:
    for tensor in network.tensors:
        if tensor.constant is not None:
            yield Constant(tensor.name, np.asarray(tensor.constant))


def _of_executorch(file: executorch.ProgramFile) -> Iterator[Constant]:
    if file.absent:
        return
    for plan in file.program.execution_plan:
        for index, value in enumerate(plan.values):
            if isinstance(value.val, schema.Tensor):
                yield from _of_tensor(file, value.val, f"%{index}")
        for delegate in plan.delegates:
            graph = file.xnnpack(delegate)
            yield from () if graph is None else _of_graph(graph)


def _of_tensor(
    file: executorch.ProgramFile, tensor: schema.Tensor, number: str
) -> Iterator[Constant]:
    """The constant that a tensor is, if it is one and NumPy has its type."""
    dtype = schema.DTYPES.get(tensor.scalar_type)
    data = None if dtype is None else file.data(tensor)
    if data is not None and tensor.allocation_info is None:
        stored = tuple(tensor.sizes[each] for each in tensor.dim_order)
        array = np.frombuffer(data, dtype, tensor.elements).reshape(stored)
        yield Constant(tensor.name or number, array)


def _of_graph(graph: XnnpackGraph) -> Iterator[Constant]:
    for value in graph.root.xvalues:
        if value.tensor.constant_buffer_idx:
            yield Constant(f"value {value.tensor.id_out}", constant_of(graph, value).array)


def _of_bef(file: tfrt.BefFile) -> Iterator[Constant]:
    for number, attribute in enumerate(file.attributes):
        if isinstance(attribute, tfrt.Array | tfrt.Dense):
            yield Constant(f"attribute {number}", np.asarray(attribute.value))


def differing(left: Sequence[Constant], right: Sequence[Constant]) -> list[Divergence]:
    """The constants of two sides that are one but for a few elements, as differences of run 0."""
    found: list[Divergence] = []
    tried = 0
    for ours, theirs in _unmatched(left, right):
        for one, two in itertools.product(ours, theirs):
            tried += one.data.size
            if tried > _MOST_TRIED:
                return found
            differs = _difference(one, two)
            if differs is not None:
                found.append(differs)
    return found


def _unmatched(
    left: Sequence[Constant], right: Sequence[Constant]
) -> Iterator[tuple[list[Constant], list[Constant]]]:
    """Constants of one type and number of elements that the other side has in no order."""
    groups: dict[tuple[str, int], tuple[list[Constant], list[Constant]]] = defaultdict(
        lambda: ([], [])
    )
    for side, constants in enumerate((left, right)):
        for each in constants:
            plain = replace(each, data=_plain(each.data))
            groups[plain.data.dtype.str, plain.data.size][side].append(plain)
    for ours, theirs in groups.values():
        known = [{mark(each.data) for each in side} for side in (ours, theirs)]
        yield (
            [each for each in ours if mark(each.data) not in known[1]],
            [each for each in theirs if mark(each.data) not in known[0]],
        )


def _difference(one: Constant, two: Constant) -> Divergence | None:
    """How two constants differ, if all but few elements agree in some order of dimensions."""
    if len(np.unique(one.data)) <= 2:
        return None
    size = one.data.size
    best: tuple[int, float, tuple[int, ...]] | None = None
    for order, ours, theirs in _orders(one.data, two.data):
        wrong = _apart(ours, theirs)
        count = int(np.count_nonzero(wrong))
        if best is None or count < best[0]:
            differences = np.abs(ours[wrong].astype(np.float64) - theirs[wrong])
            best = count, float(differences.max(initial=0)), order
    if best is None or not 0 < best[0] <= max(1, size // SHARE):
        return None
    count, greatest, order = best
    is_same = order == tuple(range(len(order)))
    return Divergence(
        run=0,
        first=True,
        name=two.name,
        operation="no operator: it is a constant",
        where=f"constant {one.name}",
        paired="by its elements" + ("" if is_same else f", dimensions {order}"),
        elements=size,
        differing=count,
        max_difference=greatest,
    )


def _apart(ours: AnyArray, theirs: AnyArray) -> AnyArray:
    """Where two constants differ: floats by more than rounding."""
    apart: AnyArray = ours != theirs
    if ours.dtype.kind == "f":
        apart &= ~np.isclose(ours, theirs, rtol=_ROUNDED, atol=0, equal_nan=True)
    return apart


def _orders(one: AnyArray, two: AnyArray) -> Iterator[tuple[tuple[int, ...], AnyArray, AnyArray]]:
    """Orders of the dimensions in which two arrays can be one, with the elements of both.

    Of a format without sizes the elements are a row, which fits any order.
    """
    if min(one.ndim, two.ndim) == 0 or max(one.ndim, two.ndim) > MOST_RANK:
        return
    turned, other = (one, two) if one.ndim > 1 else (two, one)
    wanted = [size for size in other.shape if size != 1]
    for order in itertools.permutations(range(turned.ndim)):
        sizes = [turned.shape[each] for each in order if turned.shape[each] != 1]
        if other.ndim == 1 or sizes == wanted:
            flat, row = turned.transpose(order).reshape(-1), other.reshape(-1)
            yield order, *((flat, row) if turned is one else (row, flat))
