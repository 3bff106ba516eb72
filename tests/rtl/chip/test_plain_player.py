"""The player in plain Verilog notices each thing that it compares, beside a chip of constants."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from darwinn_rtl import toolchain
from darwinn_rtl.build import simulation_argument
from darwinn_rtl.chip.recording import PROGRAM, Operation
from darwinn_sim.isa.codes import DescriptorTag
from harness_runs import require_toolchain
from plain_chip import PLAYER, compiled_player, ports
from second_simulator import require_icarus, simulated

VALUE, SIZE, BYTES = 0xFEDC_BA98_7654_3210, 0x8000_0040, 0x8877_6655_4433_2211
"""Of every register, of the chunk, and of each word of the stream."""

OUTPUTS = {
    **dict.fromkeys(("s_axil_awready", "s_axil_wready", "s_axil_bvalid"), 1),
    **dict.fromkeys(("s_axil_arready", "s_axil_rvalid", "core2queue_chunk_ready"), 1),
    **dict.fromkeys(("core2units_instruction_ready", "core2dma_descriptor_ready"), 1),
    **dict.fromkeys(("core2output_word_ready", "dma2core_instruction_valid"), 1),
    "queue2monitor_idle": 1,
    "units2monitor_idle": 0b1111,
    "tiles2monitor_idle": 0b11,
    **dict.fromkeys(("m_axi_rready", "m_axi_bready"), 1),
    "s_axil_rdata": VALUE,
    "queue2core_chunk_size": SIZE,
    "dma2core_instruction_data": BYTES,
    "dma2core_instruction_count": 8,
}
"""What the chip gives in every cycle; 0 where nothing is said. It is ready for everything."""

FAILED = "an access of host memory failed"
Outputs = dict[str, int | None]
READS: Outputs = {"m_axi_arvalid": 1}
WRITES: Outputs = {"m_axi_awvalid": 1, "m_axi_wvalid": 1, "m_axi_wlast": 1}
CHANGES: dict[str, tuple[Outputs, str]] = {
    **{
        name: ({name: None}, "a signal that decides what happens is unknown")
        for name in (
            *("s_axil_awready", "s_axil_wready", "s_axil_bvalid", "s_axil_arready"),
            *("s_axil_rvalid", "dma2host_interrupt", "queue2core_chunk_waits"),
            *("core2queue_chunk_ready", "core2units_instruction_ready"),
            *("core2dma_descriptor_ready", "core2output_word_ready"),
            *("dma2core_instruction_valid", "queue2monitor_idle", "ring2monitor_row_valid"),
            *("dma2monitor_start_valid", "units2monitor_idle", "tiles2monitor_idle"),
            *("tiles2monitor_units", "dma2monitor_done_valid", "m_axi_arvalid", "m_axi_rready"),
            *("m_axi_awvalid", "m_axi_wvalid", "m_axi_bready"),
        )
    },
    **{
        f"m_axi_ar{name}": (READS | {f"m_axi_ar{name}": None}, "a read of host memory is unknown")
        for name in ("id", "addr", "len", "size", "burst")
    },
    **{
        f"m_axi_aw{name}": (WRITES | {f"m_axi_aw{name}": None}, "a write to host memory is unknown")
        for name in ("id", "addr", "len", "size", "burst")
    },
    **{
        f"m_axi_w{name}": (WRITES | {f"m_axi_w{name}": None}, "a word for host memory is unknown")
        for name in ("strb", "last")
    },
    "a read that fails": (READS | {"m_axi_araddr": 64}, FAILED),
    "a write that fails": (WRITES | {"m_axi_awaddr": 64, "m_axi_wstrb": 1}, FAILED),
    **{
        f"outcome {outcome}": (
            {"dma2monitor_start_valid": 1, "dma2monitor_start_outcome": outcome},
            "a descriptor was refused",
        )
        for outcome in (1, 2, 3, 4)
    },
    **{
        f"{name} {response}": ({name: response}, "the register's port answers with an error")
        for name in ("s_axil_bresp", "s_axil_rresp")
        for response in (2, 3)
    },
    **{
        f"no {name}": ({name: 0}, "the chip is later than in Verilator")
        for name in (
            *("s_axil_bvalid", "s_axil_rvalid", "core2queue_chunk_ready"),
            *("dma2core_instruction_valid", "core2units_instruction_ready"),
            *("core2dma_descriptor_ready", "core2output_word_ready"),
        )
    },
    "no answer, and another value": (
        {"s_axil_rvalid": 0, "s_axil_rdata": 0},
        "the chip is later than in Verilator",
    ),
    **{
        f"{name} {busy:b}": ({name: busy}, "the chip is later than in Verilator")
        for name, busy in (
            ("queue2monitor_idle", 0),
            *(("units2monitor_idle", 0b1111 ^ 1 << bit) for bit in (0, 3)),
            *(("tiles2monitor_idle", 0b11 ^ 1 << bit) for bit in (0, 1)),
        )
    },
}
"""Outputs that have another value (None: an unknown one), and what the player says then."""

Line = tuple[int, ...]

_PROGRAM: tuple[Line, ...] = (
    (Operation.RESET,),
    (Operation.MAP, 0, 64, 0),
    (Operation.LOAD, 0, 64),
    (Operation.WRITE, 8, 1, 0, 0, 1),
    (Operation.READ, 8, VALUE, 0, 0, 2),
    (Operation.CHUNK, SIZE, 0, 0, 0, 3),
    (Operation.FETCH, 16, zlib.adler32(2 * BYTES.to_bytes(8, "little")), 0, 0, 4),
    (Operation.HAND_OVER, 0, 0, 0, 0, 5),
    (Operation.DESCRIPTOR, DescriptorTag.INPUT, 8, 0, 0, 6),
    (Operation.PUSH, 1, 0, 0, 0, 7),
    (Operation.SETTLE, 0, 0, 0, 0, 8),
    (Operation.COMPARE, 0, 64),
    (Operation.RUN, 0, 0, 0, 0, 20),
)
"""What the player does, and in which cycle the chip is done with it."""

_DONE = {Operation.WRITE, Operation.READ, Operation.CHUNK, Operation.FETCH, Operation.HAND_OVER}
_DONE |= {Operation.DESCRIPTOR, Operation.PUSH, Operation.SETTLE}
DIFFERENCES = {
    Operation.READ: (2, 64, "a register differs"),
    Operation.CHUNK: (1, 64, "the size of a chunk differs"),
    Operation.FETCH: (2, 32, "the instruction stream differs"),
}
"""Fields that the player compares, so many bits of them, and what it says."""


def program(changed: int = 0, field: int = 0, by: int | None = None) -> str:
    """The program, of which a field of one line is another."""
    lines = [[*line, *(0 for _ in range(6 - len(line)))] for line in _PROGRAM]
    if by is not None:
        lines[changed][field] = by
    return "".join(" ".join(f"{number:x}" for number in line) + "\n" for line in lines)


def body() -> str:
    """A chip whose outputs are constants, of which ``+other=N`` chooses the Nth of ``CHANGES``."""
    assigned = [_assigned(name, width) for name, width in ports("output").items()]
    return (
        '  integer other;\n  initial if ($value$plusargs("other=%d", other) == 0) other = -1;\n'
        + "".join(f"  {line}\n" for line in assigned)
    )


def _assigned(name: str, width: int) -> str:
    others = {
        number: f"{width}'bx" if values[name] is None else f"{width}'d{values[name]}"
        for number, (values, _) in enumerate(CHANGES.values())
        if name in values
    }
    arms = "".join(f"other == {number} ? {value} : " for number, value in others.items())
    return f"assign {name} = {arms}{width}'d{OUTPUTS.get(name, 0)};"


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The player beside that chip, compiled."""
    require_icarus()
    folder = tmp_path_factory.mktemp("player")
    (folder / "memory_0.hex").write_text("5a\n" * 64)
    return compiled_player(body(), folder)


def said(player: Path, text: str, *arguments: str) -> str:
    """What the player says of a program: one line, behind bytes of memory that differ."""
    (player.parent / PROGRAM).write_text(text)
    printed = simulated(player, player.parent, *arguments, seconds=60).splitlines()
    assert not [line for line in printed[:-1] if not line.startswith("byte ")], printed
    return printed[-1]


def test_the_player_takes_what_is_right(player: Path) -> None:
    assert re.match("pass  .* 64 bytes of host memory equal, 0 unknown", said(player, program()))
    assert "no program.txt in this folder" in said(player, "")


@pytest.mark.parametrize("name", CHANGES)
def test_the_player_notices_what_the_chip_does(player: Path, name: str) -> None:
    number = list(CHANGES).index(name)
    assert CHANGES[name][1] in said(player, program(), f"+other={number}")


@pytest.mark.parametrize("operation", DIFFERENCES, ids=lambda operation: operation.name)
def test_the_player_compares_all_parts_of_a_number(player: Path, operation: Operation) -> None:
    field, bits, reason = DIFFERENCES[operation]
    line = [each[0] for each in _PROGRAM].index(operation)
    was, chosen = _PROGRAM[line][field], (*range(0, bits, 5), bits - 1)
    reason = f"fail  line {line + 1} of program.txt, cycle {_PROGRAM[line][5]}: {reason}"
    assert _unnoticed(player, line, field, [was ^ 1 << bit for bit in chosen], reason) == []


@pytest.mark.parametrize("operation", sorted(_DONE), ids=lambda operation: operation.name)
def test_the_player_compares_each_cycle(player: Path, operation: Operation) -> None:
    line = [each[0] for each in _PROGRAM].index(operation)
    later = "the chip is later than in Verilator"
    earlier = "the chip is earlier than in Verilator"
    cycle = _PROGRAM[line][5]
    assert _unnoticed(player, line, 5, [cycle - 1], later) == []
    assert _unnoticed(player, line, 5, [cycle + 1, cycle + 256], earlier) == []


@pytest.mark.parametrize("tag", [*DescriptorTag, "fence"])
def test_the_player_waits_for_each_output_and_interrupt(
    player: Path, tag: DescriptorTag | str
) -> None:
    """Nothing ends on this chip, so it does not settle behind one of them."""
    line = [each[0] for each in _PROGRAM].index(Operation.DESCRIPTOR)
    kind = 1 << 4 if isinstance(tag, str) else tag  # the fence is the bit above the tags
    ends = not isinstance(tag, str) and tag >= DescriptorTag.OUTPUT
    wanted = "the chip is later than in Verilator" if ends else "pass"
    assert wanted in said(player, program(line, 1, by=kind))


def test_the_player_compares_each_byte_of_memory(player: Path) -> None:
    memory = player.parent / "memory_0.hex"
    (player.parent / "memory_1.hex").write_text(memory.read_text())
    compare = [each[0] for each in _PROGRAM].index(Operation.COMPARE)
    for place in (0, 1, 62, 63):
        lines = memory.read_text().splitlines()
        lines[place] = "5b"
        (player.parent / "memory_1.hex").write_text("\n".join(lines) + "\n")
        assert "host memory differs" in said(player, program(compare, 1, by=1))


def test_the_player_performs_nothing_unknown(player: Path) -> None:
    assert "no operation of this player" in said(player, program(3, 0, by=len(Operation)))


@pytest.mark.nightly
def test_the_player_says_the_same_in_verilator(player: Path, tmp_path: Path) -> None:
    """Also where it goes on to the end of the moment in which it has ended the simulation."""
    require_toolchain()
    toolchain.use_wheel_programs()
    options = ("--binary", "--timing", "-Wno-fatal", "--top-module", PLAYER, "--Mdir", tmp_path)
    coroutines = ("-CFLAGS", "-std=c++20 -fcoroutines", "-MAKEFLAGS", "OPT_FAST=-O0 OPT_GLOBAL=-O0")
    _printed(player, "verilator", *options, *coroutines, *sorted(player.parent.glob("*.v")))
    for name in (None, "no answer, and another value"):
        other = f"+other={-1 if name is None else list(CHANGES).index(name)}"
        wanted = said(player, program(), other)
        arguments = filter(None, [simulation_argument(), other])
        lines = _printed(player, tmp_path / f"V{PLAYER}", *arguments).splitlines()
        assert [line for line in lines if not line.startswith("- ")] == [wanted]


def _printed(player: Path, *words: str | Path) -> str:
    return subprocess.run(
        [*map(str, words)], cwd=player.parent, check=True, capture_output=True, text=True
    ).stdout


def _unnoticed(
    player: Path, line: int, field: int, values: Iterable[int], reason: str
) -> list[int]:
    return [by for by in values if reason not in said(player, program(line, field, by))]
