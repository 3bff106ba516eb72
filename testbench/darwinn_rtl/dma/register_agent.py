"""Agent of the register bus (AXI4-Lite), and the register model made from the register table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from darwinn_sim.chips.register_map import Access, Register
from pyuvm import (
    ConfigDB,
    uvm_access_e,
    uvm_analysis_port,
    uvm_driver,
    uvm_endianness_e,
    uvm_reg,
    uvm_reg_adapter,
    uvm_reg_block,
    uvm_reg_bus_op,
    uvm_reg_field,
    uvm_sequence,
    uvm_sequence_item,
    uvm_status_e,
)

from darwinn_rtl.bench import Bench, quiet
from darwinn_rtl.environment import SequencedAgent
from darwinn_rtl.registers_rdl import HARNESS_MAP, fields_of, is_constant

WORD_BYTES = 8

_POLICY = {
    Access.READ_WRITE: "RW",
    Access.READ_ONLY: "RO",
    Access.WRITE_ZERO_TO_CLEAR: "W0C",
}


class RegisterAccess(uvm_sequence_item):
    """A read or a write of one register; ``data`` and ``error`` are filled in by the driver.

    An access that a reset breaks off has an error.
    """

    def __init__(self, name: str, *, write: bool, address: int, data: int = 0) -> None:
        super().__init__(name)
        self.write = write
        self.address = address
        self.data = data
        self.error = False


class RegisterDriver(uvm_driver):
    """Carries out register accesses one after another."""

    def build_phase(self) -> None:
        """Attach the bus."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        dut = self.bench.dut
        self.master = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst_n, reset_active_level=False
        )
        quiet(self.master.write_if.log, self.master.read_if.log)
        self.accesses = uvm_analysis_port("accesses", self)

    async def run_phase(self) -> None:
        """Take items from the sequencer for ever."""
        while True:
            item = await self.seq_item_port.get_next_item()
            await self._perform(item)
            self.accesses.write(item)
            self.seq_item_port.item_done()

    async def _perform(self, item: RegisterAccess) -> None:
        if item.write:
            data = item.data.to_bytes(WORD_BYTES, "little")
            response = await self.master.write(item.address, data)
        else:
            response = await self.master.read(item.address, WORD_BYTES)
            item.data = int.from_bytes(response.data, "little") if response else 0
        item.error = not response or response.resp != AxiResp.OKAY
        kind = "write" if item.write else "read"
        self.bench.note(f"register {kind} {item.address:#x} data {item.data:#x}")


class RegisterAdapter(uvm_reg_adapter):
    """Turns accesses of the register model into bus accesses and back."""

    def reg2bus(self, rw: uvm_reg_bus_op) -> uvm_sequence_item:
        """The bus access that ``rw`` asks for."""
        write = rw.kind == uvm_access_e.UVM_WRITE
        return RegisterAccess("register_access", write=write, address=rw.addr, data=rw.data)

    def bus2reg(self, bus_item: uvm_sequence_item, rw: uvm_reg_bus_op) -> None:
        """Its result."""
        rw.data = bus_item.data
        rw.status = uvm_status_e.UVM_NOT_OK if bus_item.error else uvm_status_e.UVM_IS_OK


class LockedRegister(uvm_reg):
    """A register whose reset leaves its lock to the access that holds it.

    pyuvm's own takes the lock away, so two accesses may have it, and one gives it back twice.
    """

    def reset(self, kind: str = "HARD") -> None:
        """Reset the mirror of each field."""
        for field in self.get_fields():
            field.reset(kind)


class RegisterModel(uvm_reg_block):
    """Every register of the harness that is not a memory, by name, with its mirror.

    Registers that the harness changes are volatile: their mirrors take the value of each read.
    """

    def __init__(self, table: Iterable[Register] = HARNESS_MAP) -> None:
        super().__init__("registers")
        self.by_name: dict[str, uvm_reg] = {}
        self.table = {entry.name: entry for entry in table if entry.count == 1}
        self.map = self.create_map("map", 0, WORD_BYTES, uvm_endianness_e.UVM_LITTLE_ENDIAN)
        self.set_default_map(self.map)
        for entry in self.table.values():
            self._add(entry)
        self.lock_model()
        self.map.set_auto_predict(True)

    def _add(self, entry: Register) -> None:
        register = LockedRegister(entry.name, entry.width)
        register.configure(self)
        for field in fields_of(entry):
            model = uvm_reg_field(field.name)
            model.configure(
                register,
                field.width,
                field.low,
                _POLICY[entry.access],
                entry.access is not Access.READ_WRITE and not is_constant(entry),
                field.extract(entry.reset),
                has_reset=True,
                is_rand=False,
                individually_accessible=False,
            )
        self.map.add_reg(register, entry.offset)
        self.by_name[entry.name] = register

    async def read(self, name: str) -> int:
        """The value of register ``name``; raises ``AssertionError`` if the bus refuses."""
        status, value = await self.by_name[name].read()
        assert status == uvm_status_e.UVM_IS_OK, f"read of {name} refused"
        return int(value)

    async def write(self, name: str, value: int) -> None:
        """Write register ``name``; raises ``AssertionError`` if the bus refuses."""
        status = await self.by_name[name].write(value)
        assert status == uvm_status_e.UVM_IS_OK, f"write of {name} refused"


class SingleAccess(uvm_sequence):
    """One access of the bus, past the register model."""

    def __init__(self, item: RegisterAccess) -> None:
        super().__init__("access")
        self.item = item

    async def body(self) -> None:
        """Do it."""
        await self.start_item(self.item)
        await self.finish_item(self.item)


class RegisterAgent(SequencedAgent):
    """Sequencer and driver of the register bus, with the register model on top."""

    driver_class = RegisterDriver

    def connect_phase(self) -> None:
        """Connect driver and model to the sequencer."""
        super().connect_phase()
        self.model = RegisterModel()
        adapter: Any = RegisterAdapter("adapter")
        self.model.map.set_sequencer(self.sequencer, adapter)
        self._names = {entry.offset: name for name, entry in self.model.table.items()}

    async def access(self, *, write: bool, address: int, data: int = 0) -> RegisterAccess:
        """Do one access past the model, also to an offset without a register; return it with its
        answer."""
        item = RegisterAccess("access", write=write, address=address, data=data)
        await SingleAccess(item).start(self.sequencer)
        return item

    async def read_offset(self, offset: int) -> int:
        """The register at ``offset``, an entry of a memory too; ``AssertionError`` if refused."""
        if offset in self._names:
            return await self.model.read(self._names[offset])
        item = await self.access(write=False, address=offset)
        assert not item.error, f"read of offset {offset:#x} refused"
        return item.data

    async def write_offset(self, offset: int, value: int) -> None:
        """Write the register at ``offset``; as :meth:`read_offset`."""
        if offset in self._names:
            await self.model.write(self._names[offset], value)
            return
        item = await self.access(write=True, address=offset, data=value)
        assert not item.error, f"write of offset {offset:#x} refused"
