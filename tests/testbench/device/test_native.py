"""Libraries in C: built once from their sources, or refused with what to install."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest
from darwinn_testbench.device import native
from darwinn_testbench.errors import Unavailable

ANSWER = """
#include "answer.h"
__attribute__((visibility("default"))) int answer(void) { return ANSWER; }
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a source, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "answer.c").write_text(ANSWER)
    return folder


def build(sources: Path, answer: int) -> Path:
    headers = {"answer.h": f"#define ANSWER {answer}\n"}
    return native.library(sources, "libanswer.so.1", headers=headers)


def needs_compiler() -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")


def test_a_library_is_built_once_for_each_source(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_compiler()
    first, second = build(sources, 42), build(sources, 43)
    assert [ctypes.CDLL(str(path)).answer() for path in (first, second)] == [42, 43]
    assert first.name == "libanswer.so.1"
    assert list(first.parent.iterdir()) == [first]
    monkeypatch.setenv("CC", "there-is-no-such-compiler")
    assert build(sources, 42) == first
    (sources / "answer.c").write_text(ANSWER + "\n")
    with pytest.raises(Unavailable):
        build(sources, 42)


def test_without_a_compiler_it_is_said_what_to_install(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "there-is-no-such-compiler")
    with pytest.raises(Unavailable, match=r"libanswer\.so\.1 with: apt-get install gcc libc6-dev"):
        build(sources, 42)


def test_what_the_compiler_says_is_handed_on(sources: Path) -> None:
    needs_compiler()
    (sources / "answer.c").write_text("this is no C\n")
    with pytest.raises(Unavailable, match=r"libanswer\.so\.1 cannot be built: .*error"):
        build(sources, 42)
    assert not list((sources.parent / "cache").rglob("libanswer*"))


def test_the_compiler_s_command_may_have_arguments(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_compiler()
    monkeypatch.setenv("CC", "env cc -DUNUSED")
    assert ctypes.CDLL(str(build(sources, 42))).answer() == 42


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("false --quiet", r"cannot be built: false --quiet: status 1, without a word"),
        ("'cc", 'CC is no command: "\'cc": No closing quotation'),
        ("", "no C compiler .CC is empty. to build"),
        ("there-is-none -m64", "no C compiler .there-is-none -m64. to build"),
    ],
)
def test_why_a_compiler_cannot_be_used_is_said(
    sources: Path, monkeypatch: pytest.MonkeyPatch, command: str, reason: str
) -> None:
    monkeypatch.setenv("CC", command)
    with pytest.raises(Unavailable, match=reason):
        build(sources, 42)
