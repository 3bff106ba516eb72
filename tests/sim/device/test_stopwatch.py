"""The clock that stands still while a chip computes."""

from __future__ import annotations

from darwinn_sim.device.stopwatch import Stopwatch


def test_idle_time_is_what_is_left_of_all() -> None:
    now = [100.0]
    watch = Stopwatch(lambda: now[0])
    assert (watch.seconds, watch.idle_seconds()) == (0.0, 100.0)
    with watch:
        now[0] += 5
        # Also while it runs.
        assert (watch.seconds, watch.idle_seconds()) == (5.0, 100.0)
    now[0] += 2
    assert (watch.seconds, watch.idle_seconds()) == (5.0, 102.0)
    with watch:
        now[0] += 1
    assert (watch.seconds, watch.idle_seconds()) == (6.0, 102.0)
