"""Descriptions of chips and host links: what each parameter may be, and what a file may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from darwinn_formats.errors import FormatError
from darwinn_sim.chips.description import read_chip
from darwinn_sim.timing.description import (
    ChipDescription,
    Confidence,
    HostLink,
    Quantity,
    built_in,
    chip_description,
    host_link,
)

BITS = 1 << 16
RULES: dict[type[ChipDescription] | type[HostLink], dict[str, tuple[str, float, float]]] = {
    ChipDescription: {
        "grid_rows": ("tile", 1, 16),
        "grid_columns": ("tile", 1, 16),
        "lanes": ("lane", 64, 64),
        "row_words": ("word", 64, 64),
        "narrow_bytes": ("B", 4096, 1 << 18),
        "wide_rows": ("row", 64, 4096),
        "scale_bias_words": ("word", 256, 256),
        "activation_units": ("unit", 64, 1 << 15),
        "activation_unit_bytes": ("B", 8, 8),
        "parameter_units": ("unit", 64, 1 << 14),
        "parameter_unit_bytes": ("B", 64, 64),
        "scalar_memory_words": ("word", 64, 1 << 13),
        "scalar_registers": ("register", 32, 32),
        "predicates": ("bit", 8, 8),
        "table_segments": ("segment", 8, 8),
        "table_coefficients": ("coefficient", 5, 5),
        "clock": ("Hz", 1e3, 1e10),
        "memory_clock_ratio": ("cycle/cycle", 1, 64),
        "ring_bytes_per_cycle": ("B/cycle", 1, 256),
        "ring_row_cycles": ("cycle", 1, BITS),
        "ring_sender_waits": ("flag", 0, 1),
        "narrow_to_wide_words_per_cycle": ("word/cycle", 1, 64),
        "wide_to_narrow_words_per_cycle": ("word/cycle", 1, 64),
        "mesh_words_per_cycle": ("word/cycle", 1, 64),
        "result_words_per_cycle": ("word/cycle", 1, 64),
        "result_queue_words": ("word", 0, 128),
        "result_cycles": ("cycle", 0, BITS),
        "drain_cycles": ("cycle", 0, 1),
        "row_write_cycles": ("cycle", 0, 1),
        "scalar_bundle_cycles": ("cycle", 0, BITS),
        "ring_fifo_rows": ("row", 1, 1024),
        "outfeed_rows": ("row", 1, 1024),
        "ring_room_at_once": ("flag", 0, 1),
        "mesh_fifo_words": ("word", 1, BITS),
        "tile_queue": ("instruction", 1, 64),
        "unit_queue": ("instruction", 1, 16),
        "scalar_queue": ("instruction", 1, 16),
        "instruction_start": ("cycle", 0, BITS),
        "scalar_unit_start": ("cycle", 0, BITS),
        "host_fifo_bytes": ("B", 128, 1 << 20),
        "link_word_bytes": ("B", 1, 128),
        "reads_apart": ("flag", 0, 1),
        "read_cycles": ("cycle", 0, BITS),
        "write_burst_bytes": ("B", 1, 128),
        "write_cycles": ("cycle", 0, BITS),
        "write_gap_cycles": ("cycle", 0, BITS),
        "unanswered_writes": ("burst", 1, 64),
        "interrupt_cycles": ("cycle", 1, BITS),
    },
    HostLink: {
        "bytes_per_second_in": ("B/s", 1e3, 1e12),
        "bytes_per_second_out": ("B/s", 1e3, 1e12),
        "fixed_seconds": ("s", 0, 10),
        "on_request": ("flag", 0, 1),
        "output_copy_seconds": ("s", 0, 1),
        "scatter": ("share", 0, 10),
        "clock": ("Hz", 0, 1e10),
    },
}
CASES = [(kind, name) for kind, rules in RULES.items() for name in rules]


def entry(value: object, unit: str) -> dict[str, object]:
    return {"value": value, "unit": unit, "source": "a test", "confidence": "medium"}


def made(kind: type[ChipDescription] | type[HostLink], changes: dict[str, Any]) -> Any:
    table = {name: entry(low, unit) for name, (unit, low, _) in RULES[kind].items()}
    names = {"host": "usb3", "register_map": "beagle"}
    others = names if kind is ChipDescription else {}
    return kind.from_table("mine", table | changes, **others)


@pytest.mark.parametrize("kind", RULES)
def test_the_parameters(kind: type[ChipDescription] | type[HostLink]) -> None:
    rules = kind.parameters()
    places = {"tile_queue", "unit_queue", "scalar_queue"}
    found = {name: (rule.unit, rule.least, rule.most) for name, rule in rules.items()}
    assert found.keys() == RULES[kind].keys()
    for name in found.keys() - places:
        assert found[name] == RULES[kind][name]
    assert [name for name, rule in rules.items() if not rule.whole] == (
        ["fixed_seconds", "output_copy_seconds", "scatter"] if kind is HostLink else []
    )
    description = made(kind, {})
    assert description.name == "mine"
    expected = {
        name: {"value": low, "unit": unit, "source": "a test", "confidence": "medium"}
        for name, (unit, low, _) in RULES[kind].items()
    }
    assert description.as_json() == expected


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_values_of_a_parameter(kind: type[ChipDescription] | type[HostLink], name: str) -> None:
    rule = kind.parameters()[name]
    for value in (rule.least, rule.most):
        description = made(kind, {name: entry(value, rule.unit)})
        assert getattr(description, name) == Quantity(value, "a test", Confidence.MEDIUM)
    for value in (rule.least - 1, rule.most + 1, float("nan")):
        text = f"the value {value} is not within {rule.least:g} to {rule.most:g}"
        if rule.least == rule.most:
            text = f"the value {value} is not {rule.least:g}, as on every chip"
        text += f": {rule.why}" * bool(rule.why)
        with pytest.raises(FormatError) as error:
            made(kind, {name: entry(value, rule.unit)})
        assert (error.value.field, error.value.reason) == (f"mine.{name}", text)
    half = rule.least + 0.5
    if rule.least == rule.most:
        assert rule.why, "why no other value can be"
    elif rule.whole:
        with pytest.raises(FormatError, match=f"the value {half} is not a whole number"):
            made(kind, {name: entry(half, rule.unit)})
    else:
        assert getattr(made(kind, {name: entry(half, rule.unit)}), name).value == half


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (5, "a parameter has exactly confidence, source, unit, value"),
        ({"value": 1}, "a parameter has exactly confidence, source, unit, value"),
        (entry(1, "row") | {"more": 1}, "a parameter has exactly"),
        (entry("1", "row"), "the value is not a number"),
        (entry(True, "row"), "the value is not a number"),
        (entry(1, "B"), "the unit is row, not B"),
        (entry(1, "row") | {"confidence": "sure"}, "the confidence is one of high, medium, low"),
        (entry(1, "row") | {"source": ""}, "the source is missing"),
        (entry(1, "row") | {"source": 5}, "the source is missing"),
    ],
)
def test_what_a_parameter_has(given: object, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as error:
        made(ChipDescription, {"outfeed_rows": given})
    assert error.value.field == "mine.outfeed_rows"


def test_parameters_are_all_there_and_no_others() -> None:
    with pytest.raises(FormatError, match="no such parameter") as error:
        made(HostLink, {"speed": entry(1, "B")})
    assert error.value.field == "mine.speed"
    with pytest.raises(FormatError, match="the parameter is missing") as error:
        HostLink.from_table("mine", {})
    assert error.value.field == "mine.bytes_per_second_in"


def test_what_is_built_in_can_be_read() -> None:
    assert built_in("chips") == ("beagle-max", "beagle-std", "harness", "harness-2x2")
    for name in built_in("chips"):
        description = read_chip(name)
        assert (description.name, description.host in built_in("hosts")) == (name, True)
    for name in built_in("hosts"):
        assert host_link(name).name == name


def test_a_file_extends_others(tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('extends = "beagle-std"\nhost = "mine"\n')
    second.write_text(f'extends = "{first}"\n')
    found, base = chip_description(str(second)), chip_description("beagle-std")
    assert (found.name, found.host) == ("second", "mine")
    assert found.as_json() == base.as_json()


def test_files_that_a_file_names_count_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chips" / "old").mkdir(parents=True)
    (tmp_path / "chips" / "old" / "base.toml").write_text(
        'extends = "beagle-std"\nhost = "desk.toml"\n'
    )
    (tmp_path / "chips" / "mine.toml").write_text('extends = "old/base.toml"\n')
    (tmp_path / "chips" / "round.toml").write_text('extends = "old/../round.toml"\n')
    assert chip_description("chips/mine.toml").host == "chips/old/desk.toml"
    (tmp_path / "chips" / "old" / "desk.toml").write_text('extends = "usb2"\n')
    (tmp_path / "desk.toml").write_text('extends = "chips/old/desk.toml"\n')
    usb2 = host_link("usb2")
    for each in ("chips/old/desk.toml", "desk.toml", str(tmp_path / "desk.toml")):
        assert host_link(each).as_json() == usb2.as_json()
    with pytest.raises(FormatError, match="extends itself"):
        chip_description("chips/round.toml")


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ('extends = "PATH"', "mine", "the description extends itself"),
        ("extends = 5", "mine.extends", "not the name of a description"),
        ('extends = "beagle-max"\nhost = 5', "mine.host", "not the name of a host link"),
        ('extends = "other"', "extends 'other'", "neither a TOML file nor one of beagle-max, "),
        ("= 5", "mine", "not TOML"),
    ],
)
def test_a_file_that_is_no_description(tmp_path: Path, text: str, field: str, reason: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("PATH", str(path)))
    with pytest.raises(FormatError, match=reason) as error:
        chip_description(str(path))
    assert (error.value.field, error.value.file) == (field, str(path))


def test_a_name_that_is_none() -> None:
    with pytest.raises(FormatError, match="neither a TOML file nor one of") as error:
        host_link("nothing")
    assert error.value.field == ""


def test_an_interval_belongs_to_a_parameter() -> None:
    told = entry(5e8, "B/s") | {"least": 4.5e8, "most": 6e8}
    link = made(HostLink, {"bytes_per_second_in": told})
    assert link.bytes_per_second_in.interval == (4.5e8, 6e8)
    assert link.as_json()["bytes_per_second_in"] == told | {"confidence": "medium"}
    assert link.bytes_per_second_out.interval == (1e3, 1e3)
    half = made(HostLink, {"bytes_per_second_in": entry(5e8, "B/s") | {"most": 6e8}})
    assert half.bytes_per_second_in.interval == (5e8, 6e8)


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        ({"least": 6e8}, "the value 500000000.0 is not within 600000000.0 to 500000000.0"),
        ({"most": 4e8}, "the value 500000000.0 is not within 500000000.0 to 400000000.0"),
        ({"least": "4e8"}, "least is not a number"),
        ({"most": 1e13}, "most 10000000000000.0 is not within 1000 to 1e\\+12"),
        ({"lest": 4e8}, "a parameter has exactly"),
    ],
)
def test_an_interval_that_is_none(ends: dict[str, object], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        made(HostLink, {"bytes_per_second_in": entry(5e8, "B/s") | ends})


def test_what_may_be_absent() -> None:
    table = {
        name: entry(low, unit)
        for name, (unit, low, _) in RULES[HostLink].items()
        if name not in ("output_copy_seconds", "scatter", "clock")
    }
    link = HostLink.from_table("mine", table)
    assert (link.output_copy_seconds.value, link.scatter.value, link.clock.value) == (0, 0, 0)


@pytest.mark.parametrize(
    "correlations",
    [
        '"fixed_seconds"',
        '[["fixed_seconds", "clock"]]',
        '[["fixed_seconds", "clock", 1.01]]',
        '[["fixed_seconds", "clock", "-1"]]',
        '[["fixed_seconds", "fixed_seconds", 1.0]]',
        '[["fixed_seconds", "colour", 0.5]]',
        '[["fixed_seconds", "clock", true]]',
    ],
)
def test_a_correlation_that_is_none(correlations: str, tmp_path: Path) -> None:
    path = tmp_path / "desk.toml"
    path.write_text(f'extends = "usb3"\ncorrelations = {correlations}\n')
    with pytest.raises(FormatError, match="has the names of two parameters and a number"):
        host_link(str(path))
    path.write_text('extends = "usb3"\ncorrelations = [["fixed_seconds", "clock", -1]]\n')
    assert host_link(str(path)).correlations == (("fixed_seconds", "clock", -1),)


@pytest.mark.parametrize(
    ("correlations", "message"),
    [
        ('["fixed_seconds", "clock", -1], ["clock", "fixed_seconds", -1]', "of one pair"),
        (
            '["fixed_seconds", "clock", -1], ["bytes_per_second_in", "clock", -1], '
            '["fixed_seconds", "bytes_per_second_in", -1]',
            "they contradict each other",
        ),
    ],
)
def test_correlations_that_no_errors_have(correlations: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "desk.toml"
    path.write_text(f'extends = "usb3"\ncorrelations = [{correlations}]\n')
    with pytest.raises(FormatError, match=message):
        host_link(str(path))


def test_a_host_may_set_the_clock() -> None:
    chip = chip_description("beagle-max")
    assert host_link("usb3").clocked(chip) == chip
    slow = made(HostLink, {"clock": entry(250_000_000, "Hz")})
    assert slow.clocked(chip).clock.value == 250_000_000
    assert slow.clocked(chip).ring_fifo_rows == chip.ring_fifo_rows
