"""The proofs hold, find their faults and reach their covers; the runner tells them apart."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from darwinn_rtl.source_files import source
from darwinn_rtl.yosys import DesignRefused
from weaving import Edit

from tests.formal import area
from tests.formal.__main__ import Result, main, perform, table
from tests.formal.proofs import PROOFS, Proof, Property
from tests.formal.yosys import WRAPPERS, Answer, Question, Reply, ask, assertions

ROOT = Path(__file__).parents[2]
PLANNER = next(proof for proof in PROOFS if proof.name == "planner-8")


def require_yosys() -> None:
    pytest.importorskip("pyosys", reason="no yosys: pip install 'darwinn-testbench[dev]'")


def _name(proof: Proof) -> str:
    return proof.name


@pytest.mark.parametrize("proof", [each for each in PROOFS if each.of_the_gate], ids=_name)
def test_proof_holds(proof: Proof) -> None:
    require_yosys()
    result = perform(proof, alone=proof.nightly)
    assert result.good, result.line()


def test_every_assertion_is_a_property_with_a_fault_that_has_its_place() -> None:
    named: dict[str, set[str]] = {}
    for proof in PROOFS:
        named.setdefault(proof.wrapper, set()).update(each.label for each in proof.properties)
        for each in proof.properties:
            each.fault.span(source(each.fault.file).read_text())
    for path in WRAPPERS.glob("*_proof.sv"):
        text = path.read_text()
        assert set(re.findall(r"\b(assert_\w+) *:", text)) == named.pop(path.stem), path.name
        covers = {cover for each in PROOFS if each.wrapper == path.stem for cover in each.covers}
        assert set(re.findall(r"\b(cover_\w+) *:", text)) == covers, path.name
    assert not named
    assert len({proof.name for proof in PROOFS}) == len(PROOFS)


def test_what_does_not_hold_is_said_with_its_cycle_and_its_waves(tmp_path: Path) -> None:
    require_yosys()
    fault = PLANNER.properties[1].fault
    text = source(fault.file).read_text()
    begin, end = fault.span(text)
    changed = {fault.file: text[:begin] + fault.replacement + text[end:]}
    question = Question("prove", "", 3, induction=True)
    (reply,), _ = ask("planner_proof", {}, [question], tmp_path, changed=changed, traces=True)
    assert reply == Reply(Answer.FOUND, 1)
    assert "$enddefinitions" in (tmp_path / "planner_proof.vcd").read_text()
    result = Result("planner-8", "burst_planner", 6, reply.answer, reply.cycles, (), (), 0.1)
    assert not result.good
    assert "DOES NOT HOLD in cycle 1" in result.line()


def test_an_assertion_by_itself_needs_the_lemmas_behind_it(tmp_path: Path) -> None:
    require_yosys()
    labels = assertions("transfer_proof")
    assert labels == ("assert_sum", "lemma_follows", "assert_moves", "lemma_left")
    answers = [
        reply.answer
        for given in (labels, ("assert_sum", "assert_moves"))
        for reply in ask(
            "transfer_proof",
            {"DataBytes": 4, "MaxBurst": 2},
            [Question("follow", "assert_sum", 1, given=given)],
            tmp_path / str(len(given)),
        )[0]
    ]
    assert answers == [Answer.PROVED, Answer.UNKNOWN]
    transfer = next(proof for proof in PROOFS if proof.name == "transfer")
    assert perform(replace(transfer, apart=True)).holds == Answer.PROVED


def test_a_fault_that_changes_nothing_is_not_found() -> None:
    require_yosys()
    harmless = Edit("burst_planner.sv", "words_left «<» 33'(beats)", "<=")
    properties = (Property("assert_length", "", harmless),)
    result = perform(replace(PLANNER, properties=properties))
    assert result.holds == Answer.PROVED
    assert result.missed == ("assert_length",)
    assert not result.good
    assert "fault of assert_length" in result.line()


def test_a_label_that_is_not_there_is_refused() -> None:
    require_yosys()
    with pytest.raises(DesignRefused, match="minimum number 1"):
        perform(replace(PLANNER, covers=("cover_nothing",)))


def test_the_runner(capsys: pytest.CaptureFixture[str]) -> None:
    require_yosys()
    assert main(["planner-8", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert (result["name"], result["holds"], result["good"]) == ("planner-8", "proved", True)
    assert main(["nothing-of-the-kind"]) == 2
    assert "no proof has nothing-of-the-kind in its name" in capsys.readouterr().err


def test_no_proof_begins_when_the_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    require_yosys()
    assert main(["planner", "--seconds", "0", "--seed", "3"]) == 0
    chosen = sum("planner" in each.name for each in PROOFS)
    assert capsys.readouterr().out.endswith(f"; no time for {chosen}\n")


def test_the_document_has_the_table() -> None:
    assert table() in (ROOT / "docs" / "rtl-proofs.md").read_text(), "python -m tests.formal --list"


def test_areas_are_added_up_from_what_yosys_says() -> None:
    bank = {"$lut": 10, "$_DFFE_PP_": 3, "$_SDFF_PN0_": 2, "$__block_ram": 12}
    modules = {
        "\\tile": {
            "num_cells_by_type": {"$lut": 1},
            "num_submodules_by_type": {"memory$tile.a": 1, "memory$tile.b": 1},
        },
        "memory$tile.a": {
            "num_cells_by_type": {"$__dsp": 5},
            "num_submodules_by_type": {"bank": 2},
        },
        "memory$tile.b": {"num_cells_by_type": {"$__lut_ram": 2}},
        "\\bank": {"num_cells_by_type": bank},
    }
    memories, tile = area.areas("Said:\n" + json.dumps({"modules": modules}), "tile")
    assert memories == area.Area("memory", 2, 28, 8, 10, 5, 24)
    assert tile == area.Area("tile", 1, 29, 8, 10, 5, 24)


def test_a_part_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    require_yosys()
    assert area.main(["nothing"]) == 2
    assert "there is no nothing" in capsys.readouterr().err


def test_words_choose_proofs_of_the_night_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    """By a part of their names, as they do others; without a word they are left out."""
    require_yosys()
    words = ("writ", "stream-4")
    chosen = [each for each in PROOFS if any(word in each.name for word in words)]
    assert any(each.nightly for each in chosen)
    assert main([*words, "--seconds", "0"]) == 0
    assert capsys.readouterr().out.endswith(f"; no time for {len(chosen)}\n")
    assert main(["--seconds", "0"]) == 0
    quick = sum(not each.nightly for each in PROOFS)
    assert capsys.readouterr().out.endswith(f"; no time for {quick}\n")
