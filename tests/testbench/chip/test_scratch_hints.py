"""Hints that send scratch which nothing has written, found without a run and by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from darwinn_formats.darwinn import (
    Description,
    DmaDescriptorHint,
    DmaHint,
    DmaHints,
    Executable,
    Meta,
    load,
)
from darwinn_formats.darwinn.schema import Direction
from darwinn_testbench.chip.dma_check import check_dma
from darwinn_testbench.chip.scratch_hints import sent_too_early, warnings_of
from darwinn_testbench.cli.application import run_command_line
from hypothesis import given
from hypothesis import strategies as st
from strangers import stranger

MERGED = "yolov8n_full_integer_quant"
SIZE = 12

Step = tuple[bool, int, int]


def executable_of(steps: list[Step]) -> Executable:
    """Hints that send (True) or take scratch at an offset."""
    meta = Meta(desc=Description.BASE_ADDRESS_SCRATCH)
    hints = tuple(
        DmaHint(
            direction=Direction.INFEED if sends else Direction.OUTFEED,
            any_hint=DmaDescriptorHint(meta=meta, offset_in_bytes=at, size_in_bytes=size),
        )
        for sends, at, size in steps
    )
    return Executable(dma_hints=DmaHints(hints=hints))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, SIZE), st.integers(1, SIZE)), max_size=8))
def test_bytes_are_written_before_they_are_sent(steps: list[Step]) -> None:
    """Against a model that knows each byte."""
    written: set[int] = set()
    expected = None
    for number, (sends, at, size) in enumerate(steps):
        touched = set(range(at, at + size))
        if not sends:
            written |= touched
        elif touched - written:
            expected = (number, size, len(touched - written))
            break
    found = sent_too_early(executable_of(steps))
    assert (found and (found.hint, found.size, found.unwritten)) == expected


def test_a_run_shows_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    path = stranger(MERGED)
    (row, *_) = check_dma(path).rows
    assert row.comparison is not None and row.comparison.merged is not None
    found = sent_too_early(load(path).executables[0])
    assert found is not None
    merged = row.comparison.merged
    assert (found.hint, found.unwritten) == (merged.index, merged.against)
    for command in ("inspect", "explain"):
        assert run_command_line([command, str(path)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "DMA hint 5 sends 512,000 bytes of scratch" in shown
    assert warnings_of(path) == [f"{path.name}: {found}"]


def test_other_executables_send_what_is_written(corpus: Path) -> None:
    paths = sorted((corpus / "darwinn").iterdir())
    assert paths
    found = [text for path in paths for text in warnings_of(path)]
    assert found == []


@pytest.mark.parametrize("word", ["", "application.py", "missing.tflite", "x" * 5000, "a\0.tflite"])
def test_words_of_a_command_that_are_no_models_are_left_alone(word: str) -> None:
    assert warnings_of(Path(word)) == []
