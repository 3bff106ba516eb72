"""Logs of both attachments."""

from __future__ import annotations

from darwinn_sim.usb.requests import Setup
from darwinn_testbench.device.pcie.log import Log as PcieLog
from darwinn_testbench.device.usb.log import Log as UsbLog


def test_registers_have_one_name_by_either_attachment() -> None:
    by_usb: list[str] = []
    by_pcie: list[str] = []
    for offset in (0x44018, 0x50008, 0x1A318, 0x4C148, 0x77777):
        setup = Setup(0xC0, 0, offset & 0xFFFF, offset >> 16, 8)
        UsbLog(by_usb.append).control(setup, b"", bytes(8))
        PcieLog(by_pcie.append).register_read(offset, 8, 0)
    assert by_usb == by_pcie
    assert by_usb[1] == "read 50008 page_table 1 -> 0"
    assert by_usb[4] == "read 77777 unknown register -> 0"
