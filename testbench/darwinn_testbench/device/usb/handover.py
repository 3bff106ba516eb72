"""The device goes from one host to the next, who finds it as the first one did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from darwinn_sim.usb.descriptors import Mode
from darwinn_sim.usb.firmware import Request
from darwinn_sim.usb.function import UsbFunction
from darwinn_sim.usb.requests import Setup

_DOWNLOAD, _GET_STATUS = 0x21, 0xA1
"""Request types: of the DFU class, for an interface."""

_STATUS_BYTES = 6


Result = TypeVar("Result")


class Handover:
    """Resets ``function`` for its next host, and does for hosts what may wait for the chip.

    To be used within a running loop.

    A device that has its firmware now keeps it: a host that makes it wait for another one
    (DFU_DETACH) does so for itself alone. The firmware comes by requests, which recordings have
    as they have those of a host.
    """

    def __init__(self, function: UsbFunction) -> None:
        self._function = function
        self._is_booted = function.mode is Mode.APPLICATION
        self._waits = ThreadPoolExecutor(1, "darwinn-usb")
        self._loop = asyncio.get_running_loop()

    async def waited(self, what: Callable[[], Result]) -> Result:
        """What may wait for the chip's next look at the host, done in the order of the calls."""
        return await self._loop.run_in_executor(self._waits, what)

    async def reset(self) -> None:
        """After a host has gone."""
        await self.waited(self._reset)

    def close(self) -> None:
        """Wait for all that has been called."""
        self._waits.shutdown()

    def _reset(self) -> None:
        self._function.reset()
        if self._is_booted and self._function.mode is Mode.BOOT:
            # What is in an image is never looked at; one without bytes ends it.
            for block, image in enumerate((b"\0", b"")):
                download = Setup(_DOWNLOAD, Request.DOWNLOAD, block, 0, len(image))
                self._function.control(download, image)
                self._function.control(Setup(_GET_STATUS, Request.GET_STATUS, 0, 0, _STATUS_BYTES))
            self._function.reset()
