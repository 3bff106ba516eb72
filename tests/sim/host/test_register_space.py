"""All registers of a chip: power and reset around the core, and what is not known."""

from __future__ import annotations

from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.register_space import MAX_UNKNOWN, RegisterSpace
from hypothesis import given
from hypothesis import strategies as st

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


def bits(high: int, low: int) -> int:
    return (1 << high + 1) - (1 << low)


@given(
    st.booleans(),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**32 - 1)), max_size=6
    ),
)
def test_power_follows_from_what_is_forced(
    by_usb: bool, writes: list[tuple[int, int, int]]
) -> None:
    """Bits 23:22 force sleep (3) or wake (2), which holds until the other is forced; bits 15:14
    shut memories down (3). Bits 9:8 are 2 in sleep, bits 6 and 4 are 1 with memories shut down. To
    fall asleep, or to be shut down, is a reset.
    """
    bench = Bench(by_usb=by_usb)
    asleep, down, resets = by_usb, by_usb, 0
    for sleep, memories, value in writes:
        value = value & ~bits(23, 22) & ~bits(15, 14) | sleep << 22 | memories << 14
        before = asleep, down
        asleep = sleep == 3 or (asleep and sleep != 2)
        down = memories == 3
        resets += (asleep and not before[0]) or (down and not before[1])
        state = (2 if asleep else 0) << 8 | down << 6 | down << 4
        expected = value & ~bits(9, 8) & ~(1 << 6) & ~(1 << 4) | state
        assert bench.written(value) == expected
        assert bench.resets == resets
    bench.space.reset()
    assert bench.space.read(SCU_CTRL_3, 32) == (0x50C5025C if by_usb else 0x5005004C)
    assert bench.resets == resets


def test_of_unknown_registers_so_many_are_kept() -> None:
    space = Bench(by_usb=True).space
    first = 0x60000
    for number in range(MAX_UNKNOWN + 1):
        space.write(first + 8 * number, number + 1, 64)
    kept = [space.read(first + 8 * number, 64) for number in range(MAX_UNKNOWN + 1)]
    assert kept == [*range(1, MAX_UNKNOWN + 1), 0]
    space.write(first, 5, 64)
    assert space.read(first, 64) == 5
    space.reset()
    assert space.read(first, 64) == 0
