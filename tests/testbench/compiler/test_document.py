"""The listings in docs/sample.md are those of the sample."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from darwinn_testbench.chip.disassembly import disassemble
from sample_files import sample

PAGE = Path(__file__).parents[3] / "docs" / "sample.md"
LISTING = re.compile(r"(<!-- convolution -->\n)?```\n( {2,}\d+  .*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def listings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("sample")
    sample(folder)
    return {
        name: disassemble(folder / f"{name}_edgetpu.tflite", executable=0).rows[0].text
        for name in ("dense", "convolution")
    }


def instructions(text: str) -> list[str]:
    """The instructions of a listing, each with its indented lines."""
    return re.split(r"\n(?= {0,6}\d)", text.rstrip("\n"))


def test_every_instruction_on_the_page_is_in_the_program(listings: dict[str, str]) -> None:
    blocks = LISTING.findall(PAGE.read_text())
    assert len(blocks) > 8
    for convolution, block in blocks:
        program = instructions(listings["convolution" if convolution else "dense"])
        for shown in instructions(block):
            assert any(each.startswith(shown) for each in program), shown
