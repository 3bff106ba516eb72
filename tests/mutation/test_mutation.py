"""The tool that changes the project's own Python: what it changes, asks, keeps and counts."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import pytest
from darwinn_sim.kernel import compiled
from darwinn_sim.kernel.private_files import read_whole, write_whole

from tests.mutation import forks
from tests.mutation.__main__ import EQUIVALENTS, Asked, Project, attempt
from tests.mutation.mutants import Mutant, drawn, mutants_of
from tests.mutation.nearest import Chooser, Executed, functions_of, imports, nearness, record
from tests.mutation.results import (
    CAUGHT,
    EQUIVALENT,
    SURVIVED,
    TOTAL,
    BadEquivalent,
    Judged,
    Kept,
    Outcome,
    equivalents,
    scores,
    shown,
    wilson,
)
from tests.mutation.tree import ROOT, ToolError, Tree, reaching

SOURCE = '''"""Nothing here: 1 < 2."""

TABLE = {1: 2}


class Thing:
    """A class."""

    size: int = 3

    def fits(self, count: int, *, more: bool = False) -> bool:
        """True for 7."""
        assert count > 0
        if count < self.size and not more:
            self.size -= count
            self.pairs = list(zip([], [], strict=True), key=True)
            return True
        raise ValueError(f"{count + 1} is too much")


@compiled
def kernel(values, count: int) -> int:
    total = 0
    for k in range(count):
        if (values[k]  # a > b
                == 0):
            continue
        total += values[k] << 2
    return total


@abstractmethod
def other() -> int:
    return 1
'''


def found() -> list[Mutant]:
    return mutants_of("sim/x.py", SOURCE.encode())


def lines() -> set[tuple[str, str]]:
    return {(each.before, each.after) for each in found()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if count < self.size and not more:", "if count <= self.size and not more:"),
        ("if count < self.size and not more:", "if count >= self.size and not more:"),
        ("if count < self.size and not more:", "if count < self.size or not more:"),
        ("if count < self.size and not more:", "if True and not more:"),
        ("if count < self.size and not more:", "if count < self.size and more:"),
        (
            "if count < self.size and not more:",
            "if (not (count < self.size and not more)):",
        ),
        ("self.size -= count", "self.size += count"),
        ("self.size -= count", "pass"),
        ("return True", "return False"),
        ('raise ValueError(f"{count + 1} is too much")', "pass"),
        ("total = 0", "total = 1"),
        ("== 0): continue", "== 0): break"),
        ("total += values[k] << 2", "total += values[k] >> 2"),
        ("total += values[k] << 2", "total += values[k] << 3"),
        ("total += values[k] << 2", "total += values[k] << 1"),
        ("return total", "return (total) + 1"),
        ("== 0):", "!= 0):"),
        (
            "def fits(self, count: int, *, more: bool = False) -> bool:",
            "def fits(self, count: int, *, more: bool = True) -> bool:",
        ),
    ],
)
def test_what_is_changed(before: str, after: str) -> None:
    assert (before, after) in lines()


def test_tables_texts_and_what_says_nothing_stay() -> None:
    touched = {each.before for each in found()}
    assert not [
        line for line in touched if "assert" in line or "TABLE" in line or "True for" in line
    ]
    assert {each.function for each in found()} == {"Thing.fits", "kernel"}
    pairs = "self.pairs = list(zip([], [], strict=True), key="
    assert {after for before, after in lines() if before == f"{pairs}True)"} == {
        "pass",
        f"{pairs}False)",
    }
    assert not [each for each in found() if "+ 1" in each.before and each.after != "pass"]
    assert {each.kernel for each in found() if each.function == "kernel"} == {True}
    assert {each.kernel for each in found() if each.function == "Thing.fits"} == {False}


def test_a_size_that_follows_from_the_others_is_any_negative_number() -> None:
    source = b"def f(x, n):\n    return x.reshape(n - 1, -1)[-1]\n"
    after = {each.replacement for each in mutants_of("sim/x.py", source)}
    assert after == {"None", "+", "2", "0", ""}
    sizes = [each for each in mutants_of("sim/x.py", source) if each.start >= source.index(b", -1")]
    ends = source.index(b")[")
    assert [each.replacement for each in sizes if each.start < ends] == [""]


def test_a_mutant_changes_one_place_and_no_line_number() -> None:
    source = SOURCE.encode()
    for mutant in found():
        changed = mutant.apply(source)
        assert changed != source
        assert changed.count(b"\n") == source.count(b"\n")
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
        differing = [
            number
            for number, (old, new) in enumerate(
                zip(source.splitlines(), changed.splitlines(), strict=True), 1
            )
            if old != new
        ]
        assert differing[0] >= mutant.line - 1 and len(differing) <= 2


def test_lines_that_read_alike_are_told_apart() -> None:
    source = b"def f(a: int) -> int:\n    a += 1\n    a += 1\n    return a\n"
    mutants = mutants_of("sim/x.py", source)
    names = [each.name for each in mutants]
    assert len(names) == len(set(names))


def test_a_sample_follows_from_its_seed_and_grows() -> None:
    mutants = found()
    order = drawn(mutants, 1)
    assert order == drawn(list(reversed(mutants)), 1)
    assert order != drawn(mutants, 2)
    # One of each place; a change elsewhere leaves the order of the others.
    assert len({(each.start, each.site) for each in order}) == len(order)
    moved = mutants_of("sim/x.py", b"# a new line\n" + SOURCE.encode())
    assert [each.name for each in drawn(moved, 1)] == [each.name for each in order]


def test_kernels_that_may_call_another(tmp_path: Path) -> None:
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "a.py").write_text(
        "@inner\ndef low():\n    pass\n\n@inner\ndef middle():\n    x.low()\n\n"
        "@compiled\ndef high():\n    middle()\n\n@compiled\ndef apart():\n    pass\n\n"
        "def python():\n    low()\n"
    )
    assert reaching(tmp_path, "low") == {"low", "middle", "high"}
    assert reaching(tmp_path, "apart") == {"apart"}


class Place:
    """Stands in for a copy of the tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


def test_the_nearest_and_quickest_tests_first(tmp_path: Path) -> None:
    source = (
        "def f(a):\n    if a:\n        return a + 1\n    return 0\n\n\ndef g():\n    return 1\n"
    )
    (tmp_path / "sim" / "pack" / "host").mkdir(parents=True)
    (tmp_path / "sim" / "pack" / "host" / "unit.py").write_text(source)
    for folder, name in (("sim/host", "test_unit.py"), ("other", "test_all.py")):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / name).touch()
    executed = Executed()
    tests = {
        "tests/sim/host/test_unit.py::far": 5.0,
        "tests/sim/host/test_unit.py::near": 1.0,
        "tests/other/test_all.py::slow": 100.0,
        "tests/other/test_all.py::quick": 0.5,
        "tests/other/test_all.py::never": 0.1,
    }
    executed.seconds.update(tests)
    lines = {name: frozenset((1, 2)) for name in tests if "never" not in name}
    executed.tests["sim/pack/host/unit.py", "f"].update(lines)
    executed.tests["sim/pack/host/unit.py", "f"]["tests/other/test_all.py::never"] = frozenset(
        (1, 3)
    )
    mutants = mutants_of("sim/pack/host/unit.py", source.encode())
    chooser = Chooser(Place(tmp_path), executed)  # type: ignore[arg-type]
    plus = next(each for each in mutants if each.after == "return a - 1")
    assert chooser.tests(plus, 40.0) == [
        "tests/sim/host/test_unit.py::near",
        "tests/sim/host/test_unit.py::far",
        "tests/other/test_all.py::quick",
    ]
    nobody = next(each for each in mutants if each.function == "g")
    # Those of the file that is named after it, which may execute it in another process.
    own = ["tests/sim/host/test_unit.py::near", "tests/sim/host/test_unit.py::far"]
    assert chooser.tests(nobody, 40.0) == own
    # What is executed at import is no test's: asked are those that import the module as well.
    (tmp_path / "tests" / "other" / "test_all.py").write_text("from pack.host import unit\n")
    imports.cache_clear()
    assert chooser.tests(nobody, 40.0) == [
        *own,
        "tests/other/test_all.py::never",
        "tests/other/test_all.py::quick",
    ]


def test_what_there_is_no_time_to_record_is_left_for_the_next_time(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A short night has less time than recording what tests execute takes."""
    files = [f"tests/test_{number}.py" for number in range(13)]
    for file in files:
        (tree.folder / file).write_text("def test_it(): pass\n")
    asked_when_over = iter([False, True])
    executed = record(tree, tmp_path, files, lambda: next(asked_when_over))
    assert [*executed.seconds] == [f"{file}::test_it" for file in files[:12]]
    assert "no time to record 1 of 13 files of tests" in capsys.readouterr().err
    executed = record(tree, tmp_path, files, lambda: False)
    assert [*executed.seconds] == [f"{file}::test_it" for file in files]
    for file in files:
        (tree.folder / file).unlink()


def test_functions_and_their_lines() -> None:
    assert functions_of(
        b"class A:\n    @x\n    def f(self):\n        pass\n\ndef g():\n    pass\n"
    ) == [
        (1, "A"),
        (3, "A.f"),
        (6, "g"),
    ]
    assert nearness("sim/p/host/mmu.py", "tests/sim/host/test_mmu.py::t") > nearness(
        "sim/p/host/mmu.py", "tests/sim/host/test_driver.py::t"
    )


def test_outcomes_are_kept_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "mutations.jsonl"
    first, second = (Outcome(key, "t", "n", CAUGHT, "test", 1.0) for key in "ab")
    kept = Kept(file)
    kept.add(first)
    kept.add(second)
    file.write_text(file.read_text()[:-20])
    again = Kept(file)
    assert again.get("a") == first and again.get("b") is None


ENTRY = """
[[equivalent]]
file = "sim/x.py"
function = "kernel"
original = "{original}"
mutated = "total = 1"
reason = "{reason}"
"""


def test_an_argued_mutant_is_one(tmp_path: Path) -> None:
    file = tmp_path / "equivalents.toml"
    file.write_text(ENTRY.format(original="total = 0", reason="because"))
    (entry,) = equivalents(file, found())
    assert sum(entry.matches(each) for each in found()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY.format(original="total = 9", reason="because"), "no mutant of kernel in sim/x.py"),
        (ENTRY.format(original="total = 0", reason=""), "gives no reason"),
        ('[[equivalent]]\nfile = "a"\n', "missing"),
    ],
)
def test_an_argument_about_nothing_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "equivalents.toml"
    file.write_text(text)
    with pytest.raises(BadEquivalent, match=message):
        equivalents(file, found())


def test_the_committed_arguments_are_about_mutants() -> None:
    equivalents(EQUIVALENTS, Project.read().mutants)


def test_scores_by_package_and_in_all() -> None:
    one = found()[0]
    results = [CAUGHT] * 18 + [SURVIVED] + [EQUIVALENT]
    (package, total) = scores([Judged(one, result, "", 0.0) for result in results])
    assert (package.package, total.package) == ("x", TOTAL)
    assert (total.mutants, total.caught, total.real) == (20, 18, 19)
    assert "94.7 %" in total.row()


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # Of Newcombe (1998), table I, method 3.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_of_wilson(part: int, whole: int, low: float, high: float) -> None:
    assert wilson(part, whole) == pytest.approx((low, high), abs=5e-5)


def test_a_survivor_is_shown_as_a_difference() -> None:
    mutant = next(each for each in found() if each.after == "total = 1")
    text = shown(mutant, SOURCE.encode())
    assert text[0] == f"sim/x.py:{mutant.line}: constant in kernel"
    assert "    -    total = 0" in text and "    +    total = 1" in text


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of the tree of somebody who has compiled nothing."""
    folder = tmp_path_factory.mktemp("mutation")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiled, "CACHES", folder / "caches")
        return Tree(folder / "copies" / "0", folder / "out")


def one(file: str, function: str, after: str) -> tuple[Mutant, bytes]:
    """The mutant of the project that makes such a line, and its source."""
    source = (ROOT / file).read_bytes()
    (mutant,) = (
        each
        for each in mutants_of(file, source)
        if (each.function, each.after) == (function, after)
    )
    return mutant, source


def asked(*tests: str) -> Asked:
    """No others after the nearest."""
    return Asked(tests, tests)


def test_a_mutant_is_caught_by_a_test_that_fails_and_by_no_other(tree: Tree) -> None:
    file = "formats/darwinn_formats/darwinn/bundle.py"
    changed = "return (_field(bundle, _BUNDLE_COUNT) - 2) * BUNDLE_BYTES"
    mutant, source = one(file, "chunk_bytes", changed)
    stream = "tests/formats/darwinn/test_loader.py::test_a_stream_is_cut_into_chunks"
    other = "tests/formats/darwinn/test_loader.py::test_executables_of_a_package_are_paired"
    assert attempt(tree, mutant, source, asked(other, stream)) == (CAUGHT, stream)
    assert attempt(tree, mutant, source, asked(other)) == (SURVIVED, "1 tests pass")
    assert attempt(tree, mutant, source, Asked([other], [other, stream])) == (CAUGHT, stream)
    assert attempt(tree, mutant, source, asked())[0] == SURVIVED
    assert (tree.folder / file).read_bytes() == source
    with pytest.raises(ToolError, match="cannot be found"):
        attempt(tree, mutant, source, asked("tests/formats/darwinn/test_loader.py::nothing"))


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    """A module of functions of several kinds, and its file."""
    path = tmp_path / "darwinn_loaded.py"
    path.write_text(
        "from functools import cache, cached_property\n\n"
        "@cache\ndef kept():\n    return 1\n\n"
        "def user():\n    return 10 + kept()\n\n"
        "class Thing:\n    @cached_property\n    def size(self):\n        return 3\n\n"
        "def outer():\n    a = 5\n    def within():\n        return a\n    return within\n\n"
        "within = outer()\nTABLE = 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return path, importlib.import_module("darwinn_loaded")


def test_functions_that_are_loaded_have_the_code_of_the_file(loaded: tuple[Path, Any]) -> None:
    path, module = loaded
    source = path.read_text()
    assert (module.user(), module.Thing().size, module.within()) == (11, 3, 5)
    assert not forks.replace(path)
    for old, new in (("return 1\n", "return 2\n"), ("return 3", "return 4"), ("a = 5", "a = 6")):
        source = source.replace(old, new)
        path.write_text(source)
        assert forks.replace(path)
    forks.forget()
    assert (module.user(), module.Thing().size, module.within()) == (12, 4, 5)
    assert module.outer()() == 6
    # What is executed when it is loaded, and what has other variables around it, stays.
    path.write_text(source.replace("TABLE = 7", "TABLE = 8"))
    assert not forks.replace(path)
    path.write_text(source.replace("        return a\n", "        return 9\n"))
    with pytest.raises(ValueError, match="free vars"):
        forks.replace(path)


def test_a_mutant_in_a_fork(tree: Tree) -> None:
    """It is told what the tests say; a mutant of what is loaded is not tried so. One leaves
    nothing to the next.
    """
    file = "formats/darwinn_formats/darwinn/bundle.py"
    changed = "return (_field(bundle, _BUNDLE_COUNT) - 2) * BUNDLE_BYTES"
    mutant, source = one(file, "chunk_bytes", changed)
    stream = "tests/formats/darwinn/test_loader.py::test_a_stream_is_cut_into_chunks"
    assert tree.forks(mutant)
    with tree.mutated(mutant, source) as variables:
        for _ in range(2):
            ran = tree.forked(mutant, ["-x", stream], variables, seconds=60)
            assert ran is not None and ran.code == 1 and f"FAILED {stream}" in ran.output
    assert tree.forked(mutant, [stream], variables, seconds=60) is None
    test = tree.folder / "tests" / "test_endless.py"
    test.write_text("def test_endless():\n    while True: pass\n")
    with tree.mutated(mutant, source) as variables:
        ran = tree.forked(mutant, ["tests/test_endless.py"], variables, seconds=1)
        assert ran is not None and ran.code is None
    test.unlink()
    for file, function in (
        ("isa/table.py", "_ring_consumer"),
        ("kernel/private_files.py", "read_whole"),
        ("units/tile_fence.py", "restart_sides"),
    ):
        file = f"sim/darwinn_sim/{file}"
        mutants = mutants_of(file, (ROOT / file).read_bytes())
        assert not any(tree.forks(each) for each in mutants if each.function == function)


def test_tests_have_to_pass_as_the_project_is(tree: Tree) -> None:
    test = tree.folder / "tests" / "test_control.py"
    test.write_text("def test_good(): pass\n\ndef test_bad(): assert not 1\n")
    tree.control(["tests/test_control.py::test_good"])
    with pytest.raises(ToolError, match=r"nothing is changed:[\s\S]*test_bad"):
        tree.control(["tests/test_control.py::test_good", "tests/test_control.py::test_bad"])
    test.unlink()


def test_what_the_user_has_compiled_is_taken_over(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of these sources, and what is not there already."""
    monkeypatch.setattr(tree, "warm", {True: tmp_path / "kernels"})
    (tmp_path / "kernels" / "key").mkdir(parents=True)
    (tmp_path / "kernels" / "key" / "there").write_text("own")
    known = tmp_path / "caches" / "key"
    known.mkdir(parents=True)
    for name in ("there", "new"):
        (known / name).write_text("taken over")
    for folder in (known, known.with_name("other")):
        tree._take_over(folder)
    found = {
        path.name: path.read_text() for path in (tmp_path / "kernels").rglob("*") if path.is_file()
    }
    assert found == {"there": "own", "new": "taken over"}


def test_what_has_no_end_is_ended(tree: Tree) -> None:
    assert tree.run(["-c", "while True: pass"], {}, seconds=1).code is None


def test_a_kernels_mutant_has_its_own_kernels(tree: Tree) -> None:
    """Those that cannot reach it are there under its key, the others are not."""
    mutant, source = one(
        "sim/darwinn_sim/units/tile_fence.py", "restart_sides", "tile.wide_write_second = 1"
    )
    before = tree.keys()
    warm = tree.warm[True]
    stored = {
        warm / before["units"] / "tile_fence.restart_sides.aa": b"callee",
        warm / before["units"] / "tile_fence.reached.bb": b"caller",
        warm / before["units"] / "scalar_alu.evaluate.cc": b"apart",
        warm / "0123456789abcdef" / "other.kernel.dd": b"of another state of the sources",
    }
    for path, data in stored.items():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, data)
    # As a run leaves it whose machine stops at that moment.
    (warm / before["units"] / "scalar_alu.jump.ee").write_bytes(b"damaged")
    with tree.mutated(mutant, source) as variables:
        after = tree.keys()
        assert after["units"] != before["units"]
        kernels = Path(variables["NUMBA_CACHE_DIR"])
        entered = {path.name: read_whole(path) for path in (kernels / after["units"]).iterdir()}
        assert entered == {"scalar_alu.evaluate.cc": b"apart"}
        for path, data in stored.items():
            assert read_whole(kernels / path.parent.name / path.name) == data
        # What it compiles stays its own.
        write_whole(kernels / before["units"] / "scalar_alu.evaluate.cc", b"poison")
    assert not kernels.exists()
    assert tree.keys() == before
    assert {path: read_whole(path) for path in stored} == stored


@pytest.mark.parametrize(
    ("file", "function", "kept"),
    [("isa/table.py", "_ring_consumer", False), ("units/tensor_unit.py", "_working", True)],
)
def test_what_is_run_at_import_may_be_in_any_kernel(
    tree: Tree, file: str, function: str, kept: bool
) -> None:
    """Of files that kernels are compiled from: other functions leave the kernels as they are."""
    file = f"sim/darwinn_sim/{file}"
    source = (ROOT / file).read_bytes()
    mutant = next(each for each in mutants_of(file, source) if each.function == function)
    before = tree.keys()
    kernel = tree.warm[True] / before["units"] / "scalar_alu.evaluate.cc"
    kernel.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(kernel, b"kernel")
    with tree.mutated(mutant, source) as variables:
        after = tree.keys()["units"]
        assert after != before["units"]
        assert (Path(variables["NUMBA_CACHE_DIR"]) / after / kernel.name).exists() is kept
