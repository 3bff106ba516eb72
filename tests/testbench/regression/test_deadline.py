"""A deadline raises in its own thread, within its time, and nowhere behind it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from darwinn_testbench.regression.deadline import Late, deadline


def endless() -> None:
    while True:
        with suppress(Exception):
            time.sleep(0.001)


def test_what_takes_too_long_is_late() -> None:
    with pytest.raises(Late), deadline(0.05):
        endless()


def test_what_is_in_time_is_not() -> None:
    with deadline(0.05):
        pass
    with pytest.raises(ZeroDivisionError), deadline(0.05):
        _ = 1 // 0
    for _ in range(100):
        time.sleep(0.001)


def test_each_thread_has_its_own() -> None:
    def late(seconds: float) -> bool:
        try:
            with deadline(seconds):
                for _ in range(200):
                    time.sleep(0.001)
        except Late:
            return True
        return False

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(late, [0.02, 60, 0.03, 60])) == [True, False, True, False]


def test_it_comes_within_or_never() -> None:
    """Also where the end of the time and the end of what was done are the same moment."""
    late = 0
    for number in range(300):
        try:
            with deadline(0.0005 + number % 7 * 0.0001):
                time.sleep(0.0008)
        except Late:
            late += 1
        # An exception that comes now would fail the test.
        for _ in range(50):
            threading.get_ident()
    assert 0 < late <= 300


@pytest.mark.parametrize("seconds", [1e9, 1e12, float("inf")])
def test_a_long_time_is_no_error(seconds: float) -> None:
    with deadline(seconds):
        pass
