"""Damaged ExecuTorch files: a FormatError or nothing, soon, and within the bound of memory."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import executorch_files as files
import pytest
from darwinn_formats import executorch
from darwinn_formats.errors import FormatError

SECONDS = 1.0
MEGABYTES_64 = 64 * 2**20
SEED = 20

Load = Callable[[bytes], object]

SOURCES: dict[str, tuple[bytes, Load]] = {
    "program": (files.program_bytes(), executorch.load),
    "bundle": (files.bundle_bytes(), executorch.load),
    "data": (files.data_bytes(), executorch.load_data),
}


def changes(data: bytes, each: int) -> Iterator[bytes]:
    """Every truncation, and ``each`` random values for every byte."""
    yield from (data[:end] for end in range(len(data)))
    source = random.Random(SEED)
    for place in range(len(data)):
        for value in source.sample(range(256), each):
            yield data[:place] + bytes([value]) + data[place + 1 :]


def check(load: Load, data: bytes) -> object | None:
    """The loaded file, or None if it was refused as it should be."""
    begin = time.perf_counter()
    try:
        return load(data)
    except FormatError as error:
        assert error.offset is not None
        assert 0 <= error.offset <= len(data)
        assert error.field
        assert "\n" not in str(error)
        return None
    finally:
        assert time.perf_counter() - begin < SECONDS


@pytest.mark.parametrize("name", SOURCES)
def test_changed_files_load_or_are_refused(name: str) -> None:
    data, load = SOURCES[name]
    results = [check(load, changed) for changed in changes(data, 3)]
    assert any(results)
    assert not all(results)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SOURCES)
def test_every_byte_may_have_every_value(name: str) -> None:
    data, load = SOURCES[name]
    for changed in changes(data, 256):
        check(load, changed)


def test_what_loads_can_be_used_or_is_refused() -> None:
    """A changed program that loads does not make summary, listing or writer fail otherwise."""
    for changed in changes(files.program_bytes(), 1):
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
    for changed in changes(data, 1):
        check(executorch.load, changed)


def test_memory_stays_within_its_bound(corpus: Path) -> None:
    data = (corpus / "pte" / "e_mbv2_int8.pte").read_bytes()
    tracemalloc.start()
    try:
        executorch.load(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEGABYTES_64 + 2 * len(data)
