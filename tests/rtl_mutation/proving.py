"""Which proofs of the gate a mutant breaks (tests/formal): a proof is a test of its module too."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path, PurePath

from darwinn_rtl.source_files import source_files
from darwinn_rtl.yosys import DesignRefused
from weaving import STATEMENT

from tests.formal.clock_enable import ask_registers
from tests.formal.proofs import INDUCTION, PROOFS, Proof
from tests.formal.yosys import WRAPPERS, Answer, Question, ask, sources
from tests.mutation.mutants import Mutant
from tests.rtl_mutation.elaborated import Elaborated

PROVED_BY = "tests/formal/test_formal.py::test_proof_holds["
"""So begin the tests that are proofs; then comes the proof's name."""

CLOCK_ENABLE = "tests/formal/test_clock_enable.py::test_nothing_changes_without_the_clock_enable"
"""What is asked where a clock enable is assigned."""


def proof_named(test: str) -> Proof:
    """The proof that a test is; raises ``StopIteration`` if there is none of the name any more."""
    name = test.removeprefix(PROVED_BY).removesuffix("]")
    return next(proof for proof in PROOFS if proof.name == name)


@cache
def _held() -> dict[str, frozenset[Path]]:
    """Of each wrapper, the files of the modules that it holds, as they are elaborated."""
    wrappers = sorted({proof.wrapper for proof in PROOFS})
    with tempfile.TemporaryDirectory() as folder:
        work, own = Path(folder).resolve(), sorted(WRAPPERS.glob("*.sv"))
        every = dict.fromkeys(path for each in wrappers for path in sources(each, work, {}))
        rest = [path for path in (*source_files(), *own) if path not in every]
        # Of two modules of a name the last one counts: what stands in for one is a wrapper's.
        return Elaborated([*rest, *every], wrappers).held()


def proofs_about(source: str) -> list[Proof]:
    """Proofs of the gate that hold the module of a source: first those of it, then those of the
    fewest modules."""
    held = {
        wrapper: files
        for wrapper, files in _held().items()
        if any(path.as_posix().endswith(f"/{source}") for path in files)
    }
    found = [proof for proof in PROOFS if proof.of_the_gate and proof.wrapper in held]
    own = PurePath(source).stem
    return sorted(
        found, key=lambda proof: (own not in proof.module.split(", "), len(held[proof.wrapper]))
    )


def broken_by(mutant: Mutant, source: bytes) -> str:
    """The test of the first proof that does not hold any more; empty if all do, if yosys does not
    take the mutant, or where there is no yosys."""
    if not find_spec("pyosys"):
        return ""
    place = f"({mutant.replacement})" if mutant.replacement != STATEMENT else STATEMENT
    text = source[: mutant.start] + place.encode() + source[mutant.end :]
    changed = {PurePath(mutant.file).name: text.decode()}
    for test, holds in _asked(mutant):
        with tempfile.TemporaryDirectory() as folder, suppress(DesignRefused):
            if not holds(changed, Path(folder)):
                return test
    return ""


def _asked(mutant: Mutant) -> Iterator[tuple[str, Callable[[dict[str, str], Path], bool]]]:
    """Tests that are proofs, and whether each holds with sources that are changed."""
    if "clock_enable =" in mutant.before:
        yield CLOCK_ENABLE, _stays
    for proof in proofs_about(mutant.file):
        yield f"{PROVED_BY}{proof.name}]", partial(_holds, proof)


def _stays(changed: dict[str, str], folder: Path) -> bool:
    """Whether a tile holds what it holds while its clock enable is 0."""
    return ask_registers(folder, changed) is not Answer.FOUND


def _holds(proof: Proof, changed: dict[str, str], folder: Path) -> bool:
    question = Question("prove", "", proof.bound or INDUCTION, induction=not proof.bound)
    (reply,), _ = ask(proof.wrapper, proof.parameters, [question], folder, changed=changed)
    return reply.answer in (Answer.PROVED, Answer.BOUNDED)
