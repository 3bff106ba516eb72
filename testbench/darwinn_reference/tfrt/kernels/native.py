"""The native functions that the original's tests have."""

from __future__ import annotations

from functools import partial
from typing import Any

from darwinn_reference.tfrt.host import Host
from darwinn_reference.tfrt.kernels.control_flow import run_later
from darwinn_reference.tfrt.kernels.testing import BAD
from darwinn_reference.tfrt.plan import NativeFunction
from darwinn_reference.tfrt.values import CHAIN, AsyncValue, KernelError


def native_functions(host: Host) -> dict[str, NativeFunction]:
    """The native functions that the original's tests have."""
    return {
        "native_add": native_add,
        "native_async_add": partial(native_async_add, host),
        "native_sink": native_sink,
        "native_async_sink": partial(native_async_sink, host),
        "native_error": native_error,
    }


def native_add(first: int, second: int) -> int:
    """The sum."""
    return first + second


def native_async_add(host: Host, first: int, second: int) -> AsyncValue:
    """The sum, by a queued task."""
    (later,) = run_later(host, 1, lambda: [first + second])
    assert isinstance(later, AsyncValue)
    return later


def native_sink(*_: Any) -> None:
    """Nothing."""


def native_async_sink(host: Host, *_: Any) -> AsyncValue:
    """A chain, by a queued task."""
    (later,) = run_later(host, 1, lambda: [CHAIN])
    assert isinstance(later, AsyncValue)
    return later


def native_error() -> int:
    """An error that has no diagnostic."""
    raise KernelError(BAD)
