"""The simulated chip for unmodified applications: what they call is the vendor's, or LiteRT's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from darwinn_testbench.device.usb.pyusb import pyusb_backend

__all__ = ["pyusb_backend"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from darwinn_testbench.device.usb import pyusb

    return getattr(pyusb, name)
