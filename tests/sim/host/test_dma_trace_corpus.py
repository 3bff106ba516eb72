"""Every real executable issues the DMA that its hints announce, wherever its buffers are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import Buffer, Executable, load
from darwinn_sim import accelerator
from darwinn_sim.host.buffers import buffer_sizes, layer_bytes
from darwinn_sim.host.dma_trace import DmaComparison, compare_with_hints
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.memory import PAGE_BYTES
from darwinn_sim.host.mmu import EXTENDED_BIT


def executables(corpus: Path) -> Iterator[tuple[str, Executable]]:
    for file in sorted((corpus / "darwinn").glob("*.tflite")):
        for executable in load(file).executables:
            yield f"{file.name} {executable.type.name}", executable


def run(executable: Executable, *, seed: int = 0) -> DmaComparison:
    """Run the scalar core and its DMA, in strict mode: nothing unwritten may be read."""
    chip = accelerator.Accelerator(dma_only=True, strict=True, seed=seed)
    random = np.random.default_rng(seed)
    inputs = {
        layer.name: random.bytes(layer_bytes(layer) * max(1, executable.batch_size))
        for layer in executable.input_layers
    }
    result = chip.run(executable, inputs)
    return compare_with_hints(executable.dma_hints, result.transfers)


def differences(name: str, comparison: DmaComparison) -> list[str]:
    return [
        f"{name} {row.index}: {row.hint and row.hint.text()} / {row.issued and row.issued.text()}"
        for row in comparison.rows
        if not row.equal
    ]


def test_every_executable_equals_its_hints(corpus: Path) -> None:
    compared = 0
    found: list[str] = []
    for name, executable in executables(corpus):
        comparison = run(executable)
        found += differences(name, comparison)
        hints = executable.dma_hints
        assert len(comparison.rows) - comparison.beyond_hints == len(hints.hints) > 0, name
        assert comparison.beyond_hints == 0 or not hints.fully_deterministic, name
        compared += 1
    assert not found
    assert compared > 0


def test_fences_await_any_value_of_their_flag(wild: Path) -> None:
    """YOLOv8's await 365 and 6461, where others await 0: as many are issued as announced."""
    (executable, *_) = load(wild / "darwinn/yolov8n_full_integer_quant_edgetpu.tflite").executables
    rows = run(executable).rows
    announced = [row.hint for row in rows if row.hint and row.hint.text() == "fence"]
    issued = [row.issued for row in rows if row.issued and row.issued.text() == "fence"]
    assert len(announced) == len(issued) > 1


def across(executable: Executable, boundary: int) -> Callable[[Buffer, int], int | None]:
    """Puts the middle of the executable's largest buffer at a boundary of the address words.

    Device addresses keep the page offset 0xf40 (a real client's buffer began there), so that
    descriptors straddle the boundary, too.
    """
    sizes = buffer_sizes(executable)
    largest = max(sizes, key=lambda buffer: sizes[buffer])
    middle = sizes[largest] // 2 // PAGE_BYTES * PAGE_BYTES
    start = EXTENDED_BIT | boundary - middle - PAGE_BYTES + 0xF40

    def place(buffer: Buffer, _: int) -> int | None:
        return start if buffer == largest else None

    return place


@pytest.mark.parametrize("boundary", [1 << 31, 1 << 32])
def test_hints_hold_where_address_words_carry(
    corpus: Path, boundary: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    for name, executable in executables(corpus):
        driver = partial(Driver, simple_entries=4608, place=across(executable, boundary))
        monkeypatch.setattr(accelerator, "Driver", driver)
        found += differences(name, run(executable, seed=1))
    assert not found
