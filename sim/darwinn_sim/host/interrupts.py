"""Interrupts of the chip: host interrupts 0 to 3, instruction queue, fatal error.

Facts: docs/host-interface.md, section "Interrupts".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import HIB_ERRORS, register

HOST_INTERRUPTS = 4
"""Interrupts that the scalar core can raise at the host."""

_COUNTER_MASK = 0xFFFF
_ERROR_BITS = {field.name: field.mask for field in HIB_ERRORS}

_SC_HOST_VECTORS = (4, 5, 6, 7)
_TOP_LEVEL_VECTORS = (8, 9, 10, 11)
_FATAL_VECTOR = 12
_QUEUE_VECTORS = (
    "instruction_queue_int_vector",
    "input_actv_queue_int_vector",
    "param_queue_int_vector",
    "output_actv_queue_int_vector",
)


def set_up_vectors(write: Callable[[str, int], None]) -> None:
    """The kernel driver's share: MSI-X vectors after reset; ``write`` takes a register by name."""
    for vector, name in enumerate(_QUEUE_VECTORS):
        write(name, vector)
    for name, prefix, vectors in (
        ("sc_host_int_vector", "sc_host_int", _SC_HOST_VECTORS),
        ("top_level_int_vector", "top_level_int", _TOP_LEVEL_VECTORS),
    ):
        fields = register(name)
        packed = sum(
            vector << fields.field(f"{prefix}_{number}").low
            for number, vector in enumerate(vectors)
        )
        write(name, packed)
    write("fatal_err_int_vector", _FATAL_VECTOR)


class InterruptSource(Enum):
    """Who interrupts the host."""

    SCALAR_CORE = "scalar core"
    INSTRUCTION_QUEUE = "instruction queue"
    FATAL_ERROR = "fatal error"


@dataclass(frozen=True, slots=True)
class InterruptMessage:
    """A message-signalled interrupt that the host receives.

    ``number`` is the host interrupt of the scalar core (0 for the other sources), ``vector`` the
    MSI-X vector.
    """

    source: InterruptSource
    number: int
    vector: int


class InterruptController:
    """Status, count and mask registers, and the messages that reached the host.

    ``raised`` lists the numbers of the scalar core's host interrupts, masked or not, ``messages``
    what was sent to the host, since :meth:`forget`.

    Args:
        registers: those of the chip.
        sink: takes what is sent to the host, which is not listed then.
    """

    def __init__(
        self, registers: RegisterFile, sink: Callable[[InterruptMessage], None] | None = None
    ) -> None:
        self._registers = registers
        self.raised: list[int] = []
        self.messages: list[InterruptMessage] = []
        self._sink = sink or self.messages.append

    def forget(self) -> None:
        """List no more what has been raised and sent so far."""
        self.raised.clear()
        self.messages.clear()

    def raise_host_interrupt(self, number: int) -> None:
        """Host interrupt ``number`` (0 to 3): count it, set its status, tell the host if enabled.

        Raises ``ValueError`` for another number.
        """
        if not 0 <= number < HOST_INTERRUPTS:
            raise ValueError(f"host interrupt {number} does not exist")
        self.raised.append(number)
        counts = self._registers.get("sc_host_int_count")
        counter = register("sc_host_int_count").field(f"count_{number}")
        count = (counter.extract(counts) + 1) & _COUNTER_MASK
        self._registers.set("sc_host_int_count", counts & ~counter.mask | count << counter.low)
        vectors = register("sc_host_int_vector").field(f"sc_host_int_{number}")
        self._signal(
            "sc_host_int",
            1 << number,
            InterruptMessage(
                InterruptSource.SCALAR_CORE,
                number,
                vectors.extract(self._registers.get("sc_host_int_vector")),
            ),
        )

    def raise_instruction_queue(self) -> None:
        """A descriptor of the instruction queue has been completed."""
        vector = self._registers.get("instruction_queue_int_vector")
        self._signal(
            "instruction_queue_int",
            1,
            InterruptMessage(InterruptSource.INSTRUCTION_QUEUE, 0, vector),
        )

    def report_error(self, error: str) -> None:
        """Note ``error`` (a field of ``hib_error_status``) and raise the fatal interrupt."""
        bit = _ERROR_BITS[error]
        registers = self._registers
        registers.set("hib_error_status", registers.get("hib_error_status") | bit)
        if not registers.get("hib_first_error_status"):
            registers.set("hib_first_error_status", bit)
        vector = registers.get("fatal_err_int_vector")
        self._signal("fatal_err_int", 1, InterruptMessage(InterruptSource.FATAL_ERROR, 0, vector))

    def _signal(self, prefix: str, bit: int, message: InterruptMessage) -> None:
        """Set the status bit; send the message if the control register enables it."""
        registers = self._registers
        registers.set(f"{prefix}_status", registers.get(f"{prefix}_status") | bit)
        if registers.get(f"{prefix}_control") & bit:
            self._sink(message)
