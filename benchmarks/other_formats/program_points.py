"""Points on whole programs: foreign parts are shown, two programs compared, members told."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from darwinn_formats import executorch
from darwinn_formats import flatbuffer as fb
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_formats.uses import Use
from darwinn_reference.members import DOCUMENTS, rows
from darwinn_testbench.compiler import DenseNetwork, bef_file, executorch_program

from benchmarks.iree import module_of
from benchmarks.iree_networks import dense
from benchmarks.other_formats.comparison_points import NETWORK, planted
from benchmarks.other_formats.figure import Counted, Figure, MissingError, Settings, asked, reason

_DELEGATES = (
    "EthosUBackend",
    "VgfBackend",
    "CoreMLBackend",
    "QnnBackend",
    "OpenvinoBackend",
    "VulkanBackend",
)
"""Delegates of other hardware, by the ids that their exporters write."""
_NATIVES = """
NATIVES = {{
    "{name}": lambda x: x * 2,
    "vendor::special.out": lambda x: x + 1,
}}
"""


def _delegated(name: str) -> bytes:
    """A delegate of other hardware between two kernels, one of which nobody has."""
    program = ProgramBuilder()
    method = program.method()
    x = method.input(np.float32, (2, 3), name="x")
    a, b, c = (method.tensor(np.float32, (2, 3)) for _ in range(3))
    method.delegates.append(schema.BackendDelegate(name, schema.BackendDelegateDataReference()))
    method.call("aten::abs.out", x, outputs=[a])
    method.step(schema.DelegateCall(0, (a.index, b.index)))
    method.call("vendor::special.out", b, outputs=[c])
    method.output(c)
    root, segments = program.program()
    blob = schema.BackendDelegateInlineData(fb.Span(memoryview(b"blob")))
    return executorch.dump(replace(root, backend_delegate_data=(blob,)), segments)


def foreign(settings: Settings) -> Iterator[Figure]:
    """Delegates of other hardware are shown; natives take their place."""
    shown, replaced = [], []
    for name in _DELEGATES:
        path = settings.folder / f"{name}.pte"
        path.write_bytes(_delegated(name))
        shown += [f"{name}: {why}" for why in _unshown(path, settings)]
        replaced += _natives(path, name, settings)
    total = len(_DELEGATES) * len(_VIEWS)
    yield Counted(shown, total).figure("`inspect`, `layers`, `--graph` of programs with delegates")
    yield Counted(replaced, len(_DELEGATES)).figure("`--natives` reaches delegates and operators")


def machine_code(settings: Settings) -> Iterator[Figure]:
    """A module of machine code is shown, and the original runtime executes it."""
    if importlib.util.find_spec("iree") is None:
        raise MissingError("IREE's compiler and runtime, for machine code (extra `iree`)")
    code = settings.folder / "code.vmfb"
    code.write_bytes(module_of(dense(NETWORK), "llvm-cpu"))
    yield Counted(_unshown(code, settings), len(_VIEWS)).figure(
        "`inspect`, `layers`, `--graph` of llvm-cpu"
    )
    words = [sys.executable, "-m", "darwinn_testbench", "run", str(code), "--engine", "original"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    value = "runs" if not done.returncode else (done.stderr.strip() or "?").splitlines()[-1]
    yield Figure("`run --engine original` of llvm-cpu", value, not done.returncode)


_VIEWS: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect",),
    "layers": ("layers",),
    "graph": ("layers", "--graph"),
}


def _unshown(path: Path, settings: Settings) -> list[str]:
    """Commands that do not show a program, and why."""
    failures = []
    for name, words in _VIEWS.items():
        graph = settings.folder / f"{path.name}.dot"
        command, *options = words
        code, found = asked(command, path, *options, *([graph] if options else []))
        drawn = not options or (graph.is_file() and "->" in graph.read_text())
        empty = command == "layers" and not found.get("rows")
        if code or empty or not drawn:
            failures.append(f"{name}: exit {code}, {reason(found)}")
    return failures


def _natives(path: Path, name: str, settings: Settings) -> list[str]:
    """Why a program is not refused by name without natives, or does not run with them."""
    code, found = asked("run", path)
    if code != 3 or name not in reason(found) or "--natives" not in reason(found):
        return [f"{name}: exit {code} without natives, {reason(found)}"]
    given = settings.folder / f"{name.lower()}_natives.py"
    given.write_text(_NATIVES.format(name=name))
    code, found = asked("run", path, "--natives", given)
    return [f"{name}: exit {code}, {reason(found)}"] if code else []


# --- two programs ---------------------------------------------------------------------------------

_WRITERS: dict[str, Callable[[DenseNetwork], bytes]] = {
    ".pte": executorch_program,
    ".bef": bef_file,
    ".vmfb": lambda network: module_of(dense(network), "vmvx"),
}
_BEF_NATIVES = "darwinn_testbench.compiler.natives"
_GATES = {
    ("size=0", "portable=0", "constants=1", "gap=1000"): 0,
    ("constants=0",): 1,
    ("gap=0",): 1,
}
"""Gates that hold or do not if one weight is another, and the exit code."""


def differences(settings: Settings) -> Iterator[Figure]:
    """`diff` of programs one weight apart: what is found, and the gates."""
    for ending, writer in _WRITERS.items():
        if ending == ".vmfb" and importlib.util.find_spec("iree") is None:
            raise MissingError("IREE's compiler, for .vmfb (extra `iree`)")
        old, new = (settings.folder / f"{name}{ending}" for name in ("old", "new"))
        old.write_bytes(writer(NETWORK))
        new.write_bytes(writer(planted(100)))
        options: list[object] = []
        if ending == ".bef":
            image = settings.folder / "image.npy"
            drawn = np.random.default_rng(0).integers(-128, 128, (1, 40))
            np.save(image, drawn.astype(np.int8))
            options = ["--natives", _BEF_NATIVES, "--inputs", image]
        code, found = asked("diff", old, new, *options)
        aspects = sorted(
            {row["aspect"] for row in found.get("rows", []) if row["verdict"] == "mismatch"}
        )
        kept = code == 1 and {"constants", "outputs"} <= {*aspects}
        yield Figure(f"`diff` of two {ending}", f"differ in {', '.join(aspects)}", kept)
        yield Counted(_ungated(old, new, options), len(_GATES)).figure(f"gates of {ending}, JUnit")


def _ungated(old: Path, new: Path, options: list[object]) -> list[str]:
    failures = []
    for gates, wanted in _GATES.items():
        junit = old.with_suffix(".xml")
        words = [word for gate in gates for word in ("--gate", gate)]
        code, found = asked("diff", old, new, *options, *words, "--junit", junit)
        told = ElementTree.parse(junit).getroot().findall(".//failure") if junit.is_file() else []
        if code != wanted or bool(told) != bool(wanted):
            failures.append(f"{' '.join(gates)}: exit {code}, {reason(found)}")
    return failures


# --- members --------------------------------------------------------------------------------------


def members(settings: Settings) -> Iterator[Figure]:
    """Members of the five documents, by what happens with them."""
    for name, document in DOCUMENTS.items():
        found = [row for of, row in rows() if of == name]
        seen = sum(bool(row.use & Use.SHOWN) for row in found)
        executed = sum(bool(row.use & Use.EXECUTED) for row in found)
        refused = sum(bool(row.refused) for row in found)
        value = f"{len(found)}: {seen} shown, {executed} executed, {refused} refused by name"
        yield Figure(document.title, value, bool(found))
