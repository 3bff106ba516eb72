"""Which rules of rounding the programs of real executables leave: computed anew from the files.

``pytest -s`` on this file prints how many cases of which files rule each neighbour out.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from darwinn_reference.tflite import constant_operands
from darwinn_reference.tflite.roundings import (
    ROUNDINGS,
    Field,
    Neighbour,
    Quantities,
    values,
)
from darwinn_reference.tflite.softmax import ROOT_ONE, SHARE_FACTOR
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.report import Verdict
from one_operator import Array, tensor
from rounding_evidence import Tally, compare_rules, held, of_the_same_calibration, twin

_SUFFIX = "_edgetpu.tflite"


@pytest.fixture(scope="module")
def tallies() -> dict[str, dict[str, Tally]]:
    """What each file holds, by its name, of all folders of executables that are at hand."""
    found = {}
    for variable in ("DARWINN_CORPUS", "DARWINN_WILD", "DARWINN_WILD2"):
        folder = Path(os.environ.get(variable) or "/nowhere")
        for path in sorted((folder / "darwinn").glob(f"*{_SUFFIX}")):
            name = path.name.removesuffix(_SUFFIX)
            network = twin(folder, name)
            if network is not None:
                found[name] = compare_rules(network, held(path))
    if not found:
        pytest.skip("no folder of real executables is named: DARWINN_CORPUS and its like")
    return {name: each for name, each in found.items() if of_the_same_calibration(each)}


def test_every_file_holds_what_the_rules_give(tallies: dict[str, dict[str, Tally]]) -> None:
    wrong = {
        (name, rounding): tally
        for name, each in tallies.items()
        for rounding, tally in each.items()
        if tally.by_a_neighbour_only
    }
    assert not wrong


@pytest.mark.parametrize("name", ROUNDINGS)
def test_files_rule_out_the_neighbours_as_declared(
    tallies: dict[str, dict[str, Tally]], name: str
) -> None:
    apart: dict[str, Counter[str]] = {}
    for file, each in tallies.items():
        for text, count in each.get(name, Tally()).apart.items():
            apart.setdefault(text, Counter())[file] = count
    seen = sum(each[name].by_rule for each in tallies.values() if name in each)
    print(f"\n{name}: {seen} numbers found to the bit")
    for neighbour in ROUNDINGS[name].neighbours:
        files = apart.get(neighbour.text, Counter())
        print(f"  {neighbour.text}: {files.total()} cases in {len(files)} files")
        assert set(neighbour.told_apart_by) & set(tallies) <= set(files), neighbour.text
        assert not (neighbour.open and files), f"{neighbour.text} is ruled out by {dict(files)}"


@pytest.mark.parametrize("name", ["bright_16x16", "keras_lstm_mnist_ptq"])
def test_shares_of_a_softmax_have_the_factor_of_the_rule(corpus: Path, name: str) -> None:
    program = held(corpus / "darwinn" / f"{name}{_SUFFIX}")
    once = np.array([256 / ROOT_ONE**2], np.float32)
    for factor, there in ((np.atleast_1d(SHARE_FACTOR), True), (once, False)):
        assert program.has(Field.FACTOR, factor, factor) is there


BY_BYTES = [
    pytest.param(file, each, id=each.text)
    for rounding in ROUNDINGS.values()
    for each in rounding.neighbours
    for file in each.bytes_of
]


@pytest.mark.parametrize(("file", "neighbour"), BY_BYTES)
def test_outputs_equal_the_oracle_by_the_rule_alone(
    wild: Path, file: str, neighbour: Neighbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(levels: Array, scale: np.float32, unit: np.float32) -> Array:
        output = tensor(0, (), "u1", 1.0)
        return values(neighbour.formula, Quantities(unit, output, np.atleast_1d(scale), levels))

    compiled, before = wild / "darwinn" / f"{file}{_SUFFIX}", wild / "tflite" / f"{file}.tflite"
    assert verify(compiled, before, runs=1).verdict is Verdict.PASS
    monkeypatch.setattr(constant_operands, "constant_term", other)
    assert verify(compiled, before, runs=1).verdict is Verdict.MISMATCH
