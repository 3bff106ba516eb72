"""Boot mode: download, status and upload of firmware as in DFU 1.1."""

from __future__ import annotations

import pytest
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.firmware import MAX_BYTES, Firmware, Request, State


def download(firmware: Firmware, image: bytes, *, end: bool = True) -> None:
    blocks = [image[at : at + 256] for at in range(0, len(image), 256)]
    for number, block in enumerate([*blocks, b""] if end else blocks):
        firmware.request(Request.DOWNLOAD, number, block, len(block))
        state = State.DOWNLOAD_IDLE if block else State.IDLE
        assert firmware.request(Request.GET_STATUS, 0, b"", 6) == bytes([0, 0, 0, 0, state, 0])


def upload(firmware: Firmware) -> bytes:
    image = b""
    for number in range(1000):
        block = firmware.request(Request.UPLOAD, number, b"", 256)
        image += block
        if len(block) < 256:
            break
    return image


@pytest.mark.parametrize("size", [1, 255, 256, 257, 512, 10783])
def test_what_is_read_back_is_what_was_downloaded(size: int) -> None:
    image = bytes(number * 7 % 251 for number in range(size))
    firmware = Firmware()
    download(firmware, image)
    assert firmware.complete
    assert upload(firmware) == image
    # Clients go on reading behind the end.
    assert firmware.request(Request.UPLOAD, 500, b"", 256) == b""


def test_an_image_without_its_end_is_forgotten() -> None:
    firmware = Firmware()
    download(firmware, bytes(600), end=False)
    assert not firmware.complete
    firmware.reset()
    assert upload(firmware) == b""


def test_an_error_stays_until_it_is_cleared() -> None:
    firmware = Firmware()
    firmware.request(Request.DOWNLOAD, 0, bytes(256), 256)
    with pytest.raises(Stall, match="download in state DOWNLOAD_SYNC"):
        firmware.request(Request.DOWNLOAD, 1, bytes(256), 256)
    assert firmware.request(Request.GET_STATUS, 0, b"", 6)[0] != 0
    assert firmware.request(Request.GET_STATE, 0, b"", 1) == bytes([State.ERROR])
    with pytest.raises(Stall):
        firmware.request(Request.ABORT, 0, b"", 0)
    firmware.request(Request.CLEAR_STATUS, 0, b"", 0)
    assert firmware.request(Request.GET_STATE, 0, b"", 1) == bytes([State.IDLE])
    download(firmware, b"image")
    assert upload(firmware) == b"image"


def test_blocks_come_in_order_and_fit() -> None:
    for block, data, reason in (
        (2, bytes(256), "awaited is block 1"),
        (1, bytes(257), "of 256 bytes at most"),
    ):
        firmware = Firmware()
        download(firmware, bytes(256), end=False)
        with pytest.raises(Stall, match=reason):
            firmware.request(Request.DOWNLOAD, block, data, len(data))


def test_an_image_is_bounded() -> None:
    firmware = Firmware()
    download(firmware, bytes(MAX_BYTES), end=False)
    with pytest.raises(Stall, match="longer than 65536 bytes"):
        firmware.request(Request.DOWNLOAD, MAX_BYTES // 256, b"x", 1)


def test_unknown_requests_are_refused() -> None:
    with pytest.raises(Stall, match="no DFU request 9"):
        Firmware().request(9, 0, b"", 0)
