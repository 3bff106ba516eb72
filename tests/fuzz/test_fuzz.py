"""The fuzzer itself: what must be found is found, replayed and reduced; what is allowed is not."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from darwinn_formats import darwinn
from darwinn_formats.errors import FormatError
from darwinn_sim.errors import Deadlock
from darwinn_sim.isa.codec import decode
from darwinn_testbench.confinement import Confinement
from program_mutations import instructions_of
from sample_files import sample

from tests.fuzz import formats, harness, mutation
from tests.fuzz.harness import Harness, Task
from tests.fuzz.mutants import Mutant, Seeds
from tests.fuzz.mutation import Edit, Inapplicable
from tests.fuzz.results import Results, Tally

MANIFEST = Mutant("manifest", "manifest")
STREAM = (
    "serialized_multi_executable",
    *("serialized_executables", 0, "instruction_bitstreams", 0, "bitstream"),
)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    return Seeds(folder)


@pytest.fixture
def quick(seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> Harness:
    # Beyond what this process has: tests that ran before it may have left gigabytes.
    limits = Confinement(memory=held() + (2 << 30), file=1 << 20, seconds=2)
    monkeypatch.setattr(harness, "LIMITS", limits)
    return Harness(seeds)


def held() -> int:
    """Bytes of this process that a limit counts (``RLIMIT_DATA``)."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) << 10


def crash(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def loop(path: Path) -> None:
    while True:
        pass


def allocate(path: Path) -> None:
    bytearray(1 << 40)


def grow(path: Path) -> None:
    # As much as is allowed, where nobody asked before: not even the limit of the process knows.
    [bytes(1 << 20) for _ in range(1 << 20)]


def forget(path: Path) -> None:
    raise KeyError("forgotten")


def leave(path: Path) -> None:
    os._exit(7)


@pytest.mark.parametrize(
    ("defect", "finding"),
    [
        (crash, "read-manifest: SIGSEGV"),
        (loop, "read-manifest: no end"),
        (allocate, "read-manifest: memory: test_fuzz.py:allocate"),
        (grow, "read-manifest: memory: test_fuzz.py:<listcomp>"),
        (forget, "read-manifest: KeyError at test_fuzz.py:forget"),
        (leave, "harness: exit code 7"),
    ],
)
def test_a_defect_is_found(
    quick: Harness,
    monkeypatch: pytest.MonkeyPatch,
    defect: Callable[[Path], None],
    finding: str,
) -> None:
    monkeypatch.setitem(formats.FUNCTIONS, "read-manifest", defect)
    assert [each.split("<")[0] for each in quick.outcome(Task(0, MANIFEST)).findings] == [
        finding.split("<")[0]
    ]


def test_an_error_of_the_project_is_allowed(
    quick: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise FormatError("field", "reason")

    monkeypatch.setitem(formats.FUNCTIONS, "read-manifest", refuse)
    outcome = quick.outcome(Task(0, MANIFEST))
    assert not outcome.findings
    assert [each.end for each in outcome.done] == ["FormatError"]


def test_every_byte_of_a_seed_is_changed_once(seeds: Seeds) -> None:
    mutants = list(seeds.every_byte(("bef", "manifest")))
    assert {each.format for each in mutants} == {"bef", "manifest"}
    known = {(each.format, each.seed): seeds.changed(each) for each in seeds.all()}
    assert len(mutants) == sum(
        len(data) for (form, _), data in known.items() if form in ("bef", "manifest")
    )
    for each in mutants[::97]:
        data = known[each.format, each.seed]
        assert sum(a != b for a, b in zip(seeds.changed(each), data, strict=True)) == 1


def test_programs_without_end_are_drawn_and_ended(seeds: Seeds) -> None:
    drawn = [seeds.drawn(number, (), 1.0) for number in range(40)]
    assert drawn == [seeds.drawn(number, (), 1.0) for number in range(40)]
    assert {edit.what for each in drawn for edit in each.edits} == {"endless"}
    assert all(seeds.changed(each) for each in drawn)
    few = Harness(seeds, ("--max-seconds=0.05", "--max-memory=1024"))
    outcomes = [few.outcome(Task(number, mutant)) for number, mutant in enumerate(drawn[:6])]
    assert not [each.findings for each in outcomes if each.findings]
    assert [done for each in outcomes for done in each.done if done.end == "out of time"]


@pytest.mark.parametrize(
    ("seed", "which", "what", "arguments"),
    [
        ("convolution.package", 0, "field", (18, "sync_increment", 0, 2)),
        # A deadlock in the fixed order, and in some six of seven random ones.
        ("dense.package", 0, "field", (22, "wait_idle", 0, 1022)),
        # Parameters are asked for behind the fence that waits for them: by USB they come.
        ("dense.package", 1, "swap instructions", (26, 9)),
        # A row of wide memory by what is left of the address of a buffer.
        ("dense.package", 0, "field", (27, "base_override", 0, 1)),
    ],
)
def test_models_may_disagree_where_it_is_open(
    seeds: Seeds, seed: str, which: int, what: str, arguments: tuple[Any, ...]
) -> None:
    executable = ("serialized_multi_executable", "serialized_executables", which)
    at = (*executable, "instruction_bitstreams", 0, "bitstream")
    mutant = Mutant("darwinn", seed, (Edit(at, what, arguments),))
    assert Harness(seeds).is_undecided(Task(0, mutant))
    assert not Harness(seeds).outcome(Task(0, mutant)).findings


def test_models_that_disagree_are_found(seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise Deadlock(("a unit",))

    def accept(path: Path) -> None:
        pass

    monkeypatch.setitem(formats.FUNCTIONS, "run", fail)
    monkeypatch.setitem(formats.FUNCTIONS, "cycles", accept)
    task = Task(0, Mutant("darwinn", "convolution.package"))
    assert Harness(seeds).outcome(task).findings == ["the models differ: deadlock and success"]
    assert not Harness(seeds, agree=False).outcome(task).findings


def test_a_finding_is_reduced_to_the_edit_that_matters(
    quick: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def picky(path: Path) -> None:
        if b"lsb:1" not in path.read_bytes():
            raise KeyError

    monkeypatch.setitem(formats.FUNCTIONS, "read-manifest", picky)
    others = tuple(Edit(("case", n, "name"), "set", ("x",)) for n in range(2))
    edits = (*others, Edit(("case", 1, "policy"), "set", ("",)))
    task = Task(0, Mutant("manifest", "manifest", edits))
    (finding,) = quick.outcome(task).findings
    assert quick.shrunk(task, finding).mutant.edits == edits[-1:]


def litter(path: Path) -> None:
    Path("core.12").touch()
    with tempfile.NamedTemporaryFile(delete=False):
        pass


def test_what_is_left_behind_is_found(quick: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(formats.FUNCTIONS, "read-manifest", litter)
    findings = quick.outcome(Task(0, MANIFEST)).findings
    assert findings == ["read-manifest: left behind: core.N"]


def test_a_process_takes_a_batch_and_a_defect_ends_one_mutant_only(
    quick: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are done in the next process, and each is counted with its own time and memory."""
    processes = []

    def sometimes(path: Path) -> None:
        lines = path.read_bytes().splitlines()
        processes.append(os.getpid())
        if b'"crash"' in path.read_bytes():
            crash(path)
        if b'"grow"' in path.read_bytes():
            bytes(b"x" * (300 << 20))
        assert lines and len(processes) <= 4

    monkeypatch.setitem(formats.FUNCTIONS, "read-manifest", sometimes)
    names = ["a", "grow", "crash", *"bcdefg"]
    edits = [Edit(("case", 0, "name"), "set", (name,)) for name in names]
    mutants = [Mutant("manifest", "manifest", (edit,)) for edit in edits]
    four = replace(quick, batch=4)
    outcomes = list(four.outcomes(Task(n, mutant) for n, mutant in enumerate(mutants)))
    assert [each.task.number for each in outcomes] == list(range(len(names)))
    assert [each.findings for each in outcomes if each.findings] == [["read-manifest: SIGSEGV"]]
    peaks = {name: each.peak for name, each in zip(names, outcomes, strict=True)}
    assert peaks["grow"] - peaks["a"] > 200 << 20 > peaks["b"] - peaks["a"]


def test_a_finding_that_others_have_caused_says_so(
    quick: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []

    def remember(path: Path) -> None:
        seen.append(path)
        if len(seen) == 3:
            forget(path)

    monkeypatch.setitem(formats.FUNCTIONS, "read-manifest", remember)
    outcomes = list(quick.outcomes(Task(number, MANIFEST) for number in range(4)))
    assert [each.findings for each in outcomes] == [
        [],
        [],
        ["read-manifest: KeyError at test_fuzz.py:forget (after others)"],
        [],
    ]


def test_results_are_added_up_over_runs(quick: Harness, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "tally.json"
    assert Results.load(path).next_number() is None
    for first in (10, 20):
        results = Results.load(path)
        results.begin(first)
        for outcome in quick.outcomes([Task(first, MANIFEST), Task(first + 1, MANIFEST)]):
            results.add(outcome)
            results.found("a finding", outcome.task.number)
        results.save(path)
    results = Results.load(path)
    assert results.runs == [[10, 2], [20, 2]] and results.next_number() == 22
    assert results.formats["manifest"].mutants == 4
    assert results.formats["manifest"].ends == {"read-manifest success": 4}
    assert results.findings["a finding"].numbers == [10, 11, 20, 21]


def test_shares_are_of_the_runs_of_a_command() -> None:
    """A mutant may have several runs of one command, and none of another."""
    ends = {"run FormatError": 6, "run success": 2, "inspect success": 3, "cycles Deadlock": 1}
    assert Tally(mutants=3, ends=ends).shares() == [
        ("run FormatError", 0.75),
        ("inspect success", 1.0),
        ("run success", 0.25),
        ("cycles Deadlock", 1.0),
    ]


def test_a_mutant_follows_from_its_number(seeds: Seeds) -> None:
    drawn = [seeds.drawn(number) for number in range(100)]
    assert drawn == [seeds.drawn(number) for number in range(100)]
    assert {each.format for each in drawn} > {"darwinn", "stream", "executorch", "iree"}
    again = [seeds.drawn(number) for number in range(100, 200)]
    assert not set(map(str, drawn)) & set(map(str, again))


@pytest.mark.parametrize("form", formats.BY_NAME)
def test_most_mutants_of_a_format_can_be_written_and_differ(seeds: Seeds, form: str) -> None:
    originals = {seeds.changed(each) for each in seeds.all() if each.format == form}
    changed = [seeds.changed(seeds.drawn(number, (form,))) for number in range(20)]
    assert not originals & set(changed)
    assert len(set(changed)) > 15


def test_seeds_end_well(seeds: Seeds) -> None:
    """One of each format: what is done with it is what it is for."""
    fuzzer = Harness(seeds, jobs=2)
    first = {each.format: each for each in reversed(seeds.all())}
    fuzzer.warm_up(first.values())
    outcomes = list(fuzzer.outcomes(Task(0, each) for each in first.values()))
    assert {each.task.mutant.format for each in outcomes} == set(formats.BY_NAME)
    for outcome in outcomes:
        assert not outcome.findings, outcome
        # The recorded inference has zeros for its output.
        allowed = ("mismatch",) if outcome.task.mutant.format == "session" else ("pass", "success")
        assert outcome.done[0].end in allowed, outcome


def test_a_field_is_changed_by_the_table_and_nothing_else(seeds: Seeds) -> None:
    def program(data: bytes) -> Iterator[tuple[str, dict[str, object]]]:
        (chunk,) = darwinn.load(data).executables[0].instruction_bitstreams
        decoded = decode(chunk.bitstream)
        for number in range(len(decoded)):
            yield decoded[number].instruction.name, dict(decoded[number].values)

    original = seeds.changed(Mutant("darwinn", "convolution.package"))
    operations = list(program(original))
    number, name = next(
        (n, field)
        for n, (_, values) in enumerate(operations)
        for field in values
        if field.endswith("increment") and values[field] == 1
    )
    edit = Edit(STREAM, "field", (number, name, 0, 0))
    changed = list(program(seeds.changed(Mutant("darwinn", "convolution.package", (edit,)))))
    operations[number][1][name] = 0
    assert changed == operations


def test_a_stream_without_instructions_is_one() -> None:
    assert instructions_of(b"") == []
    assert mutation.drawn(Random(0), {"bitstream": b""}, [("bitstream",)]) is None


def test_an_edit_that_does_not_fit_is_said_to_be_so(seeds: Seeds) -> None:
    for edit in (
        Edit(("nothing",), "set", (1,)),
        Edit((*STREAM[:-2], 99), "drop", (0, 1)),
        Edit(STREAM, "field", (0, "no such field", 0, 0)),
    ):
        with pytest.raises(Inapplicable):
            seeds.changed(Mutant("darwinn", "convolution.package", (edit,)))
    assert mutation.applied({"a": [1, 2]}, [Edit(("a",), "swap", (0, 1))]) == {"a": [2, 1]}
