"""Classes of records: their dtypes, and that a checker knows the fields that kernels name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from darwinn_sim.kernel.structure import Int16, Numbers, Record, Records, join
from numpy.typing import NDArray

ROOT = Path(__file__).parents[3]


class Entry(Record):
    """Of a queue."""

    number: int
    lanes: Int16


class Queue(Record, align=True):
    """One of each kind of field."""

    word: np.uint32
    words: Annotated[NDArray[np.uint32], 3]
    numbers: Annotated[Numbers, 5]
    entries: Annotated[Records[Entry], 2]
    grid: Annotated[Records[Records[Entry]], 2, 4]
    last: Entry


class Longer(Entry):
    """Has what it inherits first."""

    more: int


def test_a_dtype_has_the_fields_as_they_are_declared() -> None:
    assert Entry.dtype == np.dtype([("number", "i8"), ("lanes", "i2")])
    assert Longer.dtype == np.dtype([("number", "i8"), ("lanes", "i2"), ("more", "i8")])
    expected = [
        ("word", "u4"),
        ("words", "u4", (3,)),
        ("numbers", "i8", (5,)),
        ("entries", Entry.dtype, (2,)),
        ("grid", Entry.dtype, (2, 4)),
        ("last", Entry.dtype),
    ]
    assert Queue.dtype == np.dtype(expected, align=True)


def test_arrays_of_records_are_those_of_numpy() -> None:
    entries = Entry.zeros(2)
    entries["number"] = (1, 2)
    assert type(entries) is np.ndarray
    assert join([entries, Entry.zeros(1)])["number"].tolist() == [1, 2, 0]
    assert Queue.zeros(2, 3).shape == (2, 3)


KERNELS = """\
from darwinn_sim.kernel import instructions, state
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units.tables import Tables


def kernel(core: state.Core, tiles: Records[state.Tile], tables: Tables) -> None:
    {statement}
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("core.halted = 1", "core.haltet = 1"),
        ("tiles[0].units[1].first.address += 1", "tiles[0].units[1].first.adress += 1"),
        ("core.pc = tables.tensor[0].narrow_read.base", "core.pc = tables.tensor[0].narrow_reed"),
        (
            "core.pc = tables.mesh[tables.row[tiles[0].units[7].current]].immediate",
            "core.pc = tables.mesh[tables.row[tiles[0].units[7].current]].imediate",
        ),
        ("core.pc = tables.loop[0].body", "core.pc = tables.loop[0].bodies"),
    ],
)
def test_a_field_that_does_not_exist_is_an_error_of_the_checker(
    tmp_path: Path, right: str, wrong: str
) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    kernels = {name: tmp_path / f"{name}.py" for name in ("right", "wrong")}
    kernels["right"].write_text(KERNELS.format(statement=right))
    kernels["wrong"].write_text(KERNELS.format(statement=wrong))
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    checked = subprocess.run(
        [*command, *map(str, kernels.values())], cwd=ROOT, capture_output=True, text=True
    )
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1, checked.stdout + checked.stderr
    assert "wrong.py" in errors[0]
    assert "has no attribute" in errors[0]
