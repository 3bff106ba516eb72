"""What came last of each piece of evidence: ``results.json``, which runs bring up to date.

A run leaves a JUnit file (``pytest --junitxml``), a list of proofs (``python -m tests.formal
--json``) or a folder of functional bins (``make rtl-coverage``).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import msgspec
from darwinn_rtl.coverage_report import BINS, merge_bins

RESULTS = Path(__file__).with_name("results.json")
PASSED, FAILED = "passed", "FAILED"
_PROOF = "tests/formal/test_formal.py::test_proof_holds["
_FAULT = "tests/rtl/test_mutations.py::test_fault_is_caught["


class Last(msgspec.Struct, frozen=True):
    """What a run said: passed or FAILED, or how many bins of how many; the date and the commit."""

    said: str
    date: str
    commit: str

    @property
    def good(self) -> bool:
        """Whether that is as it should be."""
        hit, _, declared = self.said.partition(" of ")
        return self.said == PASSED or (bool(declared) and hit == declared)


def kept(path: Path = RESULTS) -> dict[str, Last]:
    """Results by the name of the evidence, as the repository keeps them."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Last]) if path.exists() else {}


def keep(found: Mapping[str, Last], path: Path = RESULTS) -> None:
    """Write results, a line each."""
    lines = [
        f"{json.dumps(name)}: {msgspec.json.encode(found[name]).decode()}" for name in sorted(found)
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def outcomes(run: Path) -> dict[str, str]:
    """What a run said of each case of a test, proof, fault (``fault:NAME``) and unit with bins.

    Raises ``ValueError`` if ``run`` is none of the three.
    """
    if run.is_dir():
        return _of_bins(run)
    if run.suffix == ".json":
        return {
            f"proof:{each['name']}": PASSED if each["good"] else FAILED
            for each in json.loads(run.read_text())
        }
    if run.suffix == ".xml":
        return _of_tests(run)
    raise ValueError(f"{run} is no JUnit file, no list of proofs and no folder of bins")


def _of_bins(folder: Path) -> dict[str, str]:
    found = {}
    for unit, items in merge_bins(sorted(folder.glob(BINS))).items():
        hits = [count for bins in items.values() for count in bins.values()]
        found[f"bins:{unit}"] = f"{sum(count > 0 for count in hits)} of {len(hits)}"
    return found


def _of_tests(path: Path) -> dict[str, str]:
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        bad = case.find("failure") is not None or case.find("error") is not None
        found[_as_evidence(name)] = FAILED if bad else PASSED
    return found


def _as_evidence(name: str) -> str:
    for start, kind in ((_PROOF, "proof"), (_FAULT, "fault")):
        if name.startswith(start):
            return f"{kind}:{name.removeprefix(start).removesuffix(']')}"
    return name


def joined(said: Iterable[str]) -> str | None:
    """One result of several: FAILED if one is; None of none."""
    all_said = list(said)
    if not all_said:
        return None
    return FAILED if FAILED in all_said else PASSED


def by_evidence(
    outcomes: Mapping[str, str], names: Mapping[str, Iterable[str]], date: str, commit: str
) -> dict[str, Last]:
    """Results of a run by the names under which they are kept.

    ``names`` has for each of these the outcomes that it stands for: a test's cases, a property's
    proofs. Of what the run did not do, nothing is said.
    """
    found: dict[str, Last] = {}
    said: dict[str, list[str]] = defaultdict(list)
    for name, parts in names.items():
        said[name] += [outcomes[part] for part in parts if part in outcomes]
    for name, each in said.items():
        one = each[0] if name.startswith("bins:") and each else joined(each)
        if one is not None:
            found[name] = Last(one, date, commit)
    return found
