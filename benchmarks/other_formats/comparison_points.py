"""Points on comparison: the policy of all pairs of formats, planted weights, generated inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
from darwinn_formats import flatbuffer as fb
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import (
    NATIVES,
    DenseNetwork,
    bef_file,
    executorch_program,
    random_dense,
    uncompiled,
)
from darwinn_testbench.report import Verdict

from benchmarks.iree_networks import dense
from benchmarks.other_formats.figure import Counted, Figure, MissingError, Settings, asked, reason

_WRITERS: dict[str, Callable[[DenseNetwork], bytes]] = {
    ".tflite": uncompiled,
    ".pte": executorch_program,
    ".bef": bef_file,
}
NETWORK = random_dense((40, 24), 5)


def pairs(settings: Settings) -> Iterator[Figure]:
    """One network in all formats, and again with one weight a step off, compared both ways."""
    right, wrong = settings.folder / "right", settings.folder / "wrong"
    formats = _written(NETWORK, right)
    _written(planted(1), wrong)
    try:
        for network, stem in ((NETWORK, right), (planted(1), wrong)):
            Path(f"{stem}.vmfb").write_bytes(settings.compiled(dense(network)).read_bytes())
        formats.append(".vmfb")
    except MissingError as error:
        yield Figure("IREE is left out", str(error))
    ways = list(permutations(formats, 2))
    policies, failed, unseen = {}, [], []
    for file, reference in ways:
        natives = NATIVES if ".bef" in (file, reference) else None
        same = verify(f"{right}{file}", f"{right}{reference}", runs=2, natives=natives)
        policies[file, reference] = {row.policy for row in same.rows}
        if same.verdict is not Verdict.PASS:
            failed.append(f"{file} by {reference}: {same.verdict}, {same.message}"[:200])
        other = verify(f"{wrong}{file}", f"{right}{reference}", runs=2, natives=natives)
        if other.verdict is not Verdict.MISMATCH:
            unseen.append(f"{file} by {reference}: {other.verdict}")
    yield Counted(failed, len(ways)).figure(f"pairs of formats that agree ({', '.join(formats)})")
    differ = [f"{a} by {b}" for a, b in ways if policies[a, b] != policies[b, a]]
    yield Counted(differ, len(ways)).figure("pairs whose policy is the same the other way round")
    yield Counted(unseen, len(ways)).figure("planted weights, one step off, that are a mismatch")


def planted(by: int) -> DenseNetwork:
    """The network with one weight another."""
    (layer,) = NETWORK.layers
    weights = layer.weights.copy()
    weights[3, 7] += -by if weights[3, 7] > 0 else by
    return replace(NETWORK, layers=(replace(layer, weights=weights),))


def _written(network: DenseNetwork, stem: Path) -> list[str]:
    """Write a network in every format of this project; the endings of its files."""
    for ending, writer in _WRITERS.items():
        Path(f"{stem}{ending}").write_bytes(writer(network))
    return [*_WRITERS]


# --- inputs ---------------------------------------------------------------------------------------


def inputs(settings: Settings) -> Iterator[Figure]:
    """Programs with open sizes, indices, test cases, and data that is not at hand."""
    failures = []
    for name, data in _DRAWN.items():
        path = settings.folder / name
        path.write_bytes(data())
        code, found = asked("run", path, "--runs", 2)
        if code:
            failures.append(f"{name}: exit {code}, {reason(found)}")
    yield Counted(failures, len(_DRAWN)).figure("programs that run on generated inputs")

    path = settings.folder / "bound.pte"
    _, found = asked("verify", path, "--reference", path)
    shapes = {tuple(row["shape"]) for row in found["rows"]}
    told = " ".join(found["warnings"])
    said = "upper bound" in told and "every second time" in told
    value = ", ".join("x".join(map(str, shape)) for shape in sorted(shapes, reverse=True))
    yield Figure("sizes of a bound of 64x3, and a warning that says so", value, said)

    cases = settings.folder / "cases.bpte"
    cases.write_bytes(_bundle())
    code, found = asked("run", cases)
    own = not code and found["rows"][0]["minimum"] == found["rows"][0]["maximum"] == _CASE * 2
    yield Figure("`run` of a .bpte", "its own cases" if own else reason(found), own)

    absent = settings.folder / "absent.pte"
    absent.write_bytes(_external())
    code, found = asked("inspect", absent)
    named = not code and "absent.ptd" in str(found)
    yield Figure("`inspect` without the .ptd", "names it" if named else reason(found), named)


_ROWS = 11
_CASE = 1.5


def _bounded() -> bytes:
    program = ProgramBuilder()
    method = program.method()
    x, y = (method.tensor(np.float32, (64, 3), is_bound=True) for _ in range(2))
    method.inputs.append(x.index)
    method.call("aten::add.out", x, x, 1, outputs=[y])
    method.output(y)
    return program.build()


def _indexing(operator: str) -> bytes:
    """Rows of a table by token."""
    program = ProgramBuilder()
    method = program.method()
    tokens = method.input(np.int64, (40,))
    table = program.constant(np.arange(_ROWS * 2, dtype=np.float32).reshape(_ROWS, 2))
    result = method.tensor(np.float32, (40, 2))
    if operator == "aten::embedding.out":
        method.call(operator, table, tokens, -1, False, False, outputs=[result])
    else:
        method.call(operator, table, 0, tokens, outputs=[result])
    method.output(result)
    return program.build()


_DRAWN: dict[str, Callable[[], bytes]] = {
    "bound.pte": _bounded,
    "embedding.pte": lambda: _indexing("aten::embedding.out"),
    "index_select.pte": lambda: _indexing("aten::index_select.out"),
}


def _doubling() -> bytes:
    program = ProgramBuilder()
    method = program.method()
    x, y = method.input(np.float32, (2, 3)), method.tensor(np.float32, (2, 3))
    method.call("aten::add.out", x, x, 1, outputs=[y])
    method.output(y)
    return program.build()


def _bundle() -> bytes:
    """A program with one test case: inputs of one value, outputs of twice that."""

    def stored(value: float) -> schema.BundledValue:
        data = np.full((2, 3), value, np.float32).tobytes()
        kind = schema.ScalarType.FLOAT32
        return schema.BundledValue(schema.BundledTensor(kind, (2, 3), data, dim_order=(0, 1)))

    case = schema.MethodTestCase((stored(_CASE),), (stored(2 * _CASE),))
    suite = schema.MethodTestSuite("forward", (case,))
    inner = fb.Span(memoryview(_doubling()))
    return fb.write(schema.BundledProgram(2, (suite,), inner))


def _external() -> bytes:
    """A program whose weights are in a file of their own."""
    program = ProgramBuilder()
    method = program.method()
    x, y = method.input(np.float32, (2, 3)), method.tensor(np.float32, (2, 3))
    info = schema.ExtraTensorInfo(
        fully_qualified_name="weights", location=schema.TensorDataLocation.EXTERNAL
    )
    kind = schema.ScalarType.FLOAT32
    outside = schema.Tensor(kind, sizes=(2, 3), dim_order=(0, 1), extra_tensor_info=info)
    weights = method.value(outside)
    method.call("aten::add.out", x, weights, 1, outputs=[y])
    method.output(y)
    return program.build()
