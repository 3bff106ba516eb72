"""The chip in Icarus Verilog, with a host memory and a player in plain Verilog: each operation is
done in the cycle in which Verilator did it, host memory has the same bytes, and nothing that reset
has to set stays unknown."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.host.registers import register
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.codes import DescriptorTag
from harness_runs import require_toolchain
from nightly import note
from other_chip import SMALL, report
from second_simulator import icarus, netlist_of, require_second_simulator
from stimulus import line

PLAYER = "plain_player"
ROWS = 2
"""Rows that go from the host through the chip and back."""

HOST_RESET = r"(host_interface\S+ +host \([^;]*?\.rst_n\()rst_n"
"""The reset of the host interface, in the netlist."""

CHUNK, RING = 1024, 2048
"""Places in host memory of a chunk of instructions, and of the ring that has its descriptor."""
CHUNK_BYTES = 100
WINDOW = 1 << 63
QUEUE = {
    "instruction_queue_base": WINDOW | RING,
    "instruction_queue_size": 2,
    "instruction_queue_control": 1,
    "scalar_core_run_control": 1,
    "instruction_queue_tail": 1,
}
"""Registers that the host writes, in this order."""

LATENCY, NIGHTLY = ("plain_sizes.vh", r"(?<=LATENCY )4"), pytest.mark.nightly

ONE_TILE = f"""\
extends = "{SMALL}"
grid_rows = {{ value = 1, unit = "tile", source = "a choice", confidence = "high" }}
grid_columns = {{ value = 1, unit = "tile", source = "a choice", confidence = "high" }}
"""

_PASS = re.compile(r"^pass  (\d+) cycles.*; (\d+) bytes of host memory equal, 0 unknown$", re.M)


class Played(NamedTuple):
    """What the player counts."""

    cycles: int
    bytes: int


def play(folder: Path) -> str:
    """What the player in ``folder`` prints."""
    return icarus(PLAYER, sorted(folder.glob("*.v")), folder)


def passed(printed: str) -> Played:
    """What the player has counted, if it passed."""
    found = _PASS.search(printed)
    assert found, printed
    return Played(*map(int, found.groups()))


@pytest.fixture(scope="module")
def through_the_chip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a chunk of instructions, and of input that goes to the activation buffer, over
    the ring, and back to the host with two words of the core behind it; a chip of one tile can
    repeat it."""
    require_toolchain()
    require_second_simulator()
    from darwinn_rtl.build import Design
    from darwinn_rtl.chip.recording import RecordingPlayer
    from darwinn_rtl.export import CHIP, export_player

    folder = tmp_path_factory.mktemp("plain")
    rtl = RecordingPlayer(folder, 2026)
    rtl.reset()
    given, row = ROWS * chip.ROW_BYTES, {"row_words": chip.ROW_WORDS - 1}
    units = given // chip.ACTIVATION_UNIT_BYTES
    host = np.random.default_rng(3).integers(256, size=2 * 4096, dtype=np.uint8)
    host[RING : RING + 16] = np.array([WINDOW | CHUNK, CHUNK_BYTES], "<u8").view(np.uint8)
    wanted, words = host.copy(), [0xC0DE0000, 0xC0DE0001]
    wanted[4103 : 4103 + given] = host[5 : 5 + given]
    wanted[4103 + given : 4111 + given] = np.array(words, "<u4").view(np.uint8)
    rtl.unmap_all()  # all players of a process share host memory
    rtl.map(0, host.ctypes.data, host.size)
    for name, value in QUEUE.items():
        rtl.write_register(register(name).offset, value)
    assert rtl.read_register(register("instruction_queue_base").offset) == WINDOW | RING
    assert rtl.fetch(rtl.take_chunk()) == host[CHUNK : CHUNK + CHUNK_BYTES].tobytes()
    rtl.descriptor(DescriptorTag.INPUT, WINDOW | 5, given)
    for name, count, fields in (
        ("PopInput", units, {"fifo": 1}),
        ("ScalarFence", 0, {"wait_idle": 1}),
        ("RingInfeed", units, {"fifo": 1, "targets": 1 << chip.TILES} | row),
        ("RingOutfeed", given // 8, {"to_host": 1} | row),
    ):
        walk = line(name, "buffer", count) if count else {}
        rtl.hand_over(name, build([(name, walk | fields)]))
    rtl.run(120 * ROWS)
    rtl.descriptor(DescriptorTag.OUTPUT, WINDOW | 4103, given + 8)
    rtl.run(120 * ROWS)  # the rows have left
    for word in words:
        rtl.push(word)
    rtl.settle()
    assert (host == wanted).all()
    rtl.close()
    netlist = netlist_of(Design(CHIP, {"Tiles": 1}, registers=True), folder)
    export_player(folder, netlist, rtl.memory_bytes, rtl.regions)
    return folder


def test_a_chip_of_one_tile_moves_bytes_in_icarus(through_the_chip: Path) -> None:
    cycles, compared = passed(play(through_the_chip))
    assert cycles > 500 and compared == 2 * 4096


@pytest.mark.parametrize(
    ("file", "before", "after", "reason"),
    [
        pytest.param(*LATENCY, "5", "the chip is later than in Verilator", marks=NIGHTLY),
        pytest.param(*LATENCY, "3", "the chip is earlier than in Verilator", marks=NIGHTLY),
        ("memory_1.hex", r"\A..", "00", "host memory differs"),
        ("chip_pins.v", HOST_RESET, r"\g<1>1'h1", "a signal that decides what happens is unknown"),
    ],
    ids=["later", "earlier", "bytes", "no reset"],
)
def test_the_player_notices(
    through_the_chip: Path, tmp_path: Path, file: str, before: str, after: str, reason: str
) -> None:
    folder = tmp_path / "changed"
    copytree(through_the_chip, folder)
    text, changes = re.subn(before, after, (folder / file).read_text(), count=1)
    assert changes == 1
    (folder / file).write_text(text)
    printed = play(folder)
    assert printed.splitlines()[-1].startswith("fail  line ") and reason in printed


@NIGHTLY
@pytest.mark.parametrize("tiles", [1, 4])
def test_a_program_is_the_same_in_icarus(tiles: int, tmp_path: Path) -> None:
    """Parameters and an inference, as the user exports them."""
    require_toolchain()
    require_second_simulator()
    chosen: str | Path = SMALL
    if tiles == 1:
        chosen = tmp_path / "one.toml"
        chosen.write_text(ONE_TILE)
        drawn = ("--seed", "6", "--size", "2", "--shapes", "8x8x3", "--operators", "CONV_2D,ADD")
        report("generate", *drawn, "--out", tmp_path, chip=chosen)
        model = tmp_path / "network_6_edgetpu.tflite"
    else:
        report("sample", tmp_path, chip=chosen)
        model = tmp_path / "dense_edgetpu.tflite"
    folder = tmp_path / "exported"
    written = report("harness", "export", folder, "--program", model, chip=chosen)
    assert {row["name"] for row in written["rows"]} >= {"program.txt", "plain_player.v"}
    cycles, compared = passed(play(folder))
    assert cycles > 5000 and compared > 1000
    note("cycles of a chip in Icarus", cycles, 0)
