"""Damaged ExecuTorch files: a FormatError or nothing, soon, and within the bound of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import executorch_files as files
import pytest
from damaged_files import MEGABYTES_64, changes, check, drawn_by_night, peak_memory
from darwinn_formats import executorch
from darwinn_formats.errors import FormatError

Load = Callable[[bytes], object]

SOURCES: dict[str, tuple[bytes, Load]] = {
    "program": (files.program_bytes(), executorch.load),
    "bundle": (files.bundle_bytes(), executorch.load),
    "data": (files.data_bytes(), executorch.load_data),
}


def damaged(data: bytes, values: int) -> Iterator[bytes]:
    """Every truncation, and ``values`` other values for every byte."""
    yield from (data[:end] for end in range(len(data)))
    yield from changes(data, values)


@pytest.mark.parametrize("name", SOURCES)
def test_changed_files_load_or_are_refused(name: str) -> None:
    data, load = SOURCES[name]
    # Most of the bundle is the program, which has been changed by itself.
    values = 1 if name == "bundle" else 3
    results = [check(load, changed) for changed in damaged(data, values)]
    assert any(results)
    assert not all(results)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SOURCES)
def test_every_byte_may_have_any_value(name: str) -> None:
    data, load = SOURCES[name]
    for changed in drawn_by_night(data):
        check(load, changed)


def test_what_loads_can_be_used_or_is_refused() -> None:
    """A changed program that loads does not make summary, listing or writer fail otherwise."""
    for changed in damaged(files.program_bytes(), 1):
        loaded = check(executorch.load, changed)
        if not isinstance(loaded, executorch.ProgramFile):
            continue
        try:
            executorch.describe(loaded)
        except FormatError as error:
            assert error.offset is not None
        assert list(executorch.disassemble(loaded))
        for plan in loaded.program.execution_plan:
            for value in plan.values:
                if isinstance(value.val, executorch.schema.Tensor):
                    data = loaded.data(value.val)
                    assert data is None or len(data) == value.val.size_bytes
        again = executorch.load(executorch.dump(loaded.program, loaded.segments))
        assert repr(again.program.execution_plan) == repr(loaded.program.execution_plan)


def test_a_real_program_in_pieces(corpus: Path) -> None:
    data = (corpus / "pte" / "g_cond.pte").read_bytes()
    for changed in damaged(data, 1):
        check(executorch.load, changed)


def test_memory_stays_within_its_bound(corpus: Path) -> None:
    data = (corpus / "pte" / "e_mbv2_int8.pte").read_bytes()
    assert peak_memory(executorch.load, data) < MEGABYTES_64 + 2 * len(data)
