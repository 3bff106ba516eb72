"""Register maps: what a map of one's own may say, and what the model refuses by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_formats.errors import FormatError
from darwinn_sim.chips import VARIABLE
from darwinn_sim.chips.description import read_chip
from darwinn_sim.chips.quantities import built_in
from darwinn_sim.chips.register_map import BUILT_IN, check_apart, read_register_map
from darwinn_sim.chips.selected import check_selected
from darwinn_sim.host.registers import REGISTERS, register

MOVED = """
extends = "beagle"
[core.dma_pause]
offset = 0x4F100
meaning = "1: stop all DMA"
source = "a test"
fields = { pause = { bits = "0", meaning = "stop all DMA" } }
[core.serial_number]
offset = 0x4F108
meaning = "number of the board"
source = "a test"
access = "read"
reset = 77
"""

BEAGLE = (BUILT_IN.files / "beagle.toml").read_text()


def written(folder: Path, text: str, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", built_in(BUILT_IN))
def test_built_in_maps_are_what_the_model_needs(name: str) -> None:
    assert read_register_map(name).blocks["core"] == REGISTERS


def test_a_map_may_move_registers_and_add_some(tmp_path: Path) -> None:
    core = {each.name: each for each in read_register_map(written(tmp_path, MOVED)).blocks["core"]}
    assert core["dma_pause"].offset == 0x4F100
    assert core["serial_number"].reset == 77
    assert core.keys() - {"serial_number"} == {each.name for each in REGISTERS}


def test_model_and_driver_take_the_chips_map(tmp_path: Path) -> None:
    """A process with such a chip runs a program, and finds registers where its map has them."""
    written(tmp_path, MOVED, "map.toml")
    chip = f'extends = "harness-2x2"\nregister_map = "{tmp_path}/map.toml"'
    program = (
        "from darwinn_sim.host.interface import HostInterface\n"
        "from darwinn_sim.host.register_file import RegisterFile\n"
        "from darwinn_sim.host.registers import UnknownRegister, register\n"
        "registers = RegisterFile()\n"
        "assert registers.read(0x4F108) == registers.read(register('serial_number').offset) == 77\n"
        "try:\n"
        "    registers.read(0x486D8)\n"
        "except UnknownRegister as fault:\n"
        "    print(fault)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, VARIABLE: written(tmp_path, chip, "chip.toml")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "0x486d8: no such register" in found.stdout


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ("[run_controls]\n[core.a]\noffset = 0x4A000", "mine", "`meaning`"),
        (MOVED.replace("0x4F100", "0x4F101"), "dma_pause", "0x4f101 is not a multiple of 8"),
        (MOVED.replace("0x4F100", "0xFFFFF8").strip(), "dma_pause", "not within 0x100000 bytes"),
        (MOVED.replace("0x4F108", "0x4F100"), "serial_number", "overlaps dma_pause"),
        (MOVED.replace('"0"', '"64"'), "dma_pause.pause", "neither a number from 0 to 63 nor"),
        (MOVED.replace('"0"', '"0:7"'), "dma_pause.pause", "'0:7' are neither a number from 0"),
        (MOVED.replace('"0"', '"9:"'), "dma_pause.pause", "'9:' are neither a number from 0"),
        (MOVED.replace("pause = {", "stop = {"), "core.dma_pause.fields", "needs the fields pause"),
        (MOVED.replace('"read"', '"see"'), "core.serial_number.access", "none of: read, write;"),
        (MOVED.replace("77", '"many"'), "core.serial_number.reset", "'many' is not a number"),
        (MOVED.replace("77", "-1"), "serial_number", "does not fit in 64 bits"),
        (MOVED.replace("0x4F108", "0x4F108\nwidth = 16"), "serial_number", "neither 32 nor 64"),
        (
            MOVED.replace("0x4F108", "0x4F108\ncount = 0"),
            "serial_number",
            "count 0 is not positive",
        ),
        (
            MOVED.replace("0x4F100", '0x4F100\naccess = "read"'),
            "core.dma_pause.access",
            "the model has 'read, write' built in",
        ),
        (MOVED.replace("{ pause", '"gone" #'), "core.dma_pause.fields", "no [fields.gone]"),
        (BEAGLE.replace("[core.deep_sleep", "[core.sleep"), "core.deep_sleep", "is missing"),
        (
            f"{MOVED}[run_controls]\nnew = {{ control = 0x4F200 }}",
            "run_controls",
            "the model needs the units",
        ),
        ('extends = "nothing"', "extends 'nothing'", "neither a TOML file nor one of beagle"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    tmp_path: Path, text: str, field: str, reason: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FormatError) as error:
        read_register_map(path)
    assert error.value.file == path
    assert error.value.field.endswith(field)
    assert reason in error.value.reason


def test_fields_of_a_register_do_not_overlap() -> None:
    twice = register("dma_pause")
    fields = (*twice.fields, *twice.fields)
    with pytest.raises(FormatError, match="pause overlaps another"):
        check_apart("mine", [type(twice)("a", 0, "", "", fields=fields)])


def test_a_process_has_one_map(tmp_path: Path) -> None:
    written(tmp_path, MOVED, "map.toml")
    chip = f'extends = "beagle-max"\nregister_map = "{tmp_path}/map.toml"'
    path = written(tmp_path, chip, "chip.toml")
    with pytest.raises(FormatError, match="a process has one chip"):
        check_selected(path, read_chip(path))
