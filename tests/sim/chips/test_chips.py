"""A chip is one record: what it may be, who takes its values, and which one a process simulates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import darwinn_rtl
import darwinn_sim
import pytest
from darwinn_formats import toml
from darwinn_formats.errors import FormatError
from darwinn_rtl.build import Design
from darwinn_sim import chip
from darwinn_sim.chips import document
from darwinn_sim.chips.description import BUILT_IN, ChipDescription, read_chip
from darwinn_sim.chips.quantities import read_table
from darwinn_sim.kernel import compiled

ROOT = Path(__file__).parents[3]


def with_values(folder: Path, base: str = "harness", /, **values: object) -> Path:
    """A description that extends ``base``."""
    rules = ChipDescription.parameters()
    lines = [f'extends = "{base}"']
    for name, value in values.items():
        lines += [f"[{name}]", f"value = {value}", f'unit = "{rules[name].unit}"']
        lines += ['source = "a test"', 'confidence = "low"']
    path = folder / "mine.toml"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        ({"grid_rows": 64}, "grid_rows", "not within 1 to 16: sets of tiles in instructions have"),
        ({"grid_columns": 5}, "grid_columns", "4 x 5 tiles: sets of tiles in instructions have 16"),
        ({"lanes": 32}, "lanes", "32 is not 64, as on every chip: the 6-bit fields of"),
        ({"narrow_bytes": 65_538}, "narrow_bytes", "not a multiple of 4: instructions have 18"),
        ({"activation_units": 96}, "activation_units", "not a power of two: instructions have 15"),
        ({"wide_rows": 8192}, "wide_rows", "not within 64 to 4096: instructions have 14 bits"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    tmp_path: Path, values: dict[str, int], field: str, reason: str
) -> None:
    path = with_values(tmp_path, **values)
    with pytest.raises(FormatError) as error:
        read_chip(str(path))
    assert (error.value.file, error.value.field) == (str(path), f"mine.{field}")
    assert reason in error.value.reason


def test_a_description_says_what_its_file_says(tmp_path: Path) -> None:
    """Written anew from what was read, it is the same; so is a chip with other values."""
    for base in ("beagle-max", "harness-2x2"):
        first = read_chip(base)
        values = {name: getattr(first, name).value for name in first.parameters()}
        again = read_chip(str(with_values(tmp_path, "beagle-std", **values)))
        assert again.sizes == first.sizes and again.tiles == first.tiles
        assert {name: getattr(again, name).value for name in values} == values
    _, table = read_table(BUILT_IN, "beagle-max")
    stands = toml.parse(BUILT_IN.files.joinpath("beagle-max.toml").read_bytes())
    names = {"host": "usb3", "register_map": "beagle"}
    assert table | names == stands
    assert table == {**read_chip("beagle-max").as_json(), **names}


def test_every_value_is_used() -> None:
    """Sizes become constants; times and queues are read by the event model, or by the RTL."""
    constants = (ROOT / "sim/darwinn_sim/chip.py").read_text()
    packages = (Path(str(each.__file__)).parent for each in (darwinn_sim, darwinn_rtl))
    sources = [path for package in packages for path in package.rglob("*.py")]
    text = "".join(path.read_text() for path in sources if path.parent.name != "chips")
    for name, rule in ChipDescription.parameters().items():
        if rule.compiled:
            assert f'_SIZES["{name}"]' in constants, name
            constant = next(line for line in constants.splitlines() if f'"{name}"' in line)
            users = text.count(f"chip.{constant.split(':')[0]}")
            assert users or name.startswith("grid_"), name
        else:
            assert f".{name}" in text or f'"{name}"' in text, name


def test_beagle_is_the_chip_without_a_choice() -> None:
    assert read_chip("beagle-max").sizes == read_chip("harness").sizes
    assert (chip.TILES, chip.GRID_ROWS, chip.GRID_COLUMNS, chip.WIDE_ROWS) == (16, 4, 4, 2080)
    assert set(chip.constants()) > {"TILES", "NARROW_BYTES", "UNIT_QUEUE"}


def printed(code: str, name: str | Path) -> list[str]:
    """The words that ``code`` prints in a process that simulates chip ``name``."""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "DARWINN_CHIP": str(name)}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=True)
    return done.stdout.split()


SIZES = """
from darwinn_sim import chip
from darwinn_sim.kernel import compiled
from darwinn_rtl.build import Design
from darwinn_rtl.parameters import header, packages
print(chip.TILES, chip.GRID_COLUMNS, chip.WIDE_ROWS, compiled._cache_folder(compiled._ROOT))
print(Design("chip_player").key, "Tiles=4" in header().replace(" = ", "="))
print("GridRows=2;" in packages()["chip_pkg"].replace(" = ", "="))
"""


def test_a_process_has_the_sizes_of_its_chip() -> None:
    """Model, RTL, and the folders where kernels and builds are kept."""
    tiles, columns, rows, folder, design, *generated = printed(SIZES, "harness-2x2")
    assert (tiles, columns, rows) == ("4", "2", "512")
    assert generated == ["True", "True"]
    assert Path(folder).parent == compiled.CACHES
    assert Path(folder) != compiled._cache_folder(compiled._ROOT)
    assert design != Design("chip_player").key
    # What differs in time alone shares both.
    *_, folder, design, _, _ = printed(SIZES, "beagle-std")
    assert Path(folder) == compiled._cache_folder(compiled._ROOT)
    assert design == Design("chip_player").key


def command(*words: str | Path, chip_name: str | Path = "") -> subprocess.CompletedProcess[str]:
    environment: dict[str, Any] = {**os.environ, "DARWINN_CHIP": str(chip_name)}
    line = [sys.executable, "-m", "darwinn_testbench", *map(str, words)]
    return subprocess.run(line, env=environment, text=True, capture_output=True, check=False)


def test_a_command_refuses_a_chip_that_cannot_be(tmp_path: Path) -> None:
    path = with_values(tmp_path, predicates=9)
    text = "mine.predicates: the value 9 is not 8, as on every chip"
    done = command("sample", tmp_path / "sample", chip_name=path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"darwinn: bad-input: DARWINN_CHIP: {path}: {text}")
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "sample").exists()
    done = command("cycles", __file__, "--chip", path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"darwinn cycles: bad-input: {path}: {text}")
    done = command("sample", tmp_path / "sample", chip_name="none.toml")
    assert done.returncode == 2
    assert done.stderr == "darwinn: bad-input: DARWINN_CHIP: none.toml: No such file or directory\n"


def test_a_process_has_one_chip() -> None:
    from darwinn_sim.timing import chip_description

    assert chip_description("beagle-std").clock.value == 250e6
    with pytest.raises(FormatError) as error:
        chip_description("harness-2x2")
    assert error.value.field == "harness-2x2.grid_rows"
    assert "the value is 2, and this process simulates beagle-max with 4" in error.value.reason
    assert "DARWINN_CHIP=harness-2x2" in error.value.reason


def test_the_documents_are_up_to_date() -> None:
    for name, rows in document.PAGES.items():
        text = (ROOT / "docs" / name).read_text()
        assert document.updated(text, rows()) == text
        assert document.updated(text.replace("| Beagle |", "| B |"), rows()) == text
