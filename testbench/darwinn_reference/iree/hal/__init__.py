"""The ``hal``, ``hal_inline`` and ``hal_loader`` modules: a device that does all at once, in order.

Every queue operation is done when it is called, so that fences are passed before anyone waits.
Command buffers are lists of commands that run when they are executed; a command whose buffer is
null takes the one that the execution binds to its slot.
"""

from darwinn_reference.iree.hal import buffers, commands, devices, executables, queues
from darwinn_reference.iree.hal.devices import EXECUTABLE_FORMAT
from darwinn_reference.iree.hal.loader import HAL_LOADER
from darwinn_reference.iree.hal.objects import HAL, HAL_INLINE, BufferView, HalBuffer

__all__ = [
    "EXECUTABLE_FORMAT",
    "HAL",
    "HAL_INLINE",
    "HAL_LOADER",
    "BufferView",
    "HalBuffer",
    "buffers",
    "commands",
    "devices",
    "executables",
    "queues",
]
