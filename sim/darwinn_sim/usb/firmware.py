"""Boot mode: firmware is downloaded, and read back, by the requests of DFU 1.1.

The firmware is for a controller that the model does not have: what is in it is never looked at.
"""

from __future__ import annotations

from enum import IntEnum

from darwinn_sim.usb.descriptors import BLOCK_BYTES
from darwinn_sim.usb.errors import Stall

MAX_BYTES = 1 << 16
"""The largest image: the controller addresses no more."""


class Request(IntEnum):
    """Requests of the DFU class."""

    DETACH = 0
    DOWNLOAD = 1
    UPLOAD = 2
    GET_STATUS = 3
    CLEAR_STATUS = 4
    GET_STATE = 5
    ABORT = 6


class State(IntEnum):
    """States of DFU 1.1 that the device can be in."""

    IDLE = 2
    DOWNLOAD_SYNC = 3
    DOWNLOAD_IDLE = 5
    MANIFEST_SYNC = 6
    UPLOAD_IDLE = 9
    ERROR = 10


_NO_ERROR, _ADDRESS_ERROR, _STALLED_ERROR = 0x00, 0x08, 0x0F


class Firmware:
    """The image on the device, and where its download stands."""

    def __init__(self) -> None:
        self.image = b""
        self.complete = False
        """An image has been downloaded to its end: the next reset starts it."""
        self.reset()

    def reset(self) -> None:
        """The state at the start; a complete image stays, a part of one is forgotten."""
        self.state = State.IDLE
        self.status = _NO_ERROR
        self._coming = bytearray()
        self._next_block = 0

    def request(self, request: int, block: int, data: bytes, length: int) -> bytes:
        """Answer a class request: ``data`` comes with it, ``length`` bytes at most go back.

        Raises ``Stall`` for what is not allowed in this state; the device is in error then.
        """
        match request:
            case Request.DOWNLOAD:
                self._download(block, data)
            case Request.UPLOAD:
                return self._upload(block, length)
            case Request.GET_STATUS:
                return self._get_status()[:length]
            case Request.CLEAR_STATUS:
                self._clear(State.ERROR)
            case Request.GET_STATE:
                return bytes([self.state])[:length]
            case Request.ABORT:
                self._clear(State.DOWNLOAD_IDLE, State.UPLOAD_IDLE, State.IDLE)
            case _:
                raise self._error(_STALLED_ERROR, f"there is no DFU request {request} in boot mode")
        return b""

    def _download(self, block: int, data: bytes) -> None:
        if self.state not in (State.IDLE, State.DOWNLOAD_IDLE):
            raise self._error(_STALLED_ERROR, f"download in state {self.state.name}")
        if self.state is State.IDLE:
            self.complete = False
            self._coming.clear()
            self._next_block = block
        if len(data) > BLOCK_BYTES or block != self._next_block:
            raise self._error(
                _STALLED_ERROR,
                f"block {block} of {len(data)} bytes; awaited is block {self._next_block} of "
                f"{BLOCK_BYTES} bytes at most",
            )
        if len(self._coming) + len(data) > MAX_BYTES:
            raise self._error(_ADDRESS_ERROR, f"the image is longer than {MAX_BYTES} bytes")
        if data:
            self._coming += data
            self._next_block = (block + 1) & 0xFFFF
            self.state = State.DOWNLOAD_SYNC
        elif self.state is State.IDLE:
            raise self._error(_STALLED_ERROR, "an image without bytes")
        else:
            self.image = bytes(self._coming)
            self.complete = True
            self.state = State.MANIFEST_SYNC

    def _upload(self, block: int, length: int) -> bytes:
        if self.state not in (State.IDLE, State.UPLOAD_IDLE):
            raise self._error(_STALLED_ERROR, f"upload in state {self.state.name}")
        data = self.image[block * BLOCK_BYTES :][: min(length, BLOCK_BYTES)]
        self.state = State.IDLE if len(data) < length else State.UPLOAD_IDLE
        return data

    def _get_status(self) -> bytes:
        """Status, time to wait (none), the state that follows, no text."""
        after = {State.DOWNLOAD_SYNC: State.DOWNLOAD_IDLE, State.MANIFEST_SYNC: State.IDLE}
        self.state = after.get(self.state, self.state)
        return bytes([self.status, 0, 0, 0, self.state, 0])

    def _clear(self, *allowed: State) -> None:
        if self.state not in allowed:
            raise self._error(_STALLED_ERROR, f"not allowed in state {self.state.name}")
        self.reset()

    def _error(self, status: int, reason: str) -> Stall:
        self.state, self.status = State.ERROR, status
        return Stall(f"firmware: {reason}")
