"""Libraries in C: built once from their sources, or refused with what to install."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.device import native
from darwinn_testbench.errors import InputError

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
    with pytest.raises(InputError):
        build(sources, 42)


def test_without_a_compiler_it_is_said_what_to_install(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "there-is-no-such-compiler")
    with pytest.raises(InputError, match=r"libanswer\.so\.1 with: apt-get install gcc libc6-dev"):
        build(sources, 42)


def test_what_the_compiler_says_is_handed_on(sources: Path) -> None:
    needs_compiler()
    (sources / "answer.c").write_text("this is no C\n")
    with pytest.raises(InputError, match=r"libanswer\.so\.1 cannot be built: .*error"):
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
    with pytest.raises(InputError, match=reason):
        build(sources, 42)


@pytest.fixture(params=["full", "read-only", "no-folder"])
def unusable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A place for the cache that cannot be written, and why it cannot."""
    place = tmp_path / "unusable"
    if request.param == "no-folder":
        place.touch()
        yield place, "Not a directory"
        return
    place.mkdir()
    options, reason = {
        "full": ("size=4k", "No space left on device"),
        "read-only": ("ro", "Read-only file system"),
    }[request.param]
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    if request.param == "full":
        (place / "file").write_bytes(bytes(4096))
    yield place, reason
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("front_end", [["device", "--usb", "--"], ["delegate", "--"]])
def test_a_cache_folder_that_cannot_be_written_is_said(
    unusable: tuple[Path, str],
    front_end: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    needs_compiler()
    place, reason = unusable
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    assert run_command_line([*front_end, "true"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    assert f"cannot be built in the cache folder {place}/darwinn-testbench/native/" in line
    assert line.endswith("make room there, or let XDG_CACHE_HOME name another folder")
