"""Recorded sessions of the vendor's driver on the RTL: the chip has to answer the same."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from chip_runs import rtl_chip
from darwinn_sim.pcie.function import PcieFunction
from darwinn_testbench.device.pcie.events import DECODER, Event, MemoryWrite
from darwinn_testbench.device.pcie.replay import Player, replay
from darwinn_testbench.device.trace import Octets, RecordedSession
from darwinn_testbench.report import Verdict


@pytest.fixture
def session(traces: Path) -> RecordedSession:
    """An inference of the dense sample: parameters, input, output, close."""
    return RecordedSession(traces / "dense_edgetpu.pcie.trace")


def function(*_: object) -> PcieFunction:
    """The RTL chip of this process on the bus, after power-up."""
    played = rtl_chip()
    from darwinn_rtl.chip.on_bus import on_bus

    played.reset()
    return PcieFunction(partial(on_bus, played))


def test_a_session_of_the_vendors_driver_has_no_difference(session: RecordedSession) -> None:
    """Registers, interrupts, and every byte that the chip reads and writes."""
    report = replay(session, function)
    print(report.message)
    assert report.verdict is Verdict.PASS, report.rows
    found = {row.name: row for row in report.rows}
    assert found["memory written"].bytes > 0 and found["interrupt vector 4"].answers > 0


def test_a_changed_bit_of_an_output_is_found(session: RecordedSession) -> None:
    """What was recorded is compared, not taken over."""
    events: list[Event] = list(session.events(DECODER))
    place, written = next(
        (number, event)
        for number, event in enumerate(events)
        if isinstance(event, MemoryWrite) and len(event.data.b) > 16
    )
    data = bytes([written.data.b[0] ^ 1]) + written.data.b[1:]
    events[place] = MemoryWrite(written.address, Octets(data))
    player = Player(function(), events)
    player.play()
    assert {each.name for each in player.places if each.differences} == {"memory written"}
