"""Baselines of cycles: what counts as a regression, whose change it is, and what --update keeps."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from darwinn_testbench.errors import InputError
from darwinn_testbench.regression import baseline
from darwinn_testbench.regression.baseline import Entry, Metric, Part
from darwinn_testbench.report import Verdict
from hypothesis import given
from hypothesis import strategies as st

LAYERS = (
    Part("layer 0", 100, {"tensor_unit": 90, "ring_bus": 10}),
    Part("layer 1", 50, {"tensor_unit": 40}, {"ring": 5}),
)
ENTRY = Entry(
    name="net",
    chip="beagle-max",
    host="usb3",
    sha256="aa",
    reason="first",
    metrics={"cycles": Metric(1000), "estimate": Metric(500, 0.1), "bytes": Metric(7, 0, "report")},
    layers=LAYERS,
)


def changed(entry: Entry = ENTRY, sha256: str = "aa", **values: int) -> Entry:
    metrics = {
        name: Metric(values.get(name, metric.value)) for name, metric in entry.metrics.items()
    }
    return msgspec.structs.replace(entry, metrics=metrics, sha256=sha256)


def judged(measured: Entry, expected: tuple[Entry, ...] = (ENTRY,)) -> dict[str, Verdict]:
    return {row.metric: row.verdict for row in baseline.compare([measured], expected)}


def test_the_same_figures_pass() -> None:
    rows = baseline.compare([changed()], [ENTRY])
    assert {row.verdict for row in rows} == {Verdict.PASS}
    assert not any(row.message for row in rows)


@pytest.mark.parametrize("value", [999, 1001])
def test_counts_are_exact_in_both_directions(value: int) -> None:
    assert judged(changed(cycles=value))["cycles"] is Verdict.REGRESSION


@given(value=st.integers(0, 2000), thousandths=st.integers(0, 1000))
def test_a_tolerance_is_a_share_of_the_expected_value(value: int, thousandths: int) -> None:
    # In whole numbers: at the edge itself the rounding of a float would decide.
    expected = msgspec.structs.replace(ENTRY, metrics={"cycles": Metric(1000, thousandths / 1000)})
    (row,) = baseline.compare(
        [msgspec.structs.replace(ENTRY, metrics={"cycles": Metric(value)})], [expected]
    )
    allowed = abs(value - 1000) <= thousandths
    assert (row.verdict is Verdict.PASS) == allowed
    assert bool(row.message) == (value != 1000)


def test_what_only_reports_never_fails_but_is_said() -> None:
    row = next(
        row for row in baseline.compare([changed(bytes=9)], [ENTRY]) if row.metric == "bytes"
    )
    assert row.verdict is Verdict.PASS
    assert row.message.startswith("9 instead of 7 (+28.6 %, 0 % allowed)")


def test_a_changed_executable_is_told_from_a_changed_model() -> None:
    (row, *_) = baseline.compare([changed(cycles=1100)], [ENTRY])
    assert row.cause == "model"
    (row, *_) = baseline.compare([changed(cycles=1100, sha256="bb")], [ENTRY])
    assert row.cause == "executable"
    assert "the executable changed" in row.message


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        (
            (Part("layer 0", 120, {"tensor_unit": 90, "ring_bus": 30}), LAYERS[1]),
            "layer 0 (100 to 120 cycles; ring_bus 10 to 30 busy)",
        ),
        (
            (LAYERS[0], Part("layer 1", 60, {"tensor_unit": 40}, {"ring": 14, "mesh": 3})),
            "layer 1 (50 to 60 cycles; the units do the same, they wait longer: ring +9 cycles)",
        ),
        (
            (LAYERS[0], Part("layer 1", 40, {"tensor_unit": 40}, {"ring": 1})),
            "layer 1 (50 to 40 cycles; the units do the same, they wait less: ring -4 cycles)",
        ),
        (LAYERS[:1], "layer 1, which only one of them has"),
        ((Part("softmax", 1), LAYERS[1]), "softmax, where the baseline has layer 0"),
        (LAYERS, ""),
    ],
)
def test_the_first_layer_and_its_unit_are_named(layers: tuple[Part, ...], said: str) -> None:
    measured = msgspec.structs.replace(changed(cycles=1100), layers=layers)
    (row, *_) = baseline.compare([measured], [ENTRY])
    assert row.where == said


def test_the_direction_of_a_change_is_said() -> None:
    rows = baseline.compare([changed(cycles=900, estimate=600)], [ENTRY])
    assert [row.change for row in rows] == ["better", "worse", ""]
    assert "changed for the better" in rows[0].message
    assert "changed for the worse" in rows[1].message
    (new, *_) = baseline.compare([ENTRY], [])
    assert new.change == "new"
    (gone, *_) = baseline.compare([msgspec.structs.replace(ENTRY, metrics={})], [ENTRY])
    assert (gone.change, gone.value) == ("gone", None)


def test_cause_and_place_are_said_once_for_an_executable() -> None:
    layers = (Part("layer 0", 99), LAYERS[1])
    measured = msgspec.structs.replace(changed(cycles=900, estimate=600), layers=layers)
    first, second, _ = baseline.compare([measured], [ENTRY])
    assert first.where == second.where != ""
    assert first.where in first.message
    assert "first at" not in second.message


def test_layers_of_a_baseline_without_waits_are_compared_by_the_rest() -> None:
    old = (Part("layer 0", 10, {"tensor_unit": 9}),)
    same = (Part("layer 0", 10, {"tensor_unit": 9}, {"ring": 1}),)
    longer = (Part("layer 0", 11, {"tensor_unit": 9}, {"ring": 2}),)
    assert baseline.first_difference(old, same) == ""
    assert baseline.first_difference(old, longer).endswith("they wait longer)")


def test_another_chip_or_host_has_no_baseline() -> None:
    for field in ("chip", "host"):
        other = msgspec.structs.replace(changed(), **{field: "other"})
        rows = baseline.compare([other], [ENTRY])
        assert {row.verdict for row in rows} == {Verdict.REGRESSION}
        assert {row.expected for row in rows} == {None}


def test_a_figure_that_went_away_is_a_regression_where_it_gates() -> None:
    left = msgspec.structs.replace(ENTRY, metrics={})
    assert judged(left) == {
        "cycles": Verdict.REGRESSION,
        "estimate": Verdict.REGRESSION,
        "bytes": Verdict.PASS,
    }


def test_an_update_keeps_tolerances_and_the_reasons_of_what_did_not_change(tmp_path: Path) -> None:
    other = msgspec.structs.replace(ENTRY, name="other")
    same = msgspec.structs.replace(changed(), reason="", program="a later one")
    entries = baseline.updated([ENTRY, other], [same], "because")
    assert {entry.name: entry.reason for entry in entries} == {"net": "first", "other": "first"}
    entries = baseline.updated([ENTRY, other], [changed(cycles=5, estimate=6)], "because")
    new = entries[0]
    assert new.reason == "because"
    assert new.metrics == {
        "cycles": Metric(5),
        "estimate": Metric(6, 0.1),
        "bytes": Metric(7, 0, "report"),
    }
    assert baseline.updated([], [changed()], "new")[0].reason == "new"
    path = tmp_path / "cycles.json"
    baseline.save(path, entries)
    assert baseline.load(path) == entries
    assert list(json.loads(path.read_text())) == ["entries", "format"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a baseline of cycles: Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"format": "x", "entries": []}', "Invalid enum value 'x' - at `$.format`"),
        ('{"entries": [{"name": 1}]}', "Expected `str`, got `int` - at `$.entries[0].name`"),
        ("[" * 100_000, "not a baseline"),
    ],
)
def test_a_wrong_baseline_says_where_and_why(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "cycles.json"
    path.write_text(text)
    with pytest.raises(InputError) as info:
        baseline.load(path)
    assert said in str(info.value)
    assert str(path) in str(info.value)


def test_tolerances_are_shares(tmp_path: Path) -> None:
    path = tmp_path / "cycles.json"
    baseline.save(path, [ENTRY])
    path.write_text(path.read_text().replace("0.1", "1.5"))
    with pytest.raises(InputError, match=r"<= 1.0 - at `\$.entries\[0\].metrics"):
        baseline.load(path)


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cycles.json"
    baseline.save(path, [ENTRY, ENTRY])
    with pytest.raises(InputError, match="two entries for net, beagle-max, usb3"):
        baseline.load(path)
