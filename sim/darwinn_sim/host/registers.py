"""Control and status registers: declarative tables.

``REGISTERS`` are those of the core, with its host interface; ``USB_REGISTERS`` those of the USB
attachment, ``SOC_REGISTERS`` those around the core: power, clocks, temperature, bus monitors. The
documentation (``python -m darwinn_sim.host.registers > docs/registers.md``) is generated from them.
An access to another offset is refused by a register file, because nothing is known about what it
would do; a chip that a stranger drives (``device``) notes it and goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from darwinn_sim.errors import SimulationError


class Access(Enum):
    """What the host may do with a register."""

    READ_WRITE = "read, write"
    READ_ONLY = "read"
    WRITE_ZERO_TO_CLEAR = "read, write 0 to clear"


@dataclass(frozen=True, slots=True)
class RegisterField:
    """A named group of bits: ``low`` is its least significant bit, ``width`` its bits."""

    name: str
    low: int
    width: int
    meaning: str

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return ((1 << self.width) - 1) << self.low

    def extract(self, value: int) -> int:
        """The field's value within the register value ``value``."""
        return (value & self.mask) >> self.low


@dataclass(frozen=True, slots=True)
class Register:
    """One register, or ``count`` of them that stand ``width`` bits apart.

    ``offset`` is the byte offset in base address register 2, ``width`` is in bits, ``reset`` the
    value after reset, ``source`` where offset and meaning are known from.
    """

    name: str
    offset: int
    meaning: str
    source: str
    width: int = 64
    reset: int = 0
    access: Access = Access.READ_WRITE
    fields: tuple[RegisterField, ...] = ()
    count: int = 1

    @property
    def end(self) -> int:
        """Byte offset behind the register."""
        return self.offset + self.count * self.width // 8

    def field(self, name: str) -> RegisterField:
        """Return the field called ``name``; raise ``KeyError`` if there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name}")


class RegisterFault(SimulationError):
    """A host access to a register that does not exist, or that the register does not allow."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"register at {offset:#07x}: {reason}")
        self.offset = offset
        self.reason = reason


class UnknownRegister(RegisterFault):
    """There is no such register in the model."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset, "no such register in the model")


CAPTURED = "traced, with the value that a published capture of a real chip shows"
TRACED = "traced: the open and close sequence of the user-space driver against a stub device"
DRIVER = "source of the user-space driver (libedgetpu) or of the kernel driver (gasket)"
FAULT_INJECTED = "traced, and checked by breaking the rule in a stub device"


def _bits(*fields: tuple[str, int, int, str]) -> tuple[RegisterField, ...]:
    return tuple(RegisterField(*field) for field in fields)


_RUN_CONTROL = _bits(("command", 0, 2, "0 idle, 1 run, 2 halt, 3 single step"))
_RUN_STATUS = _bits(("state", 0, 3, "0 idle, 1 run, 2 single step, 3 halting, 4 halted"))

RUN_CONTROLS: tuple[tuple[str, int, int | None], ...] = (
    ("scalar_core", 0x44018, 0x44258),
    ("av_data_pop", 0x44158, 0x44168),
    ("parameter_pop", 0x44198, 0x441A8),
    ("infeed", 0x441D8, 0x441E0),
    ("outfeed", 0x44218, 0x44220),
    ("op", 0x400C0, None),
    ("narrow_to_wide", 0x40150, None),
    ("wide_to_narrow", 0x40110, None),
    ("mesh_bus_0", 0x40250, None),
    ("mesh_bus_1", 0x40298, None),
    ("mesh_bus_2", 0x402E0, None),
    ("mesh_bus_3", 0x40328, None),
    ("ring_bus_consumer_0", 0x40190, None),
    ("ring_bus_consumer_1", 0x401D0, None),
    ("ring_bus_producer", 0x40210, None),
)
"""Unit, offset of its run control, offset of its run status (None: one per tile, not modelled).

The order is the one in which the driver starts and stops the units; ``tileconfig0`` is written
between the scalar core's units and those of the tiles.
"""

SCALAR_CORE_UNITS = 5
"""How many entries of ``RUN_CONTROLS`` come before the write of ``tileconfig0``."""


def _run_registers() -> Iterable[Register]:
    for unit, control, status in RUN_CONTROLS:
        where = "of every tile (broadcast by tileconfig0)" if status is None else "of the core"
        yield Register(
            f"{unit}_run_control",
            control,
            f"starts and stops unit {unit} {where}",
            TRACED,
            fields=_RUN_CONTROL,
        )
        if status is not None:
            yield Register(
                f"{unit}_run_status",
                status,
                f"state of unit {unit}",
                DRIVER,
                access=Access.READ_ONLY,
                fields=_RUN_STATUS,
            )


HIB_ERRORS = _bits(
    ("inbound_page_fault", 0, 1, "an entry of the page table on the chip is not valid"),
    ("extended_page_fault", 1, 1, "an entry of a second-level table is not valid"),
    ("instruction_queue_bad_configuration", 5, 1, "instruction queue enabled with bad settings"),
    ("input_queue_bad_configuration", 6, 1, "same, input queue"),
    ("parameter_queue_bad_configuration", 7, 1, "same, parameter queue"),
    ("output_queue_bad_configuration", 8, 1, "same, output queue"),
    ("instruction_queue_invalid", 9, 1, "instruction queue's tail is not one of its entries"),
    ("input_queue_invalid", 10, 1, "same, input queue"),
    ("parameter_queue_invalid", 11, 1, "same, parameter queue"),
    ("output_queue_invalid", 12, 1, "same, output queue"),
    ("length_0_dma", 13, 1, "descriptor of length 0"),
)
"""Fields of the error registers of the host interface block."""

_VECTOR_BITS = 7


def _vectors(name: str) -> tuple[RegisterField, ...]:
    return _bits(
        *(
            (f"{name}_{n}", n * _VECTOR_BITS, _VECTOR_BITS, f"MSI-X vector of interrupt {n}")
            for n in range(4)
        )
    )


_QUEUE_VECTOR = _bits(("vector", 0, _VECTOR_BITS, "MSI-X vector"))
_HOST_INTERRUPTS = _bits(
    *((f"interrupt_{n}", n, 1, f"scalar core host interrupt {n}") for n in range(4))
)
_TOP_LEVEL_INTERRUPTS = _bits(
    ("thermal_shutdown", 0, 1, "temperature too high"),
    ("pcie_error", 1, 1, "error on the PCIe side"),
    ("memory_test", 2, 1, "built-in self test of a memory"),
    ("thermal_warning", 3, 1, "temperature warning"),
)

PAGE_TABLE_ENTRIES = 8192
"""Entries of the page table on the chip."""

REGISTERS: tuple[Register, ...] = (
    Register(
        "deep_sleep",
        0x40020,
        "cycles that the tiles take to fall asleep and to wake",
        TRACED,
        fields=_bits(("to_sleep", 0, 8, "cycles"), ("to_wake", 8, 8, "cycles")),
    ),
    *_run_registers(),
    Register(
        "page_table_size",
        0x46000,
        "entries of the page table",
        DRIVER,
        reset=PAGE_TABLE_ENTRIES,
        access=Access.READ_ONLY,
    ),
    Register(
        "extended_table",
        0x46008,
        "first entry of the page table that serves extended addresses; those below serve simple "
        "addresses",
        FAULT_INJECTED,
        reset=PAGE_TABLE_ENTRIES,
    ),
    Register(
        "instruction_queue_int_vector",
        0x46018,
        "MSI-X vector of the instruction queue's interrupt",
        DRIVER,
        fields=_QUEUE_VECTOR,
    ),
    Register(
        "input_actv_queue_int_vector",
        0x46020,
        "MSI-X vector of the input queue's interrupt",
        DRIVER,
        fields=_QUEUE_VECTOR,
    ),
    Register(
        "param_queue_int_vector",
        0x46028,
        "MSI-X vector of the parameter queue's interrupt",
        DRIVER,
        fields=_QUEUE_VECTOR,
    ),
    Register(
        "output_actv_queue_int_vector",
        0x46030,
        "MSI-X vector of the output queue's interrupt",
        DRIVER,
        fields=_QUEUE_VECTOR,
    ),
    Register(
        "sc_host_int_vector",
        0x46038,
        "MSI-X vectors of the scalar core's host interrupts",
        DRIVER,
        fields=_vectors("sc_host_int"),
    ),
    Register(
        "top_level_int_vector",
        0x46040,
        "MSI-X vectors of the top-level interrupts",
        DRIVER,
        fields=_vectors("top_level_int"),
    ),
    Register(
        "fatal_err_int_vector",
        0x46048,
        "MSI-X vector of the fatal error interrupt",
        DRIVER,
        fields=_QUEUE_VECTOR,
    ),
    Register(
        "page_table_init",
        0x46078,
        "not 0: the page table has been initialised after reset",
        DRIVER,
        reset=1,
        access=Access.READ_ONLY,
    ),
    Register(
        "msix_table_init",
        0x46080,
        "not 0: the MSI-X table has been initialised after reset",
        DRIVER,
        reset=1,
        access=Access.READ_ONLY,
    ),
    Register(
        "instruction_queue_control",
        0x48568,
        "turns the instruction queue on",
        TRACED,
        fields=_bits(
            ("enable", 0, 1, "queue runs"),
            ("sc_desc_select", 1, 1, "refused: what it selects is not known"),
            ("status_block_enable", 2, 1, "write the status block when a chunk is done"),
        ),
    ),
    Register(
        "instruction_queue_status",
        0x48570,
        "1 once the queue runs",
        FAULT_INJECTED,
        access=Access.READ_ONLY,
        fields=_bits(("enabled", 0, 1, "queue runs")),
    ),
    Register(
        "instruction_queue_descriptor_size",
        0x48578,
        "bytes of a descriptor",
        FAULT_INJECTED,
        reset=16,
        access=Access.READ_ONLY,
    ),
    Register("instruction_queue_base", 0x48590, "device address of the ring", TRACED),
    Register(
        "instruction_queue_status_block_base",
        0x48598,
        "device address of the status block",
        TRACED,
    ),
    Register("instruction_queue_size", 0x485A0, "descriptors in the ring", TRACED),
    Register(
        "instruction_queue_tail",
        0x485A8,
        "index behind the last descriptor that the host has filled; writing it is the doorbell",
        TRACED,
    ),
    Register(
        "instruction_queue_fetched_head",
        0x485B0,
        "index of the next descriptor that the chip fetches",
        DRIVER,
        access=Access.READ_ONLY,
    ),
    Register(
        "instruction_queue_completed_head",
        0x485B8,
        "index of the first descriptor that the chip has not completed",
        DRIVER,
        access=Access.READ_ONLY,
    ),
    Register(
        "instruction_queue_int_control",
        0x485C0,
        "1: completion of a descriptor interrupts the host",
        TRACED,
        fields=_bits(("enable", 0, 1, "interrupt enabled")),
    ),
    Register(
        "instruction_queue_int_status",
        0x485C8,
        "a descriptor has been completed",
        TRACED,
        access=Access.WRITE_ZERO_TO_CLEAR,
        fields=_bits(("pending", 0, 1, "interrupt pending")),
    ),
    Register(
        "sc_host_int_control",
        0x486A0,
        "enables the scalar core's host interrupts",
        TRACED,
        fields=_HOST_INTERRUPTS,
    ),
    Register(
        "sc_host_int_status",
        0x486A8,
        "pending host interrupts of the scalar core",
        TRACED,
        access=Access.WRITE_ZERO_TO_CLEAR,
        fields=_HOST_INTERRUPTS,
    ),
    Register(
        "top_level_int_control",
        0x486B0,
        "enables the top-level interrupts",
        DRIVER,
        fields=_TOP_LEVEL_INTERRUPTS,
    ),
    Register(
        "top_level_int_status",
        0x486B8,
        "pending top-level interrupts",
        DRIVER,
        access=Access.WRITE_ZERO_TO_CLEAR,
        fields=_TOP_LEVEL_INTERRUPTS,
    ),
    Register(
        "fatal_err_int_control",
        0x486C0,
        "1: an error of the host interface interrupts the host",
        TRACED,
        fields=_bits(("enable", 0, 1, "interrupt enabled")),
    ),
    Register(
        "fatal_err_int_status",
        0x486C8,
        "an error of the host interface is pending",
        DRIVER,
        access=Access.WRITE_ZERO_TO_CLEAR,
        fields=_bits(("pending", 0, 1, "interrupt pending")),
    ),
    Register(
        "sc_host_int_count",
        0x486D0,
        "how often each host interrupt was raised, modulo 2**16",
        FAULT_INJECTED,
        access=Access.READ_ONLY,
        fields=_bits(*((f"count_{n}", 16 * n, 16, f"host interrupt {n}") for n in range(4))),
    ),
    Register(
        "dma_pause",
        0x486D8,
        "1: stop all DMA",
        FAULT_INJECTED,
        fields=_bits(("pause", 0, 1, "stop all DMA")),
    ),
    Register(
        "dma_paused",
        0x486E0,
        "1: no DMA is going on",
        FAULT_INJECTED,
        access=Access.READ_ONLY,
        fields=_bits(("paused", 0, 1, "no DMA is going on")),
    ),
    Register("status_block_update", 0x486E8, "interval of status block updates; 0: none", TRACED),
    Register(
        "hib_error_status",
        0x486F0,
        "errors of the host interface; not 0 when the driver opens the device: it refuses",
        FAULT_INJECTED,
        access=Access.WRITE_ZERO_TO_CLEAR,
        fields=HIB_ERRORS,
    ),
    Register(
        "hib_first_error_status",
        0x48700,
        "the first error since the register was cleared",
        DRIVER,
        access=Access.WRITE_ZERO_TO_CLEAR,
        fields=HIB_ERRORS,
    ),
    Register(
        "page_fault_address",
        0x48738,
        "device address of the last page fault",
        DRIVER,
        access=Access.READ_ONLY,
    ),
    Register(
        "tileconfig0",
        0x48788,
        "tile that the tile registers address; 0x7f: all of them",
        FAULT_INJECTED,
        fields=_bits(("tile", 0, 7, "tile number, or 0x7f")),
    ),
    Register("dma_burst_limiter", 0x487A8, "longest burst on the bus; 0: no limit", TRACED),
    Register(
        "idle_register",
        0x4A000,
        "clock gating of the idle core",
        TRACED,
        fields=_bits(
            ("counter", 0, 31, "idle cycles before the clock stops"),
            ("disable", 31, 1, "never stop the clock"),
        ),
    ),
    Register(
        "page_table",
        0x50000,
        "page table: bus address of a page (simple) or of a second-level table (extended)",
        FAULT_INJECTED,
        count=PAGE_TABLE_ENTRIES,
        fields=_bits(
            ("valid", 0, 1, "entry is valid"),
            ("page", 12, 52, "bus address, in units of 4096 bytes"),
        ),
    ),
)
"""Every register of the core and its host interface that the model implements."""


def _usb_interrupt(name: str, offset: int, meaning: str) -> Iterable[Register]:
    """Control and status of a USB interrupt, which stand together."""
    yield Register(f"usb_{name}_control", offset, f"enables: {meaning}", TRACED)
    yield Register(
        f"usb_{name}_status",
        offset + 8,
        f"set: {meaning}",
        DRIVER,
        access=Access.WRITE_ZERO_TO_CLEAR,
    )


USB_REGISTERS: tuple[Register, ...] = (
    Register("outfeed_chunk_length", 0x4C058, "bytes of a packet of outputs / 8", TRACED),
    *_usb_interrupt("fatal_err_int", 0x4C060, "fatal error, on endpoint 3"),
    *(
        register
        for number, field in enumerate(_TOP_LEVEL_INTERRUPTS)
        for register in _usb_interrupt(
            f"top_level_int_{number}", 0x4C070 + 16 * number, f"{field.meaning}, on endpoint 3"
        )
    ),
    Register(
        "descr_ep",
        0x4C148,
        "bit t: tell descriptors of tag t (4 to 7: interrupts) on endpoint 2; 0: interrupts alone",
        TRACED,
    ),
    Register(
        "ep_status_credit",
        0x4C150,
        "credits of the endpoints, in multi-endpoint mode; the model has none",
        DRIVER,
        access=Access.READ_ONLY,
    ),
    Register("multi_bo_ep", 0x4C160, "1: an endpoint for each kind of data", TRACED),
)
"""Registers of the USB attachment."""

SOC_REGISTERS: tuple[Register, ...] = (
    Register("gcbb_credit0", 0x1907C, "credits of a bus bridge", TRACED, width=32),
    Register(
        "omc0_00",
        0x1A000,
        "chip identification",
        TRACED,
        width=32,
        fields=_bits(("revision", 24, 8, "e-fuse revision")),
    ),
    Register("omc0_d0", 0x1A0D0, "thermal sensor", DRIVER, width=32),
    Register(
        "omc0_d4",
        0x1A0D4,
        "thermal warning",
        CAPTURED,
        width=32,
        reset=1,
        fields=_bits(("thm_warn_en", 31, 1, "warn")),
    ),
    Register(
        "omc0_d8",
        0x1A0D8,
        "thermal shutdown",
        TRACED,
        width=32,
        fields=_bits(("sd_en", 31, 1, "shut down")),
    ),
    Register("omc0_dc", 0x1A0DC, "temperature and its interrupts", DRIVER, width=32),
    Register("scu_ctrl_0", 0x1A30C, "inactive PHYs", CAPTURED, width=32, reset=0x000F0059),
    Register(
        "scu_ctrl_2",
        0x1A314,
        "clock gating and reset of the core",
        TRACED,
        width=32,
        reset=0x00190000,
        fields=_bits(
            ("rg_rst_gcb", 2, 2, "1: hold the core in reset, 2: let it go"),
            ("rg_gated_gcb", 18, 2, "1: clock gated by the hardware, 2: no gating"),
        ),
    ),
    Register(
        "scu_ctrl_3",
        0x1A318,
        "power and clocks of the core",
        CAPTURED,
        width=32,
        reset=0x50C5025C,
        fields=_bits(
            ("cur_rst_gcb", 4, 1, "the core is in reset"),
            ("cur_ram_sd", 6, 1, "its memories are shut down"),
            ("cur_pwr_state", 8, 2, "0 awake, 2 asleep"),
            ("rg_force_ram_sd", 14, 2, "3: shut the memories down; the core is reset"),
            ("rg_force_sleep", 22, 2, "3: sleep, 2: wake"),
            ("released", 26, 2, "2: written once the core is out of reset"),
            ("gcb_clkdiv", 28, 2, "clock of the core: 500, 250, 125, 63 MHz"),
            ("axi_125", 30, 1, "clock of the AXI bus: 125 MHz"),
            ("mcu_250", 31, 1, "clock of the 8051: 250 MHz"),
        ),
    ),
    Register("scu_ctr_7", 0x1A33C, "failures at boot", CAPTURED, width=32, reset=0x3F),
    Register("slv_abm_en", 0x1A500, "bus monitor", TRACED, width=32),
    Register("slv_err_resp_isr_mask", 0x1A558, "bus monitor", TRACED, width=32),
    Register("mst_abm_en", 0x1A600, "bus monitor", TRACED, width=32),
    Register("mst_err_resp_isr_mask", 0x1A658, "bus monitor", TRACED, width=32),
    Register("rambist_ctrl_1", 0x1A704, "test of memories", CAPTURED, width=32, reset=0x0070007F),
)
"""Registers around the core; but for ``scu_ctrl_3``, what is written is read back."""

SCU_CTRL_3_BY_PCIE = 0x5005004C
"""What ``scu_ctrl_3`` is after power-up with PCIe: awake, and its memories shut down [T]."""

_BY_NAME = {entry.name: entry for entry in (*REGISTERS, *USB_REGISTERS, *SOC_REGISTERS)}


def register(name: str) -> Register:
    """Return the register called ``name``; raise ``KeyError`` if there is none."""
    return _BY_NAME[name]


def _field_text(field: RegisterField) -> str:
    high = field.low + field.width - 1
    bits = f"{field.low}" if field.width == 1 else f"{high}:{field.low}"
    return f"| | | | [{bits}] `{field.name}` | | {field.meaning} | |"


def documentation() -> str:
    """The register tables as a page of Markdown (docs/registers.md)."""
    lines = [
        "# Registers",
        "",
        "This page lists every register that the model has, with its fields, access, reset value",
        "and source. [The host interface](host-interface.md) explains how driver and chip use",
        "them.",
        "",
        "`python -m darwinn_sim.host.registers` generates this page; do not edit it. Offsets are",
        "in bytes from base address register 2 (1 MiB). All registers are little-endian.",
    ]
    for title, table in _TABLES:
        lines += ["", f"## {title}", "", *_table_text(table)]
    return "\n".join(lines) + "\n"


_TABLES = (
    ("The core, with its host interface", REGISTERS),
    ("The USB attachment", USB_REGISTERS),
    ("Around the core", SOC_REGISTERS),
)


def _table_text(table: tuple[Register, ...]) -> list[str]:
    lines = [
        "| offset | bits | reset | register, fields | access | meaning | known from |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in sorted(table, key=lambda register: register.offset):
        name = f"`{entry.name}`" + (f" x {entry.count}" if entry.count > 1 else "")
        lines.append(
            f"| {entry.offset:05X} | {entry.width} | {entry.reset:#x} | {name} "
            f"| {entry.access.value} | {entry.meaning} | {entry.source} |"
        )
        lines += map(_field_text, entry.fields)
    return lines


if __name__ == "__main__":
    sys.stdout.write(documentation())
