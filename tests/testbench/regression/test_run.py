"""`darwinn regress`: what the manifest says is done once, whatever is killed on the way."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from darwinn_formats.errors import FormatError, Unavailable
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError
from darwinn_testbench.regression import cluster, manifest, pool, program, task
from darwinn_testbench.regression.journal import Journal
from darwinn_testbench.regression.manifest import Case
from darwinn_testbench.regression.resume import JOURNAL, resume
from darwinn_testbench.regression.run import regress
from darwinn_testbench.regression.task import Outcome, Task, outcome_of, tasks_of
from darwinn_testbench.report import Report, Verdict
from nightly import nightly_too
from other_processes import is_gone
from sample_files import sample

MANIFEST = """
[defaults]
seeds = [0, 1]
strict = true

[[case]]
file = "*_edgetpu.tflite"
reference = "{name}.tflite"

[[case]]
name = "wrong reference"
file = "dense_edgetpu.tflite"
reference = "convolution.tflite"
seeds = [5]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("regression")
    everything = tmp_path_factory.mktemp("samples")
    sample(everything)
    for name in ("dense", "convolution"):
        for suffix in ("_edgetpu.tflite", ".tflite", ".pte"):
            shutil.copy(everything / (name + suffix), where)
    (where / "nightly.toml").write_text(MANIFEST)
    return where


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "manifest.toml"
    path.write_text(text)
    return path


def test_a_pattern_is_a_case_for_each_file(folder: Path) -> None:
    cases = manifest.load(folder / "nightly.toml")
    assert [(case.name, Path(case.reference or "").name, case.seeds) for case in cases] == [
        ("convolution", "convolution.tflite", (0, 1)),
        ("dense", "dense.tflite", (0, 1)),
        ("wrong reference", "convolution.tflite", (5,)),
    ]


def test_a_pattern_may_be_absolute_or_lead_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    for pattern in (folder / "*_edgetpu.tflite", f"../{folder.name}/*_edgetpu.tflite"):
        (folder.parent / "beside").mkdir(exist_ok=True)
        source = written(folder.parent / "beside", f"[[case]]\nfile = '{pattern}'")
        assert [case.name for case in manifest.load(source)] == ["convolution", "dense"]


def test_one_name_for_all_files_of_a_pattern_is_refused(folder: Path) -> None:
    text = '[[case]]\nfile = "*_edgetpu.tflite"\nname = "x{}"'
    with pytest.raises(InputError, match=r"\$.name: 2 files match.*{name} in it stands for"):
        manifest.load(written(folder, text.format("")))
    cases = manifest.load(written(folder, text.format(" {name}")))
    assert [case.name for case in cases] == ["x convolution", "x dense"]


def test_a_reference_may_have_braces_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "{a}.tflite").touch()
    (case,) = manifest.load(written(tmp_path, "[[case]]\nfile = 'a'\nreference = '{a}.tflite'"))
    assert Path(case.reference or "").name == "{a}.tflite"


def test_a_file_may_have_brackets_in_its_name(folder: Path, tmp_path: Path) -> None:
    name = "dense[1]_edgetpu.tflite"
    shutil.copy(folder / "dense_edgetpu.tflite", tmp_path / name)
    (case,) = manifest.load(written(tmp_path, f"[[case]]\nfile = '{name}'"))
    assert Path(case.file).name == name


@pytest.mark.parametrize("by_name", [False, True])
def test_a_key_follows_the_native_functions(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_name: bool
) -> None:
    path = tmp_path / "natives_of_a_key.py"
    monkeypatch.syspath_prepend(tmp_path)
    natives = path.stem if by_name else str(path)
    case = Case(file=str(folder / "dense_edgetpu.tflite"), natives=natives)
    keys = set()
    for text in ("", "NATIVES = {}"):
        path.write_text(text)
        keys |= {task.key for task in tasks_of([case])}
    assert len(keys) == 2
    path.unlink()
    assert tasks_of([case])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[case]]\nfile = 3", "case 1: Expected `str`, got `int` - at `$.file`"),
        ('[[case]]\nfile = "a"\nzzz = 1', "case 1: unknown key `zzz`: there are file, name"),
        ('[[case]]\nfile = "a"\nrefrence = "b"', "`refrence`: is `reference` meant?"),
        ('[[cases]]\nfile = "a"', "unknown key `cases`: is `case` meant?"),
        ('[default]\nruns = 1\n[[case]]\nfile = "a"', "is `defaults` meant?"),
        ('[defaults]\nrun = 1\n[[case]]\nfile = "a"', "defaults: unknown key `run`: is `runs`"),
        ("", "no case: a manifest has a [[case]]"),
        ('[[case]]\nfile = "a"\nseeds = []', "length >= 1 - at `$.seeds`"),
        ('[[case]]\nfile = "a"\nseeds = [-1]', ">= 0 - at `$.seeds[0]`"),
        ('[[case]]\nfile = "a"\nruns = 9999999999', "<= 1000000000 - at `$.runs`"),
        ('[[case]]\nfile = "a"\nengines = ["magic"]', ": one of model, original, rtl"),
        ('[[case]]\nfile = "a"\ninputs_kind = ["all"]', ": one of noise, gradients"),
        ('[[case]]\nfile = "a"\npolicy = "roughly"', "case 1: $.policy: "),
        ('[[case]]\nfile = "a"\n[[case]]\nfile = "a"', 'two cases are called "a"'),
        ('[[case]]\nfile = "none*"', "case 1: $.file: no file matches none*"),
        ('[[case]]\nfile = "/none/*.x"', "case 1: $.file: no file matches /none/*.x\n"),
        ('[[case]]\nfile = "**a"', "case 1: $.file: "),
        ('[[case]]\nfile = "*.toml"\nreference = "{nam}"', "{nam} stands for nothing: {name} is"),
        ('[[case]]\nfile = "*.toml"\ninputs = ["x={nam}.npy"]', "{nam}.npy: {nam} stands for"),
        ('[[case]]\nfile = "a"\nname = "{file} b"', "case 1: $.name: {file} b: {file} stands"),
        ("[defaults]", "no case: a manifest has a [[case]]"),
        ("case = [", "not TOML: "),
        ("a = " + "[" * 100_000, "not TOML: "),
    ],
)
def test_a_wrong_manifest_says_where_and_why(
    tmp_path: Path, text: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, text)
    assert run_command_line(["regress", str(path), "--journal", str(tmp_path / "out")]) == 2
    (line,) = capfd.readouterr().err.splitlines(keepends=True)
    assert said in line
    assert str(path) in line


def test_binary_data_is_no_manifest(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_bytes(b"file = \xff")
    with pytest.raises(InputError, match="byte 7: not UTF-8"):
        manifest.load(path)


def test_keys_follow_files_options_and_seeds(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1")
    case = Case(file=str(file), name="f", seeds=(0, 1))
    first = [task.key for task in tasks_of([case])]
    assert len(set(first)) == 2
    assert [task.key for task in tasks_of([case])] == first
    assert not {task.key for task in tasks_of([msgspec.structs.replace(case, runs=2)])} & {*first}
    file.write_bytes(b"2")
    assert not {task.key for task in tasks_of([case])} & {*first}


def test_another_program_does_all_tasks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another state of its sources, of the RTL, or of a library that computes."""
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "tile.sv").write_text("module tile; endmodule\n")
    case = Case(name="a", file=str(tmp_path / "a"))

    def key() -> str:
        return tasks_of([case])[0].key

    monkeypatch.setattr(task, "program", program.program.__wrapped__)
    monkeypatch.setattr(program, "source_folder", lambda: tmp_path / "rtl")
    keys = [key()]
    assert key() == keys[0]
    (tmp_path / "rtl" / "tile.sv").write_text("module tile;  endmodule\n")
    keys.append(key())
    for name in ("darwinn_sim", "darwinn_formats", "darwinn_reference", "darwinn_rtl"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(getattr(program, name), "__file__", str(tmp_path / name / "a.py"))
        keys.append(key())
        (tmp_path / name / "a.py").write_text("")
        keys.append(key())
    monkeypatch.setattr(program, "version_of", lambda _: "2")
    keys.append(key())
    assert len({*keys}) == len(keys)


def test_all_of_it_is_reported_and_the_second_time_nothing_is_done(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["regress", str(folder / "nightly.toml"), "--journal", str(tmp_path), "--jobs", "1"]
    assert run_command_line([*command, "--json"]) == 2
    first = json.loads(capfd.readouterr().out)
    verdicts = {(row["name"], row["seed"]): row["verdict"] for row in first["rows"]}
    assert verdicts == {
        ("convolution", 0): "proved",
        ("convolution", 1): "proved",
        ("dense", 0): "proved",
        ("dense", 1): "proved",
        ("wrong reference", 5): "bad-input",
    }
    assert (first["tasks"], first["passed"], first["taken_from_journal"]) == (5, 4, 0)
    assert "is not the model before compilation" in first["rows"][-1]["message"]
    junit = tmp_path / "junit.xml"
    assert run_command_line([*command, "--json", "--junit", str(junit)]) == 2
    second = json.loads(capfd.readouterr().out)
    assert second["rows"] == first["rows"]
    assert second["taken_from_journal"] == 5
    assert junit.read_text().count("<testcase") == 5


VERDICTS = {"a": Verdict.PASS, "b": Verdict.FAULT}


@pytest.mark.usefixtures("tasks_performed_here")
def test_references_of_other_formats_are_compared_too(folder: Path, tmp_path: Path) -> None:
    source = written(
        folder, '[[case]]\nfile = "dense_edgetpu.tflite"\nreference = "dense.pte"\nruns = 2\n'
    )
    (row,) = regress(source, tmp_path, jobs=1).rows
    assert (row.verdict, row.inferences) == (Verdict.PASS, 2), row.message


def made(key: str, verdict: Verdict = Verdict.PASS) -> Outcome:
    return outcome_of(Task(key, Case(file="f", name=key), "model", 0), verdict, "", seconds=0.5)


def test_the_command_of_a_task_has_the_options_of_its_case() -> None:
    plain = outcome_of(Task("a", Case(file="my f"), "model", 0), Verdict.PASS, "")
    assert plain.command == "darwinn verify 'my f' --seed 0"
    case = msgspec.convert(
        {
            "file": "f",
            "reference": "g",
            "inputs": ["a=x.npy", "b=y.npy"],
            "with": ["h"],
            "model": 1,
            "strict": True,
            "require_reference": True,
            "inputs_kind": ["edges", "noise"],
            "policy": "lsb:1",
        },
        Case,
    )
    assert outcome_of(Task("a", case, "rtl", 2), Verdict.PASS, "").command == (
        "darwinn verify f --reference g --inputs a=x.npy --inputs b=y.npy --seed 2 "
        "--inputs-kind edges --inputs-kind noise --policy lsb:1 --model 1 --with h --engine rtl "
        "--require-reference --strict"
    )


def test_a_line_that_a_kill_cut_short_is_dropped_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "out" / JOURNAL
    with Journal(path, Outcome) as journal:
        journal.append(made("a"))
        journal.append(made("b", Verdict.FAULT))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with Journal(path, Outcome) as journal:
            kept = [key for key in "ab" if journal.outcome(key) == made(key, VERDICTS[key])]
            journal.append(made("c"))
        assert kept == ["a"][: whole[:length].count(b"\n")]
        with Journal(path, Outcome) as journal:
            assert journal.outcome("c") == made("c")


def test_a_damaged_line_costs_its_task_only(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    with Journal(path, Outcome) as journal:
        journal.append(made("a"))
    path.write_bytes(b'\xff\xfe{"name":3}\n' + path.read_bytes() + b'{"key": 1}\n')
    with Journal(path, Outcome) as journal:
        assert journal.outcome("a") == made("a")


@nightly_too
def test_no_flipped_bit_changes_an_outcome(tmp_path: Path, nightly: bool) -> None:
    """One bit of each byte in the gate, another one each time; all of them by night."""
    path = tmp_path / JOURNAL
    with Journal(path, Outcome) as journal:
        journal.append(made("a"))
        journal.append(made("b", Verdict.FAULT))
    whole = path.read_bytes()
    bits = range(8 * len(whole))
    for bit in bits if nightly else [8 * octet + octet % 8 for octet in range(len(whole))]:
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with Journal(path, Outcome) as journal:
            found = {key: journal.outcome(key) for key in "ab"}
        assert all(each in (None, made(key, VERDICTS[key])) for key, each in found.items()), bit
        assert any(found.values()) or data.count(b"\n") != 2, bit


@pytest.mark.parametrize("content", [b"cat\ndog\n", b"cat", b"\x00" * 5000, b"[1]\n"])
def test_a_file_of_somebody_else_is_not_written_to(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / JOURNAL
    path.write_bytes(content)
    with pytest.raises(InputError, match="no journal"):
        Journal(path, Outcome)
    assert path.read_bytes() == content


def test_a_journal_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\n")
    (tmp_path / JOURNAL).symlink_to("labels.txt")
    with pytest.raises(InputError, match="no link"):
        Journal(tmp_path / JOURNAL, Outcome)
    assert (tmp_path / "labels.txt").read_text() == "cat\n"


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / JOURNAL, Outcome), pytest.raises(InputError, match="another process"):
        Journal(tmp_path / JOURNAL, Outcome)


def test_what_is_finished_survives_a_kill_and_is_not_done_again(
    folder: Path, tmp_path: Path
) -> None:
    """The process is killed after its first lines; the next one does the rest, and only that."""
    text = f'[[case]]\nfile = "dense_edgetpu.tflite"\nseeds = {list(range(25))}\n'
    source = folder / "many.toml"
    source.write_text(text)
    path = tmp_path / JOURNAL
    start = "from darwinn_testbench.cli import main; main()"
    command = [sys.executable, "-c", start, "regress", str(source)]
    process = subprocess.Popen(
        [*command, "--journal", str(tmp_path), "--jobs", "1"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        bound = time.monotonic() + 120
        while not (path.exists() and path.read_bytes().count(b"\n") >= 2):
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < bound
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = [line for line in path.read_bytes().splitlines(keepends=True) if b"\n" in line]
    report = regress(source, tmp_path, jobs=1)
    assert report.figures["taken_from_journal"] == len(finished)
    assert [row.seed for row in report.rows] == list(range(25))
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[: len(finished)] == finished
    assert len(lines) == 25


class Dying(Task):
    def perform(self) -> Outcome:
        match self.seed:
            case 0:
                os._exit(9)
            case 1:
                time.sleep(60)
        return outcome_of(self, Verdict.PASS, "")


def test_a_process_that_dies_or_hangs_is_a_fault_and_the_rest_goes_on() -> None:
    case = Case(file="f", name="f", timeout=3.0)
    tasks = [Dying(str(seed), case, "model", seed) for seed in range(3)]
    found = {outcome.seed: outcome for outcome in pool.perform_here(tasks, 2)}
    assert [found[seed].verdict for seed in range(3)] == [
        Verdict.FAULT,
        Verdict.FAULT,
        Verdict.PASS,
    ]
    assert found[0].message == "the process died: exit code 9"
    assert found[1].message == "not finished within 3 s"


def test_another_seed_or_engine_of_a_case_leaves_the_other_tasks_what_they_are() -> None:
    case = Case(file="f", name="f", seeds=(0, 1))
    before = {(task.engine, task.seed): task.key for task in tasks_of([case])}
    more = msgspec.structs.replace(case, seeds=(0, 1, 2), engines=("model", "rtl"))
    after = {(task.engine, task.seed): task.key for task in tasks_of([more])}
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == len(after) == 6
    other = msgspec.structs.replace(case, strict=True)
    assert not {task.key for task in tasks_of([other])} & set(before.values())


def test_a_task_travels_without_the_seeds_of_the_others() -> None:
    case = Case(file="f", name="f", seeds=tuple(range(1000)))
    assert len(pickle.dumps(tasks_of([case])[-1])) < 2000


class Counted(Sequence[Task]):
    """Tasks that are made when they are asked for, with how many that were so far."""

    def __init__(self, count: int) -> None:
        self.length, self.made = count, 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: Any) -> Any:
        if number >= self.length:
            raise IndexError(number)
        self.made = max(self.made, number + 1)
        return Passing(str(number), Case(file="f", name="f"), "model", number)


class Passing(Task):
    def perform(self) -> Outcome:
        return outcome_of(self, Verdict.PASS, "")


def few_at_a_time(perform: Callable[[Counted], Iterator[Outcome]], count: int, most: int) -> None:
    tasks, seen = Counted(count), []
    for outcome in perform(tasks):
        seen.append(outcome.seed)
        assert tasks.made <= len(seen) + most
    assert sorted(seen) == list(range(count))


def test_tasks_are_handed_out_a_few_at_a_time() -> None:
    few_at_a_time(lambda tasks: pool.perform_here(tasks, 2), 60, 2 * 8)


def test_a_cluster_gets_tasks_a_few_at_a_time(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_AHEAD", 5)
    few_at_a_time(lambda tasks: cluster.perform_on_cluster(tasks, scheduler), 40, 5)
    # Three at a time, of which the last ones are two: as many more when three are there.
    monkeypatch.setattr(cluster, "_TOGETHER", 3)
    monkeypatch.setattr(cluster, "_SHARES", 10)
    few_at_a_time(lambda tasks: cluster.perform_on_cluster(tasks, scheduler), 40, 5 + 3)


class Raising(Passing):
    """No task does that: what kills a worker looks the same from here."""

    def perform(self) -> Outcome:
        if self.seed % 7 == 3:
            raise MemoryError("no more")
        return super().perform()


def test_a_worker_that_fails_fails_only_the_task_that_it_was(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_SHARES", 1)
    case = Case(file="f", name="f")
    tasks = [Raising(str(seed), case, "model", seed) for seed in range(40)]
    found = {each.seed: each for each in cluster.perform_on_cluster(tasks, scheduler)}
    assert sorted(found) == list(range(40))
    failed = [seed for seed, each in found.items() if each.verdict is not Verdict.PASS]
    assert sorted(failed) == list(range(3, 40, 7))
    assert found[3].message == "the worker failed: MemoryError: no more"


class Endless(Passing):
    """One that does not end, and handles every exception; others wait for ever less than it may."""

    def prepare(self) -> None:
        time.sleep(0.3)

    def perform(self) -> Outcome:
        while self.seed == 3:
            with suppress(Exception):
                time.sleep(0.01)
        return super().perform()


def test_a_task_that_does_not_end_fails_alone(scheduler: str) -> None:
    """What comes before a task takes none of its time."""
    case = Case(file="f", name="f", timeout=0.2)
    tasks = [Endless(str(seed), case, "model", seed) for seed in range(6)]
    found = {each.seed: each for each in cluster.perform_on_cluster(tasks, scheduler)}
    assert sorted(found) == list(range(6))
    assert [seed for seed, each in found.items() if each.verdict is not Verdict.PASS] == [3]
    assert found[3].message == "not finished within 0.2 s"


@pytest.mark.parametrize("timeout", [1e-9, 1e10, float("inf")])
def test_a_limit_of_time_may_be_any(scheduler: str, timeout: float) -> None:
    tasks = [Passing("0", Case(file="f", name="f", timeout=timeout), "model", 0)]
    tasks.append(Passing("1", Case(file="f", name="f", timeout=60), "model", 1))
    found = {each.seed: each for each in cluster.perform_on_cluster(tasks, scheduler)}
    assert found[1].verdict is Verdict.PASS
    assert timeout < 1 or found[0].verdict is Verdict.PASS


def test_workers_of_another_program_are_refused(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would give outcomes of theirs, which the journal would keep as this one's."""
    tasks = [Passing("0", Case(file="f", name="f"), "model", 0)]
    monkeypatch.setattr(cluster, "_perform_each", partial(as_of_another, cluster._perform_each))
    with pytest.raises(InputError, match="a worker runs another state of this program"):
        list(cluster.perform_on_cluster(tasks, scheduler))


def as_of_another(perform: Callable[..., Any], tasks: Any, allowed: Any, asked: str) -> Any:
    return perform(tasks, allowed, f"not {asked}")


class Unlucky(Passing):
    """Fails once, as what waits for a worker that another task takes down does."""

    def perform(self) -> Outcome:
        mark = Path(self.case.file)
        if not mark.exists():
            mark.touch()
            raise MemoryError
        return super().perform()


def test_who_was_beside_a_task_that_takes_its_worker_down_is_tried_again(
    tmp_path: Path, scheduler: str
) -> None:
    tasks = [
        Unlucky(str(seed), Case(file=str(tmp_path / str(seed)), name="f"), "model", seed)
        for seed in range(3)
    ]
    found = list(cluster.perform_on_cluster(tasks, scheduler))
    assert sorted(each.seed for each in found) == [0, 1, 2]
    assert all(each.verdict is Verdict.PASS for each in found)


def test_two_who_ask_a_cluster_at_once_are_given_what_each_has_asked_for(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the first of the tasks that go together is the same one."""
    monkeypatch.setattr(cluster, "_SHARES", 1)
    case = Case(file="f", name="f")
    tasks = [Passing(str(seed), case, "model", seed) for seed in range(3)]
    one = cluster.perform_on_cluster([tasks[0], tasks[1]], scheduler)
    assert next(one).seed == 0
    other = cluster.perform_on_cluster([tasks[0], tasks[2]], scheduler)
    assert [each.seed for each in other] == [0, 2]
    assert [each.seed for each in one] == [1]


def test_what_the_machine_was_to_blame_for_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Otherwise one slow machine would stay in the cache of a CI server for ever."""
    source = written(tmp_path, '[[case]]\nfile = "none"\ntimeout = 1')
    monkeypatch.setattr(task, "runs_on_chip", lambda _: False)
    late = [True]

    def perform(tasks: Sequence[Task], jobs: int | None = None) -> Iterator[Outcome]:
        for each in tasks:
            if late:
                yield each.failed("not finished within 1 s")
            else:
                yield outcome_of(each, Verdict.PASS, "", seconds=0.5)

    monkeypatch.setattr("darwinn_testbench.regression.run.perform_here", perform)
    command = ["regress", str(source), "--journal", str(tmp_path / "out")]
    assert run_command_line(command) == 1
    shown = capfd.readouterr().out
    assert "next: the same command does again" in shown
    assert "0.000" not in shown
    late.clear()
    assert run_command_line(command) == 0
    assert regress(source, tmp_path / "out").figures["taken_from_journal"] == 1


@pytest.mark.parametrize(
    ("error", "conclusive"),
    [
        (MemoryError(), False),
        (Unavailable("no Verilator"), False),
        (FormatError("size", "5 bytes are more than the limit of 4 (--max-memory)"), False),
        (FormatError("size", "5 bytes, and the file has 4"), True),
        (InputError("no such model"), True),
    ],
)
def test_an_outcome_says_whether_the_machine_was_to_blame(
    error: Exception, conclusive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(_: Task) -> None:
        raise error

    monkeypatch.setattr(task, "_verify", raising)
    assert Task("0", Case(file="f"), "model", 0).perform().conclusive is conclusive


@pytest.mark.parametrize(
    ("said", "conclusive"), [("60 s (--max-seconds)", False), ("deadlock", True)]
)
def test_a_limit_of_the_command_line_may_be_raised(
    said: str, conclusive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        task,
        "verified",
        lambda *_: Report(
            command="verify",
            file="f",
            decided=Verdict.FAULT,
            message=f"the program has not ended: {said}",
            figures={"inferences": 0},
        ),
    )
    assert Task("0", Case(file="f"), "model", 0).perform().conclusive is conclusive


def test_an_interrupted_regression_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path, '[[case]]\nfile = "none"\nseeds = [0, 1, 2]')

    def perform(tasks: Sequence[Task], jobs: int | None = None) -> Iterator[Outcome]:
        yield outcome_of(tasks[0], Verdict.PASS, "")
        raise KeyboardInterrupt

    monkeypatch.setattr("darwinn_testbench.regression.run.perform_here", perform)
    command = ["regress", str(source), "--journal", str(tmp_path / "out"), "--jobs", "1"]
    said = "interrupted: {} of 3 done; the same command goes on with the rest"
    for done in (1, 2):
        assert run_command_line(command) == 130
        assert said.format(done) in capfd.readouterr().err
    assert run_command_line([*command, "--fresh"]) == 130
    said = "interrupted: 1 of 3 done; the same command without --fresh goes on with the rest"
    assert said in capfd.readouterr().err


def test_a_task_of_which_no_outcome_comes_back_has_failed(tmp_path: Path) -> None:
    case = Case(file="f", name="f")
    tasks = [Passing(str(seed), case, "model", seed) for seed in range(3)]
    done = resume(tasks, Outcome, tmp_path, lambda left: (each.perform() for each in left[:2]))
    verdicts = [each.verdict for each in done.outcomes]
    assert verdicts == [Verdict.PASS, Verdict.PASS, Verdict.FAULT]
    assert done.outcomes[2].message == "no outcome of it came back"


PARENT = """
import os, sys, time
from contextlib import nullcontext
from pathlib import Path
from darwinn_testbench.regression.pool import perform_here

class Endless:
    key, timeout, lock = "endless", 600.0, nullcontext()
    def prepare(self):
        pass
    def perform(self):
        Path(sys.argv[1]).write_text(str(os.getpid()))
        time.sleep(600)
    def failed(self, message):
        return message

if __name__ == "__main__":
    list(perform_here([Endless()], 1))
"""


def test_no_process_outlives_a_killed_parent(tmp_path: Path) -> None:
    script, mark = tmp_path / "parent.py", tmp_path / "pid"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, str(script), str(mark)]) as parent:
        try:
            worker = int(awaited(lambda: mark.exists() and mark.read_text()))
        finally:
            parent.kill()
    awaited(lambda: is_gone(worker))


def awaited(found: Callable[[], Any]) -> Any:
    """What ``found`` gives as soon as that is something."""
    for _ in range(600):
        if result := found():
            return result
        time.sleep(0.1)
    raise AssertionError("not within a minute")


@pytest.fixture
def scheduler() -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        worker_dashboard_address=None,
    ) as dask:
        yield dask.scheduler_address


def test_a_cluster_without_workers_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would come, and nothing would be said."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as dask,
        pytest.raises(InputError, match=r"no worker has joined it.*dask worker inproc:"),
    ):
        regress(folder / "nightly.toml", tmp_path, scheduler=dask.scheduler_address)


def test_a_cluster_does_the_same(folder: Path, tmp_path: Path, scheduler: str) -> None:
    report = regress(folder / "nightly.toml", tmp_path, scheduler=scheduler)
    assert [row.verdict for row in report.rows] == [Verdict.PROVED] * 4 + [Verdict.BAD_INPUT]


def test_without_a_scheduler_at_the_address_it_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match=r"--scheduler tcp://127\.0\.0\.1:9"):
        regress(folder / "nightly.toml", tmp_path, scheduler="tcp://127.0.0.1:9")


CLUSTER = """
import time, distributed
cluster = distributed.LocalCluster(
    n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
    dashboard_address=None, worker_dashboard_address=None,
)
print(cluster.scheduler_address, flush=True)
time.sleep(300)
"""


def test_a_scheduler_that_goes_away_is_an_error_that_says_so(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    case = f'[[case]]\nfile = "dense_edgetpu.tflite"\nseeds = {list(range(200))}\n'
    source = written(folder, case)
    with subprocess.Popen([sys.executable, "-c", CLUSTER], stdout=subprocess.PIPE) as dask:
        assert dask.stdout is not None
        address = dask.stdout.readline().decode().strip()

        def kill(description: str, done: int, total: int | None) -> None:
            if done:
                dask.kill()

        with pytest.raises(InputError, match="the connection was lost"):
            regress(source, tmp_path / "out", scheduler=address, progress=kill)
        dask.kill()
    assert (tmp_path / "out" / JOURNAL).read_bytes().count(b"\n") >= 1
