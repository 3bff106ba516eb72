"""The command that shows each point of the other formats with its figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from darwinn_reference.iree.import_history import RELEASES

from benchmarks.conformance import iree_releases
from benchmarks.other_formats import __main__ as command
from benchmarks.other_formats import comparison_points, execution_points, iree_points
from benchmarks.other_formats.figure import Counted, Figure, MissingError, Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """No release can be installed."""
    return Settings(tmp_path / "cache", tmp_path, (), None, 1)


@pytest.fixture
def no_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (iree_releases, iree_points):
        monkeypatch.setattr(module, "installed", lambda release, folder: None)
    monkeypatch.setattr("benchmarks.other_formats.figure.installed", lambda *_: None)
    monkeypatch.setattr(iree_points, "published", list)


def test_all_pairs_are_compared_without_iree(settings: Settings, no_releases: None) -> None:
    left_out, *figures = comparison_points.pairs(settings)
    assert "pip cannot install it" in left_out.value
    assert [(each.value, each.kept) for each in figures] == [("6 of 6", True)] * 3


def test_a_planted_weight_that_nobody_sees_is_a_figure_that_is_not_kept(
    settings: Settings, no_releases: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_points, "planted", lambda by: comparison_points.NETWORK)
    *_, planted = comparison_points.pairs(settings)
    assert (planted.value, planted.kept) == ("0 of 6", False)
    assert ".pte by .bef: pass" in planted.notes


def test_generated_inputs_have_their_figures(settings: Settings) -> None:
    figures = list(comparison_points.inputs(settings))
    assert [each.value for each in figures] == ["3 of 3", "64x3, 32x2", "its own cases", "names it"]
    assert all(each.kept for each in figures)


def test_what_is_not_there_is_named_and_the_rest_goes_on(
    capsys: pytest.CaptureFixture[str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(asked: Settings) -> Iterator[Figure]:
        yield Figure("first", "1 of 2", kept=False, notes=["why"])
        raise MissingError("the wheel of that")

    def there(asked: Settings) -> Iterator[Figure]:
        yield Counted([], 3).figure("second")

    point = command.Point("a point", [absent, there])
    monkeypatch.setattr(command, "POINTS", {1: point})
    assert [each.value for each in command.measured(1, settings)] == ["1 of 2", "3 of 3"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "1. a point"
    assert printed[1].split() == ["first", "1", "of", "2", "NOT", "KEPT"]
    assert printed[2:4] == ["      why", "   not there: the wheel of that"]


def test_releases_and_suites_that_are_not_there_are_named(
    settings: Settings, no_releases: None, tmp_path: Path
) -> None:
    with pytest.raises(MissingError, match=r"IREE's compilers 20231004\.665 to 3\."):
        list(iree_points.releases(settings))
    for part in (iree_points.unsigned, iree_points.bfloat16, iree_points.parameters):
        with pytest.raises(MissingError, match="pip cannot install it"):
            list(part(settings))
    with pytest.raises(MissingError, match="--tfrt DIR"):
        list(execution_points.suites(settings))


@pytest.mark.parametrize(
    ("outcomes", "whole"),
    [
        ({iree_releases.EQUAL: 33}, True),
        ({iree_releases.EQUAL: 27, iree_releases.UNMADE: 6}, True),
        ({iree_releases.THEIRS: 33}, True),
        ({iree_releases.EQUAL: 32, iree_releases.REFUSED: 1}, False),
        ({iree_releases.EQUAL: 32, iree_releases.DIFFERENT: 1}, False),
        ({iree_releases.UNMADE: 33}, False),
    ],
)
def test_a_release_runs_whole_if_nothing_of_it_fails_here(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, outcomes: Any, whole: bool
) -> None:
    def examined(releases: Any, *_: Any) -> Iterator[iree_releases.Row]:
        for release in releases:
            row = iree_releases.Row(release)
            row.outcomes.update(outcomes)
            yield row

    monkeypatch.setattr(iree_points, "examined", examined)
    monkeypatch.setattr(iree_points, "published", lambda: ["9.9.9"])
    *_, summary = iree_points.releases(settings)
    number = len(RELEASES[RELEASES.index(iree_points.FIRST) :]) + 1
    assert summary.value == f"{number if whole else 0} of {number}"
    assert summary.kept == whole


SUITE = """// RUN: bef_executor_lite -work_queue_type=mstd:8 %s.bef | FileCheck %s
func.func @main() -> i32 {
  %one = tfrt.constant.i32 1
  // expected-error @+1 {{something}}
  %two = tfrt.add.i32 %one, %one
  tfrt.return %two : i32
}
"""


def test_suites_are_run_with_their_options(settings: Settings, tmp_path: Path) -> None:
    for name, text in {
        "good": SUITE.replace("  // expected-error @+1 {{something}}\n", ""),
        "bad": SUITE,
        "foreign": SUITE.replace(
            "tfrt.add.i32 %one, %one", '"vendor.kernel"(%one) : (i32) -> i32'
        ).replace("  // expected-error @+1 {{something}}\n", ""),
        "other": SUITE.replace("bef_executor_lite", "tfrt_opt"),
    }.items():
        (tmp_path / f"{name}.mlir").write_text(text)
    asked = Settings(settings.cache, tmp_path, (), tmp_path, 1)
    (figure,) = execution_points.suites(asked)
    assert (figure.value, figure.kept) == ("1 of 3 pass, 1 refused by name", False)
    assert any("was not produced" in note for note in figure.notes)
    options = execution_points._options(["-work_queue_type=mstd:8", "%s.bef", "--functions", "a,b"])
    assert (options.threads, options.functions) == (8, ("a", "b"))
