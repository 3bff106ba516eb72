"""The sign-off page: what it names is there, nothing is left out, what is lacking stands on top."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from faults import MUTATIONS

from tests.formal.proofs import PROOFS
from tests.signoff.__main__ import found_evidence, kept_as, main, names_of_results, page
from tests.signoff.evidence import Evidence, evidence, units_with_bins
from tests.signoff.requirements import (
    RecordRefused,
    Requirement,
    Requirements,
    requirements,
)
from tests.signoff.results import FAILED, PASSED, Last, by_evidence, keep, kept, outcomes
from tests.signoff.statements import Statement, statements

SAID = Statement("rtl-dma.md", "Errors", "A bad entry is dropped.")
BARE = Requirement("DMA-1", (SAID,))


@pytest.fixture(scope="module")
def found() -> dict[str, list[Evidence]]:
    return {number: list(parts) for number, parts in found_evidence(requirements()).items()}


def test_all_evidence_that_is_named_is_there(found: dict[str, list[Evidence]]) -> None:
    assert all(each.when for parts in found.values() for each in parts)


def test_every_fault_property_and_unit_with_bins_belongs_to_a_requirement(
    found: dict[str, list[Evidence]],
) -> None:
    named = {kept_as(each) for parts in found.values() for each in parts}
    there = {f"fault:{each.name}" for each in MUTATIONS}
    there |= {f"bins:{unit}" for unit in units_with_bins()}
    there |= {
        f"proof:{proof.wrapper.removesuffix('_proof')}.{each.label}"
        for proof in PROOFS
        for each in proof.properties
    }
    assert sorted(there - named) == []


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (replace(BARE, tests=("dma/test_events.py::test_nothing",)), "there is no test tests/rtl"),
        (replace(BARE, tests=("dma/test_events.py::test_event[a]",)), "there is no test tests/rtl"),
        (replace(BARE, proofs=("writer.assert_nothing",)), "there is no proof writer"),
        (replace(BARE, bins=("RTL nothing",)), "no test declares bins of RTL nothing"),
        (replace(BARE, faults=("Nothing",)), "there is no fault Nothing"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(named: Requirement, message: str) -> None:
    with pytest.raises(KeyError, match=message):
        evidence(named)


def test_what_no_page_says_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "requirements.toml"
    record.write_text('[pages]\nDMA = "rtl-dma.md"\n[remarks]\n[DMA-1]\nsays = "It flies"\n')
    with pytest.raises(RecordRefused, match="begins with: It flies"):
        requirements(record)


def test_a_fault_brings_its_test_and_a_whole_test_stands_for_its_cases() -> None:
    tests = ("dma/test_events.py::test_event",)
    parts = evidence(replace(BARE, tests=tests, faults=("PauseIgnored", "InnerErrorLost")))
    assert [(each.kind, each.shown) for each in parts] == [
        ("test", "dma/test_events.py::test_event"),
        ("test", "dma/test_queue.py::test_queue_on_a_bus_of_4_bytes"),
        ("fault", "PauseIgnored"),
        ("fault", "InnerErrorLost"),
    ]
    assert parts[0].bites > 0


def test_what_lacks_evidence_or_a_number_stands_on_top() -> None:
    weak = Evidence("test", "tests/rtl/a.py::test_a", "a.py::test_a", frozenset({"gate"}))
    shown = replace(BARE, number="DMA-2")
    left = Statement("rtl-dma.md", "Errors", "A new sentence.")
    written = page(
        Requirements((BARE, shown), (left,)),
        {"DMA-1": [], "DMA-2": [weak]},
        {weak.name: Last(FAILED, "2026-11-29", "abc")},
    )
    top, _, rest = written.partition("## Requirements whose evidence no fault has tried")
    assert "- **DMA-1** ([rtl-dma.md](rtl-dma.md)): A bad entry is dropped" in top
    assert "A new sentence." in top
    assert "DMA-2" not in top
    assert "- **DMA-2**" in rest
    assert "**a.py::test_a FAILED** 2026-11-29, 0 of 1 good |" in rest


def test_statements_of_a_page() -> None:
    text = """\
# Title

One sentence. Another one of
two lines:

| a | b |
|---|---|
| `x` | [y](z.md) |

- a point
  that goes on. And on.
- one more

```
code. Is none.
```
"""
    assert [each.text for each in statements("a.md", text)] == [
        "One sentence.",
        "Another one of two lines:",
        "`x`: y",
        "a point that goes on. And on.",
        "one more",
    ]


JUNIT = """<testsuites><testsuite>
<testcase classname="tests.rtl.dma.test_events" name="test_event[Pause]"/>
<testcase classname="tests.rtl.dma.test_events" name="test_event[InterruptStorm]">
<failure/></testcase>
<testcase classname="tests.rtl.dma.test_events" name="test_event[ResetInTransfer]">
<skipped/></testcase>
<testcase classname="tests.rtl.test_mutations" name="test_fault_is_caught[PauseIgnored]"/>
<testcase classname="tests.formal.test_formal" name="test_proof_holds[fifo-4-5]"/>
</testsuite></testsuites>"""


def test_results_of_runs_are_kept_by_evidence(tmp_path: Path) -> None:
    (tmp_path / "run.xml").write_text(JUNIT)
    (tmp_path / "proofs.json").write_text('[{"name": "writer-4-2", "good": false}]')
    (tmp_path / "bins").mkdir()
    (tmp_path / "bins" / "a.bins.json").write_text('{"RTL mesh bus": {"bins": {"a": 3, "b": 0}}}')
    said: dict[str, str] = {}
    for name in ("run.xml", "proofs.json", "bins"):
        said |= outcomes(tmp_path / name)
    own = replace(
        BARE,
        tests=("dma/test_events.py::test_event",),
        proofs=("fifo.assert_in_order", "writer.assert_length"),
        bins=("RTL mesh bus",),
        faults=("PauseIgnored",),
    )
    names = names_of_results({"DMA-1": evidence(own)})
    results = by_evidence(said, names, "2026-11-29", "abc")
    assert {name: each.said for name, each in results.items()} == {
        "tests/rtl/dma/test_events.py::test_event": FAILED,
        "proof:fifo.assert_in_order": PASSED,
        "proof:writer.assert_length": FAILED,
        "bins:RTL mesh bus": "1 of 2",
        "fault:PauseIgnored": PASSED,
    }
    assert [name for name, each in results.items() if each.good] == [
        "proof:fifo.assert_in_order",
        "fault:PauseIgnored",
    ]
    keep(results, tmp_path / "results.json")
    assert kept(tmp_path / "results.json") == results


def test_a_run_of_another_kind_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.txt").touch()
    assert main(["--record", str(tmp_path / "log.txt")]) == 2
    assert "is no JUnit file" in capsys.readouterr().err
