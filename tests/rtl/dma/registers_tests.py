"""The register block on the register bus: resets, access rules, refusals, the page table."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations, product

import cocotb
import pyuvm
from cocotb.triggers import Combine, with_timeout
from darwinn_rtl.dma.environment import DmaEnvironment, DmaTest
from darwinn_rtl.dma.register_agent import RegisterAccess
from darwinn_rtl.registers_rdl import fields_of, is_constant
from darwinn_sim.chips.register_map import Access, Register
from darwinn_sim.host.registers import register

LONGEST_NS = 400
"""Bound of the wait for a few accesses."""

UNKNOWN_OFFSETS = (0x0, 0x44020, 0x4F028, 0x60000)


async def access(
    environment: DmaEnvironment, *, write: bool, address: int, data: int = 0
) -> RegisterAccess:
    """Do one access; return the item with its answer."""
    return await environment.registers_agent.access(write=write, address=address, data=data)


def writable_bits(entry: Register) -> int:
    return sum(field.mask for field in fields_of(entry))


@pyuvm.test()
class ResetValues(DmaTest):
    """After reset every register reads as the table says, and the model's mirror agrees."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        await environment.reset()
        model = environment.registers
        for name, entry in model.table.items():
            value = await model.read(name)
            assert value == entry.reset, f"{name} is {value:#x} after reset"
            assert model.by_name[name].get_mirrored_value() == value, name


@pyuvm.test()
class AccessRules(DmaTest):
    """Writable bits keep what is written, others read 0, read-only registers refuse writes."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        await environment.reset()
        model, random = environment.registers, self.bench.random
        for name, entry in model.table.items():
            if entry.access is Access.READ_WRITE:
                value = random.getrandbits(64)
                await model.write(name, value)
                found = await model.read(name)
                assert found == value & writable_bits(entry), f"{name}: {found:#x}"
                await model.write(name, entry.reset)
            elif entry.access is Access.READ_ONLY:
                refused = await access(environment, write=True, address=entry.offset, data=1)
                assert refused.error, f"write of {name} is not refused"
                assert not is_constant(entry) or await model.read(name) == entry.reset, name
            else:
                # What was set, such as by a queue that was turned on without entries, stays.
                before = await model.read(name)
                await model.write(name, 2**64 - 1)
                assert await model.read(name) == before, f"{name}: a write changes bits"
                await model.write(name, 0)
                await model.write(name, 2**64 - 1)
                assert await model.read(name) == 0, f"{name}: a write sets bits"


@pyuvm.test()
class UnknownOffsets(DmaTest):
    """An offset that the table does not name is refused, for reads and writes."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        await environment.reset()
        for offset in UNKNOWN_OFFSETS:
            for write in (False, True):
                found = await access(environment, write=write, address=offset)
                assert found.error, f"offset {offset:#x} write {write} is not refused"


@pyuvm.test()
class PageTable(DmaTest):
    """The page table keeps its entries, the first and the last among them."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        await environment.reset()
        table, random = register("page_table"), self.bench.random
        chosen = {0, table.count - 1, *random.sample(range(table.count), 30)}
        written = {entry: random.getrandbits(64) for entry in chosen}
        for entry, value in written.items():
            await access(environment, write=True, address=table.offset + 8 * entry, data=value)
        for entry, value in written.items():
            found = await access(environment, write=False, address=table.offset + 8 * entry)
            assert (found.error, found.data) == (False, value), f"entry {entry}: {found.data:#x}"


@pyuvm.test()
class UnitStates(DmaTest):
    """The status of a unit of the core follows its run control: idle, running, halted."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        await environment.reset()
        model = environment.registers
        for unit in ("scalar_core", "av_data_pop", "parameter_pop", "infeed", "outfeed"):
            for command, state in ((1, 1), (2, 4), (0, 0)):
                await model.write(f"{unit}_run_control", command)
                assert await model.read(f"{unit}_run_status") == state, unit


@pyuvm.test()
class AnyHost(DmaTest):
    """A host may give the value of a write before its address or behind it, have several accesses
    under way, and take answers when it likes: each does what it should."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        await environment.reset()
        random, host = self.bench.random, environment.registers_agent.driver.master
        writes, reads = host.write_if, host.read_if
        channels = (
            *(writes.aw_channel, writes.w_channel, writes.b_channel),
            *(reads.ar_channel, reads.r_channel),
        )
        table = register("page_table").offset
        offsets = [register("instruction_queue_base").offset, table + 8 * 4097]
        offsets += [register("instruction_queue_tail").offset, table + 8]
        values = {offset: random.randbytes(8) for offset in offsets}
        for offset, value in values.items():
            await host.write(offset, value)
        several = [held for count in (1, 2) for held in combinations(channels, count)]
        for held, cycles in product(several, range(1, 7)):
            random.shuffle(offsets)
            given = {offset: random.randbytes(8) for offset in offsets[:2]}
            for channel in held:
                channel.pause = True
            writing = [cocotb.start_soon(host.write(at, data)) for at, data in given.items()]
            reading = [cocotb.start_soon(host.read(at, 8)) for at in offsets[2:]]
            for channel in held:
                await self.bench.cycles(cycles)
                channel.pause = False
            await with_timeout(Combine(*writing, *reading), LONGEST_NS, "ns")
            for offset, task in zip(offsets[2:], reading, strict=True):
                assert task.result().data == values[offset], f"{offset:#x} after {cycles} cycles"
            values |= given


@pyuvm.test()
class AccessesBesideAReset(DmaTest):
    """Accesses of one register, under way in whatever cycle a reset comes, all end, in error or
    not; so do those behind it."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        await environment.reset()

        async def ends(name: str) -> None:
            with suppress(AssertionError):  # the reset breaks it off
                await environment.registers.read(name)

        for before in range(12):
            under_way = [cocotb.start_soon(ends("dma_paused")) for _ in range(3)]
            await self.bench.cycles(before)
            await environment.reset()
            under_way.append(cocotb.start_soon(ends("dma_paused")))
            await with_timeout(Combine(*under_way), 4 * LONGEST_NS, "ns")
            assert await environment.registers.read("dma_paused") == 0
