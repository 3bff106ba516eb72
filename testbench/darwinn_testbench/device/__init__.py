"""The simulated chip for unmodified applications: what they call is the vendor's, or LiteRT's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from darwinn_testbench.device.interpreter import Interpreter
    from darwinn_testbench.device.usb.pyusb import pyusb_backend

__all__ = ["Interpreter", "pyusb_backend"]

_HOMES = {
    "Interpreter": "darwinn_testbench.device.interpreter",
    "pyusb_backend": "darwinn_testbench.device.usb.pyusb",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
