"""The thread that computes for a device: when it works, how often it looks, and when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from darwinn_sim.device.worker import _LEAST_SECONDS, Worker

BOUND = 10.0
"""Seconds after which a wait has failed."""


class Device:
    """Has ``work`` to do so many times, and becomes due after ``seconds`` by itself."""

    def __init__(self, seconds: float | None = None) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.patience: Callable[[], float | None] = lambda: seconds
        self.left = 0
        self.worked = 0
        self.idle = threading.Semaphore(0)

    def work(self) -> bool:
        self.worked += 1
        if self.left:
            self.left -= 1
            return True
        self.idle.release()
        return False


@contextmanager
def at_work(device: Device) -> Iterator[Worker]:
    with Worker(device) as worker:
        yield worker


def test_it_works_when_it_is_woken_until_there_is_nothing_left() -> None:
    device = Device()
    with at_work(device):
        assert not device.idle.acquire(timeout=0.05), "nobody has woken it"
        for times, total in ((3, 4), (0, 5), (1, 7)):
            device.left = times
            device.wake()
            assert device.idle.acquire(timeout=BOUND)
            assert device.worked == total
    assert not device.idle.acquire(timeout=0.05)


def test_work_that_was_asked_for_before_it_began_is_done() -> None:
    device = Device()
    worker = Worker(device)
    device.wake()
    with worker:
        assert device.idle.acquire(timeout=BOUND)


def test_it_looks_by_itself_when_something_is_due() -> None:
    device = Device(seconds=0.0)
    with at_work(device):
        for _ in range(3):
            assert device.idle.acquire(timeout=BOUND)


@pytest.mark.parametrize(
    ("patience", "expected"),
    [(None, None), (0.0, _LEAST_SECONDS), (_LEAST_SECONDS / 2, _LEAST_SECONDS), (7.5, 7.5)],
)
def test_it_waits_as_long_as_the_device_can(
    patience: float | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that is due at once makes it look more often than every millisecond."""
    device, waited = Device(patience), threading.Semaphore(0)
    worker = Worker(device)
    asked: list[float | None] = []
    wait_for = worker._condition.wait_for

    def note(predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        asked.append(timeout)
        waited.release()
        return wait_for(predicate, timeout)

    monkeypatch.setattr(worker._condition, "wait_for", note)
    with worker:
        assert waited.acquire(timeout=BOUND)
    assert asked[0] == expected


def test_it_ends_while_there_is_work_without_end() -> None:
    device = Device()
    device.left = 1 << 62
    with at_work(device) as worker:
        device.wake()
        while not device.worked:
            pass
    assert not worker._thread.is_alive()
    worked = device.worked
    assert not device.idle.acquire(timeout=0.05)
    assert device.worked == worked


def test_it_ends_while_it_waits_for_a_long_time() -> None:
    for seconds in (None, 1e6):
        with at_work(Device(seconds)) as worker:
            pass
        assert not worker._thread.is_alive()


def test_it_does_not_outlive_the_process() -> None:
    assert Worker(Device())._thread.daemon
