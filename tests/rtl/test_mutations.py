"""The suite notices faults: each deliberate fault of the RTL makes its test fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_rtl.source_files import source_folder
from faults import MUTATIONS
from harness_runs import require_toolchain
from mutations import NUMBERS, changes_of, how_caught, row, run_with
from second_simulator import compiled, require_icarus, simulated
from weaving import (
    ARGUMENT,
    CONTROL,
    STATEMENT,
    Edit,
    FaultMisplaced,
    sources_in,
    weave,
    write_copy,
)


def test_every_fault_has_its_test() -> None:
    """By its whole name: a test that has got another parameter has another one."""
    named = {mutation.test for mutation in MUTATIONS}
    files = sorted({name.partition("::")[0] for name in named})
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist"),
            *("-o", "addopts=--import-mode=importlib", *files),
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    there = set(done.stdout.splitlines())
    there |= {name.partition("[")[0] for name in there}
    assert sorted(named - there) == []


def test_every_fault_has_its_place() -> None:
    sources = sources_in(source_folder())
    assert not [name for name, text in sources.items() if "mutat" in text]
    woven = weave(sources, changes_of(sources))
    for mutation in MUTATIONS:
        for edit in mutation.edits:
            chosen = f"chosen == {NUMBERS[mutation.name]} ? ({edit.replacement})"
            assert chosen in woven[edit.file].replace("chosen_mutation", "chosen")


def test_a_fault_keeps_what_it_replaces() -> None:
    woven = woven_with(
        Edit("a.sv", "x = a && «b»", "1'b0"),
        Edit("a.sv", "&& «b»;", "!b"),
        Edit("a.sv", "x = «a» &&", "1'b1"),
    )
    assert "assign x = (3? (1'b1) : (a)) &&\n    (1? (1'b0) : 2? (!b) : (b));" in woven


def test_a_fault_may_lie_within_another() -> None:
    woven = woven_with(
        Edit("a.sv", "&& «b»", "1'b0"),
        Edit("a.sv", "x = «a && b»", "1'b1"),
    )
    assert "assign x = (2? (1'b1) : (a &&\n    (1? (1'b0) : (b))));" in woven


def test_a_statement_may_be_left_out() -> None:
    woven = woven_with(Edit("a.sv", "if (c) «y = b;»", STATEMENT), Edit("a.sv", "y = «b»", "c"))
    assert "if (c) begin if (1!) y = (2? (c) : (b)); end" in woven


def woven_with(*edits: Edit) -> str:
    """A source with faults; in it `1?` asks whether the first is chosen, `1!` whether it is not."""
    source = {"a.sv": "assign x = a &&\n    b;\nalways_comb if (c) y = b;\n"}
    places = {number: [edit.change(source)] for number, edit in enumerate(edits, 1)}
    text = weave(source, places)["a.sv"]
    return re.sub(r"mutation_pkg::chosen ([!=])= (\d+)(?: (?=\?))?", _asked, text)


def _asked(found: re.Match[str]) -> str:
    return found[2] + found[1].replace("=", "")


def test_plain_verilog_is_woven_as_well(tmp_path: Path) -> None:
    """The choice is there before the module does anything."""
    require_icarus()
    source = {
        "m.v": """module m;
  reg [3:0] a;
  initial begin
    a = 1;
    a = a + 2;
    $display("%0d", a);
  end
endmodule
"""
    }
    edits = {1: ("a = «1»", "4"), 2: ("«a = a + 2;»", STATEMENT), 3: ("a + «2»", "1")}
    changes = {number: [Edit("m.v", *edit).change(source)] for number, edit in edits.items()}
    (tmp_path / "m.v").write_text(weave(source, changes)["m.v"])
    program = compiled("m", [tmp_path / "m.v"], tmp_path)
    given = (simulated(program, tmp_path, ARGUMENT.format(number)) for number in range(4))
    assert [simulated(program, tmp_path), *given] == ["3\n", "3\n", "6\n", "1\n", "2\n"]
    with pytest.raises(AssertionError, match="there is no mutation 4"):
        simulated(program, tmp_path, ARGUMENT.format(4))


def test_a_copy_has_only_what_belongs_to_it_and_keeps_what_is_the_same(tmp_path: Path) -> None:
    folder, target = tmp_path / "rtl", tmp_path / "copy"
    (folder / "part").mkdir(parents=True)
    sources = {"a.sv": "assign x = a;\n", "b.sv": "assign y = b;\n"}
    for name, text in sources.items():
        (folder / "part" / name).write_text(text)
    change = Edit("a.sv", "«a»;", "b").change(sources)
    write_copy(folder, target, sources, {1: [change]})
    (target / "stale.sv").write_text("")
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*.sv")}
    write_copy(folder, target, sources, {1: [change._replace(replacement="!a")]})
    after = {path: path.stat().st_mtime_ns for path in target.rglob("*.sv")}
    changed = {path.name for path, time in before.items() if after.get(path) != time}
    assert changed == {"a.sv", "stale.sv"}
    assert (target / "pkg" / "mutation_pkg.sv") in after


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit("a.sv", "x = «c»", "1'b0"), "a.sv has 0 times: x = «c»"),
        (Edit("a.sv", "«a»", "1'b0"), "a.sv has 2 times: «a»"),
        (Edit("b.sv", "«a»", "1'b0"), "b.sv has 0 times: «a»"),
        (Edit("a.sv", "«x = a» && b", "1'b0"), "two faults change"),
    ],
)
def test_a_fault_without_its_place_is_an_error(edit: Edit, message: str) -> None:
    source, other = {"a.sv": "assign x = a && b;"}, Edit("a.sv", "«a && b»", "!b")
    with pytest.raises(FaultMisplaced, match=re.escape(message)):
        weave(source, {1: [edit.change(source)], 2: [other.change(source)]})


@pytest.mark.nightly
@pytest.mark.parametrize("name", [mutation.name for mutation in MUTATIONS])
def test_fault_is_caught(name: str) -> None:
    mutation = next(mutation for mutation in MUTATIONS if mutation.name == name)
    require_toolchain()
    print(row(mutation, how_caught(mutation)))


@pytest.mark.nightly
@pytest.mark.parametrize("test", sorted({mutation.test for mutation in MUTATIONS}))
def test_nothing_is_caught_without_a_fault(test: str) -> None:
    require_toolchain()
    passes, output = run_with(CONTROL, test)
    assert passes, output
