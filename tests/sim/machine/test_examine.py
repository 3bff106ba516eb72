"""Stop points and taps: what they accept, where runs stop, and what is copied out."""

from __future__ import annotations

from typing import Any

import averaging_program as sample
import pytest
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.machine.examine import StopPoint, Tap

IMAGE = sample.images()()
TILE = sample.TILE
NAMES = [name for name, _ in sample.operations()]


def bundle_of(name: str) -> int:
    """Bundle of the chunk at which the first instruction called ``name`` stands."""
    return 1 + sum(BY_NAME[n].bundles for n in NAMES[: NAMES.index(name)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("layer:0", StopPoint(layer=0)),
        ("layer:12", StopPoint(layer=12)),
        ("pc:0:17", StopPoint(chunk=0, pc=17)),
        ("pc:3:1", StopPoint(chunk=3, pc=1)),
    ],
)
def test_stop_points_are_read(text: str, expected: StopPoint) -> None:
    assert StopPoint.parse(text) == expected


@pytest.mark.parametrize("text", ["", "layer", "layer:-1", "pc:1", "pc:a:b", "layer:1 ", "17"])
def test_other_stop_points_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        StopPoint.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("layer:4", Tap(layer=4)),
        ("narrow:0:0:4", Tap("narrow", 0, 0, 4)),
        ("narrow:15:0x100:0x200", Tap("narrow", 15, 256, 512)),
        ("wide:3:10:12", Tap("wide", 3, 2560, 3072)),
        ("scalar:0:16", Tap("scalar", 0, 0, 16)),
        (f"narrow:1:0:{chip.NARROW_BYTES}", Tap("narrow", 1, 0, chip.NARROW_BYTES)),
    ],
)
def test_taps_are_read(text: str, expected: Tap) -> None:
    assert Tap.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "narrow:16:0:4",
        "narrow:0:4:4",
        "narrow:0:8:4",
        f"narrow:0:0:{chip.NARROW_BYTES + 1}",
        f"wide:0:0:{chip.WIDE_ROWS + 1}",
        f"scalar:0:{4 * chip.SCALAR_MEMORY_WORDS + 1}",
        "scalar:x:y",
        "narrow:0:0",
        "tape:1",
        "layer:x",
    ],
)
def test_other_taps_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Tap.parse(text)


def tapped(tap: str, until: str | None = None) -> tuple[Any, bool]:
    stop = StopPoint.parse(until) if until else None
    taps = [Tap.parse(tap)]
    result = Accelerator().run(sample.executable(), {"image": IMAGE}, until=stop, taps=taps)
    (found,) = result.tapped
    assert found.tap == taps[0]
    return found.data, result.stopped


def test_memory_taps_copy_what_is_there_at_the_end() -> None:
    row, stopped = tapped(f"wide:{TILE}:{sample.ROW}:{sample.ROW + 1}")
    assert row.tobytes() == IMAGE and not stopped
    first = sample.RESULT_BYTE
    narrow, _ = tapped(f"narrow:{TILE}:{first}:{first + sample.OUTPUT_BYTES}")
    assert narrow.tobytes() == sample.expected(IMAGE)


def test_a_layer_tap_copies_words_as_they_are_written() -> None:
    words, _ = tapped("layer:0")
    assert words["word"].tobytes() == sample.expected(IMAGE)
    assert set(words["tile"]) == {TILE} and set(words["count"]) == {4}
    assert words["address"].tolist() == list(range(sample.RESULT_BYTE, sample.RESULT_BYTE + 64, 4))
    assert set(words["instruction"]) == {NAMES.index("TensorSum") + 1}


@pytest.mark.parametrize("until", ["layer:0", f"pc:0:{bundle_of('NarrowToWide')}"])
def test_a_run_stops_when_what_was_issued_has_settled(until: str) -> None:
    """The layer is in narrow memory, and what comes after it has not begun."""
    first = sample.RESULT_BYTE
    place = f"narrow:{TILE}:{first}:{first + sample.OUTPUT_BYTES}"
    data, stopped = tapped(place, until)
    assert stopped and data.tobytes() == sample.expected(IMAGE)
    row, _ = tapped(f"wide:{TILE}:{sample.RESULT_ROW}:{sample.RESULT_ROW + 1}", until)
    assert not row.any()


def test_a_run_that_stops_before_a_layer_has_not_computed_it() -> None:
    until = f"pc:0:{bundle_of('TensorSum')}"
    words, stopped = tapped("layer:0", until)
    assert stopped and not len(words)
    row, _ = tapped(f"wide:{TILE}:{sample.ROW}:{sample.ROW + 1}", until)
    assert row.tobytes() == IMAGE


def test_a_stopped_run_gives_no_output_and_leaves_the_chip_usable() -> None:
    accelerator = Accelerator()
    for _ in range(2):
        stop = StopPoint(layer=0)
        result = accelerator.run(sample.executable(), {"image": IMAGE}, until=stop)
        assert result.stopped and result.outputs == {}
        whole = accelerator.run(sample.executable(), {"image": IMAGE})
        assert whole.outputs == {"averages": sample.expected(IMAGE)}


def test_taps_change_nothing() -> None:
    """More words than a tap buffer holds are taken out in parts; the result is the same."""
    taps = [Tap.parse("layer:0"), Tap.parse("scalar:0:64"), Tap.parse("narrow:0:0:4")]
    result = Accelerator().run(sample.executable(), {"image": IMAGE}, taps=taps)
    assert result.outputs == {"averages": sample.expected(IMAGE)}
    assert [entry.tap for entry in result.tapped] == taps
