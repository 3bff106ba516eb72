"""All registers of a chip as a host finds them: those of the core, of USB, and of the SoC around.

A client may touch registers of which nothing is known. That is noted, not refused: what it writes
there is read back.
"""

from __future__ import annotations

from collections.abc import Callable

from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import (
    SOC_REGISTERS,
    USB_REGISTERS,
    RegisterFault,
    UnknownRegister,
    register,
)

MAX_UNKNOWN = 1 << 12
"""Unknown registers of which the values are kept."""

_SCU_CTRL_3 = register("scu_ctrl_3")
_SLEEP, _WAKE, _FORCE = 3, 2, 3
_AWAKE, _ASLEEP = 0, 2


def silent(text: str) -> None:
    """Takes a log that nobody reads."""


class RegisterSpace:
    """The registers, by offset.

    Power: ``scu_ctrl_3`` sends the core to sleep and wakes it, and shuts its memories down, which
    resets it. All else around the core is storage.

    Args:
        core: the registers of the core.
        reset: resets the core; called where a register does.
        by_usb: the chip is attached by USB: asleep after power-up.
        log: told what is unusual about an access.
    """

    def __init__(
        self,
        core: RegisterFile,
        reset: Callable[[], None],
        *,
        by_usb: bool,
        log: Callable[[str], None] = silent,
    ) -> None:
        self.usb = RegisterFile(USB_REGISTERS)
        self.soc = RegisterFile(SOC_REGISTERS)
        self.log = log
        self._core = core
        self._files = (core, self.usb, self.soc)
        self._reset = reset
        self._by_usb = by_usb
        self._unknown: dict[int, int] = {}
        self.soc.on_write(_SCU_CTRL_3.name, self._control_power)
        self.reset()

    def reset(self) -> None:
        """As after power-up; the core has a reset of its own."""
        self.usb.reset()
        self.soc.reset()
        self._unknown.clear()
        if not self._by_usb:
            for entry in SOC_REGISTERS:
                if entry.reset_by_pcie is not None:
                    self.soc.set(entry.name, entry.reset_by_pcie)
        self._power = self._state()

    def read(self, offset: int, width: int) -> int:
        """Host read of ``width`` bits; what cannot be read is 0, and noted."""
        try:
            return self._file_of(offset).read(offset, width)
        except UnknownRegister as fault:
            self.log(f"read: {fault}")
            return self._unknown.get(offset, 0) & (1 << width) - 1
        except RegisterFault as fault:
            self.log(f"read: {fault}")
            return 0

    def write(self, offset: int, value: int, width: int) -> None:
        """Host write of ``width`` bits; what cannot be written is noted."""
        try:
            self._file_of(offset).write(offset, value, width)
        except UnknownRegister as fault:
            self.log(f"write of {value:#x}: {fault}")
            if len(self._unknown) < MAX_UNKNOWN or offset in self._unknown:
                self._unknown[offset] = value
        except RegisterFault as fault:
            self.log(f"write of {value:#x}: {fault}")

    def _file_of(self, offset: int) -> RegisterFile:
        return next((each for each in self._files if offset in each), self._core)

    # Power.

    def _state(self) -> tuple[bool, bool]:
        """Whether the core is asleep, and whether it is in reset with its memories shut down.

        After power-up with PCIe the memories are, and yet the core is not in reset [T].
        """
        value = self.soc.get(_SCU_CTRL_3.name)
        asleep = _SCU_CTRL_3.field("cur_pwr_state").extract(value) == _ASLEEP
        return asleep, bool(_SCU_CTRL_3.field("cur_rst_gcb").extract(value))

    def _control_power(self, value: int) -> None:
        """The state follows at once from what is forced; going to sleep or down is a reset."""
        field = _SCU_CTRL_3.field
        asleep, _ = self._power
        forced = field("rg_force_sleep").extract(value)
        asleep = forced == _SLEEP or (asleep and forced != _WAKE)
        down = field("rg_force_ram_sd").extract(value) == _FORCE
        for name, state in (
            ("cur_pwr_state", _ASLEEP if asleep else _AWAKE),
            ("cur_rst_gcb", int(down)),
            ("cur_ram_sd", int(down)),
        ):
            value = value & ~field(name).mask | state << field(name).low
        self.soc.set(_SCU_CTRL_3.name, value)
        before, self._power = self._power, (asleep, down)
        if any(now and not then for now, then in zip(self._power, before, strict=True)):
            self._reset()
