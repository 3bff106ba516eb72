"""The instruction queue of a program that has /dev/apex_0 open: a ring, and a status block."""

from __future__ import annotations

import struct

from darwinn_sim.host.registers import RUN_CONTROLS

PAGE = 4096
RING, STATUS = 0x0100_0000, 0x0100_1000
"""Their device addresses, a page each."""

SET_UP = (
    ("instruction_queue_base", RING),
    ("instruction_queue_status_block_base", STATUS),
    ("instruction_queue_size", 256),
    ("instruction_queue_control", 5),
    ("sc_host_int_control", 15),
    ("instruction_queue_int_control", 1),
    ("fatal_err_int_control", 1),
    *((f"{unit}_run_control", 1) for unit in RUN_CONTROLS),
)
"""Registers with what a user-space driver writes: the queue and interrupts on, all units run."""


def descriptor(device: int, size: int) -> bytes:
    """An entry of the ring: a chunk of ``size`` bytes at a device address."""
    return struct.pack("<QII", device, size, 0)
