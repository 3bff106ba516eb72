"""The suite notices faults: each deliberate fault of the RTL makes its test fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from faults import MUTATIONS
from harness_runs import require_toolchain
from mutations import how_caught, row, run_with
from weaving import CONTROL, Edit, FaultMisplaced, weave


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
    from darwinn_rtl.source_files import source_files

    sources = {path.name: path.read_text() for path in source_files()}
    assert not [name for name, text in sources.items() if "mutat" in text]
    woven = weave(sources, {mutation.name: mutation.edits for mutation in MUTATIONS})
    for mutation in MUTATIONS:
        for edit in mutation.edits:
            chosen = f"mutation_pkg::mutated[mutation_pkg::{mutation.name}] ? ({edit.replacement})"
            assert chosen in woven[edit.file]


def test_a_fault_keeps_what_it_replaces() -> None:
    woven = weave(
        {"a.sv": "assign x = a &&\n    b;\n"},
        {
            "One": [Edit("a.sv", "x = a && «b»", "1'b0")],
            "Two": [Edit("a.sv", "&& «b»;", "!b")],
            "Three": [Edit("a.sv", "x = «a» &&", "1'b1")],
        },
    )
    one, two, three = (
        f"mutation_pkg::mutated[mutation_pkg::{name}] ? " for name in ("One", "Two", "Three")
    )
    assert woven["a.sv"].endswith(
        f"assign x = ({three}(1'b1) : (a)) &&\n    ({one}(1'b0) : {two}(!b) : (b));\n"
    )


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit("a.sv", "x = «c»", "1'b0"), "a.sv has 0 times: x = «c»"),
        (Edit("a.sv", "«a»", "1'b0"), "a.sv has 2 times: «a»"),
        (Edit("b.sv", "«a»", "1'b0"), "b.sv has 0 times: «a»"),
        (Edit("a.sv", "x = «a && b»", "1'b0"), "two faults change"),
    ],
)
def test_a_fault_without_its_place_is_an_error(edit: Edit, message: str) -> None:
    faults = {"One": [edit], "Two": [Edit("a.sv", "&& «b»", "!b")]}
    with pytest.raises(FaultMisplaced, match=re.escape(message)):
        weave({"a.sv": "assign x = a && b;"}, faults)


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
