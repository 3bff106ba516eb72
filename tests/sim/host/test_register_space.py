"""All registers of a chip: power and reset around the core, and what is not known."""

from __future__ import annotations

from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.register_space import MAX_UNKNOWN, RegisterSpace

SCU_CTRL_2, SCU_CTRL_3 = 0x1A314, 0x1A318
NOWHERE = 0x4F000


class Bench:
    """The registers around a core that counts its resets."""

    def __init__(self, *, by_usb: bool) -> None:
        self.resets = 0
        self.said: list[str] = []
        self.core = RegisterFile()
        self.space = RegisterSpace(self.core, self._reset, by_usb=by_usb, log=self.said.append)

    def _reset(self) -> None:
        self.resets += 1

    def written(self, value: int) -> int:
        """What is read after writing scu_ctrl_3."""
        self.space.write(SCU_CTRL_3, value, 32)
        return self.space.read(SCU_CTRL_3, 32)


def test_by_usb_the_core_wakes_and_falls_asleep_as_recorded() -> None:
    bench = Bench(by_usb=True)
    assert bench.space.read(SCU_CTRL_3, 32) == 0x50C5025C
    assert bench.written(0x0085025C) == 0x0085000C
    assert bench.resets == 0
    assert bench.written(0x00C5000C) == 0x00C5020C
    assert bench.written(0x00C5020C) == 0x00C5020C
    assert bench.resets == 1
    assert bench.written(0x0085020C) == 0x0085000C
    assert bench.resets == 1


def test_by_pcie_the_core_is_awake_and_reset_by_force() -> None:
    bench = Bench(by_usb=False)
    assert bench.space.read(SCU_CTRL_3, 32) == 0x5005004C
    assert bench.written(0x5005004C) == 0x5005000C
    assert bench.resets == 0
    forced = 3 << 14
    assert bench.written(0x5005000C | forced) == 0x5005000C | forced | 0x50
    assert bench.resets == 1
    assert bench.written(0x5005005C) == 0x5005000C
    assert bench.resets == 1
    bench.space.reset()
    assert bench.space.read(SCU_CTRL_3, 32) == 0x5005004C


def test_by_pcie_the_first_reset_is_one() -> None:
    """The kernel driver enters it before the first open: what it wrote until then is gone."""
    bench = Bench(by_usb=False)
    bench.written(0x5005004C | 3 << 14)
    assert bench.resets == 1


def test_other_registers_around_the_core_keep_what_is_written() -> None:
    bench = Bench(by_usb=True)
    assert bench.space.read(SCU_CTRL_2, 32) == 0x190000
    bench.space.write(SCU_CTRL_2, 0x150000, 32)
    assert bench.space.read(SCU_CTRL_2, 32) == 0x150000
    bench.space.write(0x4C148, 0xF0, 64)
    assert bench.space.read(0x4C148, 64) == 0xF0
    bench.space.write(0x44018, 1, 64)
    assert bench.core.get("scalar_core_run_control") == 1
    assert bench.said == []


def test_what_is_not_known_is_noted_and_kept_within_bounds() -> None:
    bench = Bench(by_usb=True)
    assert bench.space.read(NOWHERE, 64) == 0
    bench.space.write(NOWHERE, 7, 64)
    assert bench.space.read(NOWHERE, 64) == 7
    assert bench.said[0] == "read: register at 0x4f000: no such register in the model"
    for offset in range(0x60000, 0x60000 + 16 * MAX_UNKNOWN, 8):
        bench.space.write(offset, 1, 64)
    assert bench.space.read(0x60000, 64) == 1
    assert bench.space.read(0x60000 + 16 * MAX_UNKNOWN - 8, 64) == 0


def test_what_a_register_does_not_allow_is_noted_and_does_nothing() -> None:
    bench = Bench(by_usb=True)
    bench.space.write(0x486E0, 1, 64)
    assert "dma_paused cannot be written" in bench.said[0]
    assert bench.space.read(SCU_CTRL_3, 64) == 0
    assert "is 32 bits wide" in bench.said[1]


def test_an_unknown_register_gives_no_more_bits_than_are_asked_for() -> None:
    space = Bench(by_usb=True).space
    space.write(NOWHERE, 0x0123_4567_89AB_CDEF, 64)
    assert space.read(NOWHERE, 64) == 0x0123_4567_89AB_CDEF
    assert space.read(NOWHERE, 32) == 0x89AB_CDEF
