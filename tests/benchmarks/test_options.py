"""What was asked for wrongly is said in a line, and how busy the machine is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import common, cores, many_inputs

NOWHERE = "/nowhere/at/all"
Call = Callable[..., int]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("many_inputs", "--inputs", "-3"), "-3 is less than 1"),
        (("cores", "--inputs", "0"), "0 is less than 1"),
        (("timing", "--repeat", "0"), "0 is less than 1"),
        (("evaluate", "--jobs", "1,0"), "0 is less than 1"),
        (("regress", "--tasks", "0"), "0 is less than 1"),
        (("against", "no-such-commit"), "no commit no-such-commit with the folders"),
        (("hazards", NOWHERE), f"no file {NOWHERE}"),
        (("layers", NOWHERE), f"no file {NOWHERE}"),
    ],
)
def test_what_cannot_be_is_refused_by_options(
    call: Call, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert call(*words) == 2
    told = capsys.readouterr()
    assert said in told.err.splitlines()[-1]
    assert not told.out


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (("classifiers",), "mobilenet_v1_0.25_128_quant, "),
        (("detection",), "sample dense, sample convolution, "),
        (("evaluate",), "mobilenet_v1_0.5_160_quant, "),
        (("layers",), "are: tiny_edgetpu.tflite"),
        (("oracle",), "are: tiny"),
        (("record.__main__",), "sample: load, "),
        (("speed",), ", "),
        (("whole_models",), "dense_256, "),
    ],
)
def test_a_selection_of_nothing_says_what_there_is(
    call: Call,
    capsys: pytest.CaptureFixture[str],
    small_corpus: Path,
    words: tuple[str, ...],
    there: str,
) -> None:
    assert call(*words, "--only", "nothing like this") == 2
    told = capsys.readouterr()
    (line,) = told.err.splitlines()
    assert line.startswith("none is called 'nothing like this'; there are: ") and there in line
    assert not told.out


def test_a_commit_is_compared_by_models_that_are_listed(
    call: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = subprocess.CompletedProcess((), 0, "formats\nsim\ntestbench\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: listed)
    assert call("against", "OLD", "--only", "mobilenet_v1_0.25") == 2
    assert "mobilenet_v2_1.0_224_quant" in capsys.readouterr().err
    assert call("against", "--help") == 0
    assert "mobilenet_v2_1.0_224_quant" in capsys.readouterr().out


def test_how_busy_the_machine_was_is_said(
    call: Call,
    capsys: pytest.CaptureFixture[str],
    small_corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (2.04, 1.0, 0.5))
    lifted = many_inputs.Result(1.0, 1.0, 1.0, 1.0, equal=True, peak=1)
    both = {cores: cores.Result(1.0, 1.0, 1.9, 1.9, equal=True), many_inputs: lifted}
    for bench, result in both.items():
        monkeypatch.setattr(
            bench,
            "alone",
            lambda function, *_, result=result: None if function is many_inputs.litert else result,
        )
        assert call(bench.__name__.partition(".")[2], "tiny") == 0
        first = capsys.readouterr().out.splitlines()[0]
        assert first == f"{common.machine()}; load before: 2.0, 1.0, 0.5"


def test_a_page_that_is_written_is_named(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    target = tmp_path / "page.html"
    common.write_page(target, b"page")
    assert target.read_bytes() == b"page"
    assert capsysbinary.readouterr().out.decode() == f"{target} is written: 4 bytes\n"
    common.write_page("-", b"page")
    assert capsysbinary.readouterr().out == b"page"
