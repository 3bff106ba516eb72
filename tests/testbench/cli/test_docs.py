"""`darwinn docs`: each page and section can be shown, and texts that name one name one there is."""

from __future__ import annotations

import re
from pathlib import Path

import darwinn_testbench
import pytest
from darwinn_testbench.cli import docs
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.cli.commands import SUMMARIES

FOLDER = Path(__file__).parents[3] / "docs"
LINK = re.compile(r"\(([a-z-]+)\.md#([^)]+)\)")
NAMED = re.compile(r"darwinn docs ([a-z][a-z/-]*)(?:#([\w-]+))?")


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_command_line(["docs", *words]) == 0
    return capsys.readouterr().out


def test_pages_are_listed_by_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys).splitlines()
    names = [line.split()[0] for line in lines]
    assert {"device", "timing", "field-failure", "tutorials/slow"} <= set(names)
    assert any(
        line.startswith("device ") and line.endswith("The chip as a device") for line in lines
    )


def test_a_page_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = (FOLDER / "device.md").read_text()
    for name in ("device", "device.md", "docs/device.md"):
        assert shown(capsys, name) == text
    assert shown(capsys, "slow") == (FOLDER / "tutorials" / "slow.md").read_text()
    assert shown(capsys, "--path", "device").strip() == str(FOLDER / "device.md")
    assert shown(capsys, "--path").strip() == str(FOLDER)


def test_every_section_that_is_linked_can_be_shown() -> None:
    """Links of the site are checked when it is built: they say which sections there are."""
    found = 0
    for page in FOLDER.glob("*.md"):
        for name, section in LINK.findall(page.read_text()):
            text = (FOLDER / f"{name}.md").read_text()
            if f'id="{section}"' in text:
                continue
            part = docs.section_of(text, section, name)
            assert part.startswith("#") and part in text
            found += 1
    assert found > 50


def test_a_section_ends_before_the_next_one_of_its_level(
    capsys: pytest.CaptureFixture[str],
) -> None:
    part = shown(capsys, "device#several-chips")
    assert part.startswith("## Several chips\n")
    assert part.count("\n## ") == 0
    whole = shown(capsys, "device#by-usb")
    assert "\n### Programs with libusb or PyUSB\n" in whole


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("devise", "no page 'devise' in the manual; near it: device"),
        ("nothing like it", "`darwinn docs` lists the pages"),
        ("device#several-chip", "no such section; it has several-chips"),
        ("../README", "no page '../README'"),
    ],
)
def test_what_is_not_there_is_said(
    capsys: pytest.CaptureFixture[str], topic: str, reason: str
) -> None:
    assert run_command_line(["docs", topic]) == 2
    assert reason in capsys.readouterr().err


def test_texts_name_pages_that_there_are() -> None:
    package = Path(str(darwinn_testbench.__file__)).parent
    pages = docs.pages_of(FOLDER)
    found = 0
    for source in package.rglob("*.py"):
        for name, section in NAMED.findall(source.read_text()):
            if source.name == "docs.py":
                continue
            assert name in pages, f"{source}: {name}"
            if section:
                docs.section_of(pages[name].read_text(), section, name)
            found += 1
    assert found > 10


@pytest.mark.parametrize("name", SUMMARIES)
def test_no_help_names_a_file_below_docs(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Who has installed a wheel has none; `accuracy` alone writes one."""
    assert run_command_line([name, "--help"]) == 0
    told = capsys.readouterr().out.replace("docs/accuracy.md", "")
    assert not re.search(r"docs/\S+\.md", told)


@pytest.mark.parametrize("words", [["timing"], ["--path"]])
def test_a_schema_is_no_page(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["docs", *words, "--schema", "project"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    name = "--path" if "--path" in words else "TOPIC"
    assert f"{name} is for pages; --schema project prints no page" in captured.err
