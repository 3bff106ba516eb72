"""Endpoints: what waits on either side, and how transfers end."""

from __future__ import annotations

from darwinn_sim.usb.endpoints import InEndpoint, OutEndpoint, Status, Transfer


class Cable:
    """Makes transfers and notes which have ended."""

    def __init__(self) -> None:
        self.ended: list[Transfer] = []

    def read(self, endpoint: InEndpoint, length: int) -> Transfer:
        transfer = Transfer(0x81, self.ended.append, length=length)
        endpoint.submit(transfer)
        return transfer

    def write(self, endpoint: OutEndpoint, data: bytes) -> Transfer:
        transfer = Transfer(1, self.ended.append, data=data)
        endpoint.submit(transfer)
        return transfer


def test_a_stream_comes_in_any_pieces() -> None:
    cable = Cable()
    seen: list[bytes] = []
    endpoint = InEndpoint(True, 16, seen.append)
    output = bytes(range(40))
    endpoint.put(output)
    assert endpoint.held == 40
    taken = [cable.read(endpoint, length).data for length in (5, 7, 20, 100, 100)]
    # The last packet of 8 bytes is short, and ends a transfer.
    assert taken == [output[:5], output[5:12], output[12:32], output[32:], b""]
    assert b"".join(seen) == output
    assert endpoint.held == 0


def test_a_read_that_waits_gets_the_next_bytes() -> None:
    cable = Cable()
    endpoint = InEndpoint(True, 1024, lambda data: None)
    first, second = cable.read(endpoint, 10), cable.read(endpoint, 10)
    assert first.status is None
    endpoint.put(b"abc")
    assert first.data == b"abc"
    assert [transfer.status for transfer in cable.ended] == [Status.COMPLETED]
    assert endpoint.cancel(second)
    assert second.status is Status.CANCELLED
    assert not endpoint.cancel(first)


def test_an_event_is_one_packet() -> None:
    cable = Cable()
    endpoint = InEndpoint(False, 1024, lambda data: None)
    for event in (b"0123456789abcdef", b"x" * 16, b"y" * 16):
        endpoint.put(event)
    assert cable.read(endpoint, 64).data == b"0123456789abcdef"
    assert cable.read(endpoint, 8).status is Status.OVERFLOW
    assert cable.read(endpoint, 16).data == b"y" * 16


def test_a_halted_endpoint_gives_what_it_has_and_stalls() -> None:
    cable = Cable()
    endpoint = InEndpoint(True, 1024, lambda data: None)
    endpoint.put(b"abc")
    endpoint.halt()
    assert cable.read(endpoint, 3).data == b"abc"
    assert cable.read(endpoint, 3).status is Status.STALLED
    endpoint.clear()
    assert cable.read(endpoint, 3).status is None


def test_a_write_waits_until_there_is_room() -> None:
    cable = Cable()
    taken = bytearray()
    room = 5
    endpoint = OutEndpoint(lambda: room - len(taken), taken.extend)
    first, second = cable.write(endpoint, b"abcdefgh"), cable.write(endpoint, b"ij")
    assert (first.status, first.actual, second.actual) == (None, 5, 0)
    room = 9
    endpoint.move()
    assert (first.status, second.status, second.actual) == (Status.COMPLETED, None, 1)
    assert endpoint.cancel(second)
    assert bytes(taken) == b"abcdefghi"
    assert [transfer.status for transfer in cable.ended] == [Status.COMPLETED, Status.CANCELLED]
