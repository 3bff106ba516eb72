"""The transfers of a client that have not ended, by whatever numbers the client gives them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from darwinn_sim.usb.endpoints import Transfer
from darwinn_sim.usb.function import UsbFunction

MAX_TRANSFERS = 1024
"""Transfers that a client may have under way."""

MAX_BYTES = 64 << 20
"""Bytes of one transfer, and beyond which a client's transfers are too many."""

Ended = Callable[[int, Transfer], None]
"""Told the number of a transfer that has ended, and the transfer, as ``Transfer.done`` is: by
whatever thread ends it, and it must not wait."""


class UnderWay:
    """Submits transfers to a function, and knows them until they end.

    One thread submits and cancels; transfers end in any.

    Args:
        function: the device.
        clock: by which they age, in seconds.
    """

    def __init__(self, function: UsbFunction, clock: Callable[[], float] = time.monotonic) -> None:
        self._function = function
        self._clock = clock
        self._begun: dict[int, float] = {}
        self._lock = threading.Lock()
        self._transfers: dict[int, Transfer] = {}
        self._bytes = 0

    def takes(self, number: int) -> bool:
        """Whether there is room for another transfer, and no other has its number."""
        with self._lock:
            room = len(self._transfers) < MAX_TRANSFERS and self._bytes <= MAX_BYTES
            return room and number not in self._transfers

    def send(self, number: int, endpoint: int, data: bytes, ended: Ended) -> None:
        """Begin a transfer to the device."""
        self._submit(number, Transfer(endpoint, self._ending(number, ended), data=data))

    def receive(self, number: int, endpoint: int, length: int, ended: Ended) -> None:
        """Begin a transfer from the device."""
        self._submit(number, Transfer(endpoint, self._ending(number, ended), length=length))

    def _submit(self, number: int, transfer: Transfer) -> None:
        with self._lock:
            self._transfers[number] = transfer
            self._begun[number] = self._clock()
            self._bytes += _room_of(transfer)
        self._function.submit(transfer)

    def _ending(self, number: int, ended: Ended) -> Callable[[Transfer], None]:
        def done(transfer: Transfer) -> None:
            with self._lock:
                del self._transfers[number], self._begun[number]
                self._bytes -= _room_of(transfer)
            ended(number, transfer)

        return done

    def cancel(self, number: int) -> bool:
        """End a transfer; False if it has ended already."""
        with self._lock:
            transfer = self._transfers.get(number)
        return transfer is not None and self._function.cancel(transfer)

    def age(self, number: int) -> float | None:
        """Seconds since a transfer began; None if it has ended."""
        with self._lock:
            begun = self._begun.get(number)
        return None if begun is None else self._clock() - begun

    def cancel_all(self) -> None:
        """End all of them."""
        with self._lock:
            transfers = tuple(self._transfers.values())
        for transfer in transfers:
            self._function.cancel(transfer)


def _room_of(transfer: Transfer) -> int:
    """The bytes that it may move, the same before and after."""
    return transfer.length or len(transfer.data)
