"""`darwinn calibrate`: hosts of known parameters and noise are found again, and said so."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_sim import timing
from darwinn_sim.timing.description import Confidence, HostLink, Quantity
from darwinn_testbench.accuracy.calibration import (
    Runs,
    Timed,
    calibrate,
    shares_of,
    values_of,
)
from darwinn_testbench.accuracy.measured import calibrate_host, host_file, times_of_csv
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.package import compile_network, edgetpu_model
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict

CLOCK = 500e6
SHAPES = [
    # cycles, bytes in, bytes out, copies: computing, moving in, moving out, and nothing much.
    (20_000_000, 30_000, 1_000, 1),
    (4_000_000, 40_000, 8, 1),
    (600_000, 280_000, 1_000, 1),
    (300_000, 150_000, 4_000, 1),
    (20_000, 200_000, 8, 1),
    (10_000, 50_000, 8, 1),
    (80_000, 5_000, 260_000, 65_000),
    (40_000, 5_000, 130_000, 32_000),
    (500_000, 130_000, 60_000, 28),
    (900_000, 20_000, 400_000, 256),
    (500, 9_000, 8, 1),
    (2_000_000, 60_000, 180_000, 4_000),
]


def quantity(value: float, least: float | None = None, most: float | None = None) -> Quantity:
    return Quantity(value, "a test", Confidence.MEDIUM, least, most)


def model(cycles: int, inward: int, outward: int, copies: int) -> Timed:
    """A model whose transfers overlap with nothing but a tenth of its computation."""

    def at(link: HostLink) -> float:
        arriving = CLOCK * inward / link.bytes_per_second_in.value
        leaving = CLOCK * outward / link.bytes_per_second_out.value
        return max(cycles, 0.9 * cycles + arriving) + leaving

    return Timed(at, copies)


MODELS = [model(*shape) for shape in SHAPES]


def host(fixed: float, inwards: float, outwards: float, copy: float, clock: float) -> HostLink:
    return replace(
        timing.host_link("usb3"),
        fixed_seconds=quantity(fixed),
        bytes_per_second_in=quantity(inwards),
        bytes_per_second_out=quantity(outwards),
        output_copy_seconds=quantity(copy),
        clock=quantity(clock),
    )


def seconds(each: Timed, link: HostLink) -> float:
    """What a host of these parameters measures."""
    clock = link.clock.value
    scaled = replace(
        link,
        bytes_per_second_in=quantity(link.bytes_per_second_in.value * CLOCK / clock),
        bytes_per_second_out=quantity(link.bytes_per_second_out.value * CLOCK / clock),
    )
    copying = each.copies * link.output_copy_seconds.value
    return each.cycles(scaled) / clock + copying + link.fixed_seconds.value


HOSTS = {
    "desktop": host(4e-4, 430e6, 80e6, 6e-9, 500e6),
    "slow clock": host(2.5e-4, 360e6, 45e6, 1e-8, 250e6),
    "slow board": host(2.2e-3, 270e6, 30e6, 3e-8, 500e6),
    "hot chip": host(3e-4, 380e6, 60e6, 1e-8, 170e6),
}


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_host_is_found_again(name: str, noise: float) -> None:
    true, random = HOSTS[name], np.random.default_rng(len(name))
    measured = [seconds(each, true) * math.exp(random.normal(0, noise)) for each in MODELS]
    found = calibrate(MODELS, measured, timing.host_link("usb3"), CLOCK, source="a test")
    assert found.told
    assert found.link.clock.value == pytest.approx(true.clock.value, rel=0.02 + 3 * noise)
    for parameter in ("fixed_seconds", "bytes_per_second_in", "bytes_per_second_out"):
        wanted, got = getattr(true, parameter).value, getattr(found.link, parameter)
        assert got.value == pytest.approx(wanted, rel=0.08 + 5 * noise), parameter
        low, high = got.interval
        assert low * 0.85 <= wanted <= high * 1.15, parameter
    errors = np.abs(found.predicted / measured - 1)
    assert errors.mean() < 0.02 + noise
    assert np.nanmean(np.abs(found.left_out)) < 0.04 + 2 * noise
    assert found.link.scatter.value < 0.08 + 5 * noise


def calibrated(chosen: Sequence[int], measured: Sequence[float]) -> HostLink:
    """The host that some of the models, by their numbers, give."""
    found = calibrate(
        [MODELS[k] for k in chosen],
        [measured[k] for k in chosen],
        timing.host_link("usb3"),
        CLOCK,
        source="a test",
    )
    return found.link


def test_five_models_predict_the_others_within_their_intervals() -> None:
    true = HOSTS["desktop"]
    within, errors = [], []
    for seed in range(5):
        random = np.random.default_rng(seed)
        measured = [seconds(each, true) * math.exp(random.normal(0, 0.02)) for each in MODELS]
        chosen = sorted(random.permutation(len(MODELS))[:8])
        link = calibrated(chosen, measured)
        for k in set(range(len(MODELS))) - set(chosen):
            predicted = seconds(MODELS[k], link)
            errors.append(abs(predicted / measured[k] - 1))
            spread = _spread(MODELS[k], link)
            within.append(abs(predicted - measured[k]) <= spread)
    assert np.mean(errors) < 0.08
    assert np.mean(within) >= 0.8


OUTLIERS = 0.08
"""Share of measurements that take longer for another reason: the machine was busy."""


def test_ranges_hold_the_truth_of_hosts_with_noise_and_outliers() -> None:
    """Networks differ on a host, measurements vary, and some are far too long."""
    within, widths = [], []
    hosts = {**HOSTS, "old link": host(9e-4, 230e6, 22e6, 2e-8, 250e6)}
    for name, seed in itertools.product(hosts, range(6)):
        random = np.random.default_rng((len(name), seed))
        true = [seconds(each, hosts[name]) * math.exp(random.normal(0, 0.04)) for each in MODELS]
        measured = [
            each * math.exp(random.normal(0, 0.02))
            + each * random.exponential(0.5) * (random.random() < OUTLIERS)
            for each in true
        ]
        chosen = sorted(random.permutation(len(MODELS))[:8])
        others = [k for k in range(len(MODELS)) if k not in chosen]
        link = calibrated(chosen, measured)
        values = values_of(link, CLOCK)
        rows = Runs([MODELS[k] for k in others], CLOCK, link).parts(values)
        for k, row in zip(others, rows, strict=True):
            low, high = timing.interval_of(shares_of(row, values), link)
            within.append(low <= true[k] <= high)
            widths.append((high - low) / (high + low))
    assert 0.85 <= np.mean(within) <= 0.99
    assert np.median(widths) < 0.25
    assert np.quantile(widths, 0.9) < 0.8


def _spread(each: Timed, link: HostLink) -> float:
    """Half the interval of a time, from the intervals of the parameters one by one."""
    middle = seconds(each, link)
    parts = [link.scatter.value * middle]
    for name in ("fixed_seconds", "bytes_per_second_in", "bytes_per_second_out"):
        ends: list[dict[str, Any]] = [{name: quantity(end)} for end in getattr(link, name).interval]
        parts.append(max(abs(seconds(each, replace(link, **end)) - middle) for end in ends))
    return math.hypot(*parts)


def test_what_a_fit_cannot_tell_apart_is_in_doubt_together() -> None:
    """Of models that all take as much input, the sum of its time and the fixed cost is known."""
    inward = 126_000
    alike = [model(cycles, inward, 8, 1) for cycles in range(40_000, 60_000, 4_000)]
    true, random = HOSTS["desktop"], np.random.default_rng(0)
    measured = [seconds(each, true) * math.exp(random.normal(0, 0.02)) for each in alike]
    link = calibrate(alike, measured, timing.host_link("usb3"), CLOCK, source="a test").link
    found = {(one, other): correlation for one, other, correlation in link.correlations}
    assert found["fixed_seconds", "bytes_per_second_in"] < -0.9
    arriving = inward / link.bytes_per_second_in.value
    spent = timing.Shares(0.9 * 50_000 / CLOCK, arriving, 0, 0, link.fixed_seconds.value)
    low, high = timing.interval_of(spent, link)
    assert low <= seconds(model(50_000, inward, 8, 1), true) <= high
    apart = timing.interval_of(spent, replace(link, correlations=()))
    assert high - low < 0.5 * (apart[1] - apart[0])


def test_models_that_do_not_compute_leave_the_clock_open() -> None:
    light = [model(1_000, inward, 8, 1) for inward in (5_000, 40_000, 160_000, 320_000)]
    measured = [seconds(each, HOSTS["desktop"]) for each in light]
    found = calibrate(light, measured, timing.host_link("usb3"), CLOCK, source="a test")
    assert not found.told
    assert found.link.clock == Quantity(500e6, "a test", Confidence.MEDIUM, 250e6, 500e6)
    assert found.link.fixed_seconds.value == pytest.approx(4e-4, rel=0.05)


def test_what_times_say_nothing_of_stays_as_it_was_described() -> None:
    base = replace(
        timing.host_link("usb3"), bytes_per_second_out=quantity(50_000_000, 40_000_000, 60_000_000)
    )
    quiet = [model(cycles, 50_000, 8, 1) for cycles in (100_000, 900_000, 5_000_000)]
    measured = [seconds(each, HOSTS["desktop"]) for each in quiet]
    found = calibrate(quiet, measured, base, CLOCK, source="a test").link.bytes_per_second_out
    assert found.value == pytest.approx(50_000_000, rel=0.02)
    assert found.interval == pytest.approx((40_800_000, 61_200_000), rel=0.03)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small compiled models."""
    made = tmp_path_factory.mktemp("models")
    for name, sizes in (("one", (64, 64)), ("two", (128, 64)), ("three", (256, 256))):
        network = random_dense(sizes, 1)
        (made / f"{name}.tflite").write_bytes(edgetpu_model(network, compile_network(network)))
    return made


@pytest.fixture(scope="module")
def measured(folder: Path) -> dict[str, float]:
    """Milliseconds of each behind a host whose requests take 0.9 ms and whose link is slow."""
    mine = folder / "mine.toml"
    mine.write_text(
        host_file(host(9e-4, 200e6, 50e6, 1e-8, 500e6), "usb3").replace("scatter", "scatter")
    )
    times = {}
    for name in ("one", "two", "three"):
        rows = measure(folder / f"{name}.tflite", host=str(mine)).rows
        times[name] = next(row.milliseconds for row in rows if "CACHING" not in row.type)
    return {name: float(each or 0) for name, each in times.items()}


def test_the_command_writes_a_host_that_gives_the_same_times(
    folder: Path, measured: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "desk.toml"
    words = [f"{folder / name}.tflite={ms}" for name, ms in measured.items()]
    assert run_command_line(["calibrate", *words, "--output", str(output), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "pass"
    assert report["mean_error"] < 0.02
    assert report["parameters"]["fixed_seconds"]["value"] == pytest.approx(9e-4, rel=0.1)
    link = timing.host_link(str(output))
    assert link.name == "desk" and link.on_request == timing.host_link("usb3").on_request
    rows = measure(folder / "two.tflite", host=str(output)).rows
    row = next(row for row in rows if "CACHING" not in row.type)
    assert row.milliseconds == pytest.approx(measured["two"], rel=0.05)
    assert row.least_milliseconds is not None and row.most_milliseconds is not None
    assert row.least_milliseconds < measured["two"] < row.most_milliseconds
    assert run_command_line(["calibrate", *words]) == 0
    out = capsys.readouterr().out
    assert "fixed: 0." in out and " ms (" in out and "MHz" in out


def test_a_csv_and_the_command_line_go_together(
    folder: Path, measured: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "times.csv").write_text(
        f"model,ms\none.tflite,{measured['one']}\n\ntwo.tflite,{measured['two'] * 0.99}\n"
        f"two.tflite,{measured['two'] * 1.01}\n"
    )
    words = ["calibrate", f"{folder}/three.tflite={measured['three']}"]
    assert run_command_line([*words, "--times", str(folder / "times.csv"), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows.keys() == {"one.tflite", "two.tflite", "three.tflite"}
    assert rows["two.tflite"]["measured"] == pytest.approx(measured["two"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one.tflite"], "one.tflite: give MODEL=MS"),
        (["times.csv"], "milliseconds; or --times times.csv"),
        (["=3"], "=3: give MODEL=MS"),
        (["one.tflite=fast"], "'fast' is no time in milliseconds"),
        (["one.tflite=-1"], "'-1' is no time"),
        (["one.tflite=inf"], "'inf' is no time"),
        (["one.tflite=1e-320", "two.tflite=1"], "'1e-320' is no time"),
        (["one.tflite=1e300", "two.tflite=1"], "'1e300' is no time"),
        (["one.tflite=1"], "1 model measured: give two or more"),
        (["one.tflite=1", "one.tflite=2"], "1 model measured: give two or more"),
        (["one.tflite=1", "./one.tflite=2"], "1 model measured: give two or more"),
        (["one.tflite=1", "gone.tflite=2"], "gone.tflite"),
        (["one.tflite=1", "two.tflite=2", "--base", "usb5"], "neither a TOML file nor one of"),
        (["one.tflite=1", "two.tflite=2", "--base", "harness"], "the harness's link belongs to"),
    ],
)
def test_what_is_wrong_is_said(
    folder: Path,
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert run_command_line(["calibrate", *words]) == 2
    captured = capsys.readouterr()
    assert message in " ".join((captured.out + captured.err).split())


@pytest.mark.parametrize(
    "lines",
    [
        "one.tflite;{one}\ntwo.tflite;{two}\n",
        "\ufeffmodel;ms\none.tflite;{one}\ntwo.tflite;{two}\n",
        "one.tflite\t{one}\ntwo.tflite\t{two}\n",
        "one.tflite;{one}\rtwo.tflite;{two}\r",
    ],
)
@pytest.mark.parametrize("comma", [True, False])
def test_a_csv_may_have_semicolons_and_decimal_commas(
    folder: Path, measured: dict[str, float], lines: str, comma: bool
) -> None:
    text = lines.format(**measured)
    text = text.replace("0.9", "0,9") if comma else text
    (folder / "semicolons.csv").write_text(text, encoding="utf-8")
    found = times_of_csv(folder / "semicolons.csv")
    assert found == {str(folder / f"{name}.tflite"): [measured[name]] for name in ("one", "two")}


def test_a_heading_may_be_longer_than_the_name_of_a_file(
    folder: Path, measured: dict[str, float]
) -> None:
    lines = "".join(f"{name}.tflite,{ms}\n" for name, ms in measured.items())
    (folder / "long.csv").write_text("model" * 100 + ",ms\n" + lines)
    assert len(times_of_csv(folder / "long.csv")) == len(measured)


@pytest.mark.parametrize("text", ["", "model,ms\n", "one.tflite 2.3\n"])
def test_a_csv_without_times_is_named(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "times.csv").write_text(text)
    assert run_command_line(["calibrate", "--times", str(tmp_path / "times.csv")]) == 2
    assert "times.csv: has no time: give a model" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one.tflite;1.234,5\ntwo.tflite;2\n", "line 1: '1.234.5' is no time"),
        ("one.tflite,2 ms\ntwo.tflite,2\n", "line 1: '2 ms' is no time"),
        ("one.tflite,1\n" + "x" * (1 << 18), "line 2: field larger than field limit"),
    ],
    ids=["thousands", "unit", "long"],
)
def test_a_line_that_cannot_be_read_is_no_heading(
    folder: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first line of a model was left out without a word."""
    (folder / "wrong.csv").write_text(text)
    assert run_command_line(["calibrate", "--times", str(folder / "wrong.csv")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_the_description_replaces_no_model_of_a_csv(
    folder: Path, measured: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    """The CSV alone is on the command line."""
    model = folder / "one.tflite"
    before = model.read_bytes()
    (folder / "own.csv").write_text("".join(f"{k}.tflite,{v}\n" for k, v in measured.items()))
    words = ["calibrate", "--times", str(folder / "own.csv"), "--output", str(model)]
    assert run_command_line(words) == 2
    assert "would replace a model that" in " ".join(capsys.readouterr().err.split())
    assert model.read_bytes() == before


TIMES_OFF = {"one": 1, "two": 2, "three": 4}


def test_a_poor_fit_is_a_mismatch(
    folder: Path, measured: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    times = {name: measured[name] * factor for name, factor in TIMES_OFF.items()}
    words = ["calibrate", *(f"{folder}/{name}.tflite={ms}" for name, ms in times.items())]
    assert run_command_line([*words, "--json"]) == 1
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["verdict"] == "mismatch", report["message"]
    assert report["at_most"] == 0.15
    assert "poor fit, beyond 15 % on average" in captured.err
    assert run_command_line([*words, "--at-most", "100000"]) == 0
    assert run_command_line(words) == 1
    assert "again, or leave it out" in " ".join(capsys.readouterr().out.split())
    two = [f"{folder}/{name}.tflite={ms}" for name, ms in (("one", 1), ("two", 2))]
    assert run_command_line(["calibrate", *two]) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [("a.tflite", "line 2: give a model"), ("a,b,c", "line 2: give"), ("a,b", "'b' is no time")],
)
def test_a_wrong_line_of_a_csv_is_named(
    line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "times.csv").write_text(f"model,ms\n{line}\n")
    assert run_command_line(["calibrate", "--times", str(tmp_path / "times.csv")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_host_file_says_what_was_fitted(folder: Path, measured: dict[str, float]) -> None:
    times = {str(folder / f"{name}.tflite"): [ms] for name, ms in measured.items()}
    report, link = calibrate_host(times, "usb3", "beagle-max")
    assert report.verdict is Verdict.PASS
    path = folder / "again.toml"
    path.write_text(host_file(link, "usb3"))
    again = timing.host_link(str(path))
    assert replace(again, name=link.name) == link
    assert link.correlations
    with pytest.raises(InputError, match="give two or more"):
        calibrate_host({}, "usb3", "beagle-max")


def test_a_host_file_holds_whatever_it_extends(
    folder: Path, measured: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {str(folder / f"{name}.tflite"): [ms] for name, ms in measured.items()}
    _, link = calibrate_host(times, "usb3", "beagle-max")
    monkeypatch.chdir(folder)
    base = 'desk "1".toml'
    (folder / base).write_text(host_file(link, "usb3"))
    unrelated = replace(link, correlations=())
    (folder / "again.toml").write_text(host_file(unrelated, base))
    assert replace(timing.host_link("again.toml"), name=link.name) == unrelated


def test_a_host_file_names_its_base_from_its_own_folder(
    folder: Path, measured: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases" / "base.toml").write_text('extends = "usb2"\n')
    (tmp_path / "hosts").mkdir()
    words = [f"{folder / name}.tflite={ms}" for name, ms in measured.items()]
    given = ["--base", "bases/base.toml", "--output", "hosts/desk.toml"]
    assert run_command_line(["calibrate", *words, *given]) == 0
    assert 'extends = "../bases/base.toml"' in (tmp_path / "hosts" / "desk.toml").read_text()
    assert timing.host_link("hosts/desk.toml").name == "desk"


def test_times_that_no_host_has_are_refused(folder: Path, measured: dict[str, float]) -> None:
    first, *others = (str(folder / f"{name}.tflite") for name in measured)
    times = {first: [1e8], **{each: [1e-6] for each in others}}
    with pytest.raises(InputError, match=r"by \w+: .*; are all of them milliseconds"):
        calibrate_host(times, "usb3", "beagle-max")


def test_the_times_of_a_run_need_no_more_runs_than_they_must(
    folder: Path, measured: dict[str, float]
) -> None:
    asked: list[int] = []

    def progress(description: str, done: int, total: int | None) -> None:
        assert description and total is None
        asked.append(done)

    times = {str(folder / f"{name}.tflite"): [ms] for name, ms in measured.items()}
    calibrate_host(times, "usb3", "beagle-max", progress=progress)
    assert asked == list(range(1, len(asked) + 1))
    assert len(asked) <= 3 * 2 * 6 * len(times)
