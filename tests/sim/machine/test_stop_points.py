"""Where a run can be stopped: at each bundle at which an instruction begins, and nowhere else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import averaging_program as sample
import pytest
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.machine.examine import Memory, StopPoint, Tap
from darwinn_sim.machine.observer import Observer, Wanted
from darwinn_sim.units import scalar_core
from darwinn_sim.units.observation import new_notebook
from hypothesis import given
from hypothesis import strategies as st

SPLIT = 20


def observer(wanted: Wanted) -> Observer:
    accelerator = Accelerator()
    program = accelerator.load(sample.executable(split=SPLIT))
    return Observer(accelerator.chip.core, program, wanted)


def test_bundles_at_which_a_run_stops() -> None:
    """A chunk is its program between LoadProgram, and a halt, bundles without effect, Execute."""
    accelerator = Accelerator()
    program = accelerator.load(sample.executable(split=SPLIT))
    names = [name for name, _ in sample.operations()]
    begin = 0
    for chunk, part in enumerate((names[:SPLIT], names[SPLIT:])):
        framed = ["LoadProgram", *part, "Halt", *["Scalar"] * 4, "Execute"]
        starts = {0}
        for name in framed:
            starts.add(max(starts) + BY_NAME[name].bundles)
        bundles = max(starts)
        starts.remove(bundles)
        for pc in range(-1, bundles + 2):
            wanted = Wanted(until=StopPoint(chunk, pc))
            if pc in starts:
                found = Observer(accelerator.chip.core, program, wanted)
                assert found.stop_pc == begin + pc
                continue
            text = f"no instruction starts at bundle {pc} of chunk {chunk}"
            with pytest.raises(ValueError, match=text):
                Observer(accelerator.chip.core, program, wanted)
        begin += bundles
    with pytest.raises(ValueError, match="there is no chunk 2: chunks are 0 to 1"):
        Observer(accelerator.chip.core, program, Wanted(until=StopPoint(2, 0)))


def test_a_run_that_is_not_stopped() -> None:
    assert observer(Wanted()).stop_pc == scalar_core.NOWHERE
    assert observer(Wanted(until=StopPoint(layer=0))).stop_pc == scalar_core.NOWHERE


def test_layers_that_are_there() -> None:
    observer(Wanted(taps=[Tap(layer=0)]))
    for wanted in (Wanted(until=StopPoint(layer=1)), Wanted(taps=[Tap(layer=1)])):
        with pytest.raises(ValueError, match=r"no layer 1 in the program: layers are 0 to 0"):
            observer(wanted)
    accelerator = Accelerator()
    program = accelerator.load(sample.executable(sample.without("TensorSum")))
    with pytest.raises(ValueError, match="no layer 0 in the program: it has none"):
        Observer(accelerator.chip.core, program, Wanted(until=StopPoint(layer=0)))


def test_no_words_are_tapped_where_none_are_computed() -> None:
    noting: Any = SimpleNamespace(seen=new_notebook())
    observer(Wanted(noting=noting))
    with pytest.raises(ValueError, match="a run on identities or marks has no words of layers"):
        observer(Wanted(taps=[Tap(layer=0)], noting=noting))


SIZES: dict[Memory, int] = {
    "narrow": chip.NARROW_BYTES,
    "wide": chip.WIDE_ROWS,
    "scalar": 4 * chip.SCALAR_MEMORY_WORDS,
}


@given(st.sampled_from(sorted(SIZES)), st.integers(0, 15), st.data())
def test_a_tap_can_be_read_back(memory: Memory, tile: int, data: st.DataObject) -> None:
    unit = chip.ROW_BYTES if memory == "wide" else 1
    start = data.draw(st.integers(0, SIZES[memory] - 1))
    end = data.draw(st.one_of(st.just(SIZES[memory]), st.integers(start + 1, SIZES[memory])))
    tap = Tap(memory, 0 if memory == "scalar" else tile, start * unit, end * unit)
    assert Tap.parse(str(tap)) == tap
    assert Tap.parse(str(Tap(layer=tile))) == Tap(layer=tile)
    assert str(Tap(layer=tile)) == f"layer:{tile}"


@pytest.mark.parametrize("memory", sorted(SIZES))
def test_a_tap_is_within_its_memory(memory: Memory) -> None:
    place = memory if memory == "scalar" else f"{memory}:0"
    for start, end in ((SIZES[memory], SIZES[memory] + 1), (3, 3), (4, 3), (0, SIZES[memory] + 1)):
        with pytest.raises(ValueError, match=f"are no range of {memory} memory"):
            Tap.parse(f"{place}:{start}:{end}")
    with pytest.raises(ValueError, match="there is no tile 16: tiles are 0 to 15"):
        Tap.parse("narrow:16:0:4")
