"""The transfers of a client that have not ended, by whatever numbers the client gives them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from darwinn_sim.usb.endpoints import Transfer
from darwinn_sim.usb.function import UsbFunction

MAX_TRANSFERS = 1024
"""Transfers that a client may have under way."""

MAX_BYTES = 64 << 20
"""Bytes of one transfer, and beyond which a client's transfers are too many."""

Ended = Callable[[int, Transfer], None]
"""Told the number of a transfer that has ended, and the transfer, in the loop of the client."""


class UnderWay:
    """Submits transfers to a function and takes them back; to be used within a running loop."""

    def __init__(self, function: UsbFunction) -> None:
        self._function = function
        self._loop = asyncio.get_running_loop()
        self._transfers: dict[int, tuple[Transfer, Ended]] = {}
        self._bytes = 0

    def takes(self, number: int) -> bool:
        """Whether there is room for another transfer, and no other has its number."""
        room = len(self._transfers) < MAX_TRANSFERS and self._bytes <= MAX_BYTES
        return room and number not in self._transfers

    def send(self, number: int, endpoint: int, data: bytes, ended: Ended) -> None:
        """Begin a transfer to the device."""
        self._submit(number, Transfer(endpoint, self._by_any_thread(number), data=data), ended)

    def receive(self, number: int, endpoint: int, length: int, ended: Ended) -> None:
        """Begin a transfer from the device."""
        self._submit(number, Transfer(endpoint, self._by_any_thread(number), length=length), ended)

    def _submit(self, number: int, transfer: Transfer, ended: Ended) -> None:
        self._transfers[number] = transfer, ended
        self._bytes += len(transfer.data) + transfer.length
        self._function.submit(transfer)

    def _by_any_thread(self, number: int) -> Callable[[Transfer], None]:
        def done(_: Transfer) -> None:
            self._loop.call_soon_threadsafe(self._end, number)

        return done

    def _end(self, number: int) -> None:
        transfer, ended = self._transfers.pop(number)
        self._bytes -= transfer.length or len(transfer.data)
        ended(number, transfer)

    def cancel(self, number: int) -> bool:
        """End a transfer; False if it has ended already."""
        if number not in self._transfers:
            return False
        return self._function.cancel(self._transfers[number][0])

    def cancel_all(self) -> None:
        """End all of them."""
        for transfer, _ in tuple(self._transfers.values()):
            self._function.cancel(transfer)
