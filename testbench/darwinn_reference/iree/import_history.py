"""Which release of IREE declares which imports: names, calling conventions, first and last one.

The table was read from the declarations (``*.imports.mlir``) inside every released compiler:
iree-compiler until 20241104.1068, iree-base-compiler from 2.9.0. A test finds each line of the
table either implemented or in :data:`REFUSED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_RELEASES = """
20230209.425 20230228.444 20230404.479 20230419.494 20230524.529 20230815.614
20231004.665 20231113.707 20231218.742 20240129.785 20240226.813 20240410.859
20240621.931 20240724.964 20240828.999 20241104.1068 2.9.0 3.0.0 3.1.0 3.2.0 3.3.0 3.4.0
3.5.0 3.6.0 3.7.0 3.7.1 3.8.0 3.9.0 3.10.0 3.11.0 3.12.0 3.13.0
"""
RELEASES = tuple(_RELEASES.split())
"""Releases in their order."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An import with one calling convention, and the first and the last release that has it."""

    name: str
    convention: str
    first: str
    last: str


_SEVERAL_DEVICES = "several devices that work together"
_OLD_KERNELS = "kernels of --iree-vmvx-enable-microkernels before release 20230524.529"
REFUSED: Mapping[str, str] = {
    "hal.channel.": _SEVERAL_DEVICES,
    "hal.command_buffer.collective": _SEVERAL_DEVICES,
    "vmvx.matmul.": _OLD_KERNELS,
    "vmvx.mmt4d.": _OLD_KERNELS,
    "vmvx.pack.": _OLD_KERNELS,
    "vmvx.unpack.": _OLD_KERNELS,
}
"""Imports that are refused, by the beginning of their names, and what they are for."""


def why_refused(name: str, convention: str) -> str:
    """What is known of an import that is not implemented; an empty text if nothing is."""
    for beginning, reason in REFUSED.items():
        if name.startswith(beginning):
            return reason
    known = [entry for entry in DECLARED if entry.name == name]
    if known and all(entry.convention != convention for entry in known):
        return f"no release from {RELEASES[0]} to {RELEASES[-1]} has this calling convention"
    return ""


def _declared(line: str) -> Declared:
    name, convention, releases = line.split()
    first, _, last = releases.partition("-")
    return Declared(name, convention, first or RELEASES[0], last or RELEASES[-1])


_TABLE = """
hal.allocator.allocate 0riiI_r -20230815.614
hal.allocator.allocate 0rIiiI_r 20231004.665-
hal.allocator.allocate.initialized 0riirII_r -20230815.614
hal.allocator.import 0riIiirII_r 20231004.665-
hal.allocator.map.byte_buffer 0riiirII_r -20230815.614
hal.allocator.select 0iiICrID_rI 3.5.0-
hal.buffer.allocation.discard 0r_i 3.4.0-
hal.buffer.allocation.is_terminal 0r_i 3.4.0-
hal.buffer.allocation.preserve 0r_v 3.4.0-
hal.buffer.assert 0rrrIii_v -
hal.buffer.length 0r_I -
hal.buffer.load 0rIi_i -
hal.buffer.store 0irIi_v -
hal.buffer.subspan 0rII_r -
hal.buffer_view.assert 0rriiCID_v -
hal.buffer_view.buffer 0r_r -
hal.buffer_view.create 0rIIiiCID_r -
hal.buffer_view.dim 0ri_I -
hal.buffer_view.element_type 0r_i -
hal.buffer_view.encoding_type 0r_i -
hal.buffer_view.rank 0r_i -
hal.buffer_view.trace 0rCrD_v -
hal.channel.create 0rIii_r -20230228.444
hal.channel.create 0rIirrii_r 20230404.479-3.3.0
hal.channel.create 0rIIrrii_r 3.4.0-
hal.channel.rank_and_count 0r_ii -
hal.channel.split 0riii_r 20230524.529-3.3.0
hal.channel.split 0riiI_r 3.4.0-
hal.command_buffer.advise_buffer 0rrIIIi_v 3.4.0-
hal.command_buffer.begin_debug_group 0rr_v -
hal.command_buffer.collective 0rriirIIrIII_v -20240724.964
hal.command_buffer.collective 0rriiiirrIIIII_v 20240828.999-
hal.command_buffer.copy_buffer 0rrIrII_v -20240724.964
hal.command_buffer.copy_buffer 0riirIrII_v 20240828.999-3.3.0
hal.command_buffer.copy_buffer 0riirIrIII_v 3.4.0-
hal.command_buffer.create 0riii_r -20240724.964
hal.command_buffer.create 0riiIi_r 20240828.999-
hal.command_buffer.dispatch 0rriiii_v -20240724.964
hal.command_buffer.dispatch 0rriiiiICiDCiirIID_v 20240828.999-3.11.0
hal.command_buffer.dispatch 0rrIiiiICiDCiirIID_v 3.12.0-
hal.command_buffer.dispatch.indirect 0rrirI_v -20240724.964
hal.command_buffer.dispatch.indirect 0rriirIICiDCiirIID_v 20240828.999-3.11.0
hal.command_buffer.dispatch.indirect 0rrIirIICiDCiirIID_v 3.12.0-
hal.command_buffer.end_debug_group 0r_v -
hal.command_buffer.execute.commands 0rrCrIID_v -20240621.931
hal.command_buffer.execution_barrier 0riii_v -3.3.0
hal.command_buffer.execution_barrier 0riiI_v 3.4.0-
hal.command_buffer.fill_buffer 0rrIIii_v -20240724.964
hal.command_buffer.fill_buffer 0rrIIiii_v 20240828.999-3.3.0
hal.command_buffer.fill_buffer 0rrIIiIiI_v 3.4.0-
hal.command_buffer.finalize 0r_v -
hal.command_buffer.flush_buffer 0rirII_v 3.13.0-
hal.command_buffer.invalidate_buffer 0rirII_v 3.13.0-
hal.command_buffer.push_constants 0rriCiD_v -20240724.964
hal.command_buffer.push_descriptor_set 0rriCiirIID_v -20240724.964
hal.command_buffer.update_buffer 0rrIrIIi_v 20240828.999-3.3.0
hal.command_buffer.update_buffer 0rrIrIIiI_v 3.4.0-
hal.descriptor_set_layout.create 0riCiiiD_r -20240724.964
hal.device.allocator 0r_r -
hal.device.query.i64 0rrr_iI -
hal.device.queue.alloca 0rIrriiiI_r -3.3.0
hal.device.queue.alloca 0rIrrIiiII_r 3.4.0-
hal.device.queue.barrier 0rIrrI_v 3.4.0-
hal.device.queue.copy 0rIrrrIrIII_v 2.9.0-
hal.device.queue.dealloca 0rIrrr_v -3.3.0
hal.device.queue.dealloca 0rIrrrI_v 3.4.0-
hal.device.queue.execute 0rIrrCrD_v -3.3.0
hal.device.queue.execute 0rIrrrI_v 3.4.0-
hal.device.queue.execute.indirect 0rIrrrCrIID_v 20240724.964-3.3.0
hal.device.queue.execute.indirect 0rIrrrICrIID_v 3.4.0-
hal.device.queue.fill 0rIrrrIIIiI_v 2.9.0-
hal.device.queue.flush 0rI_v -
hal.device.queue.read 0rIrrrIrIIi_v 20231004.665-3.3.0
hal.device.queue.read 0rIrrrIrIII_v 3.4.0-
hal.device.queue.update 0rIrrrIrIII_v 2.9.0-
hal.device.queue.write 0rIrrrIrIIi_v 20231004.665-3.3.0
hal.device.queue.write 0rIrrrIrIII_v 3.4.0-
hal.devices.count 0v_i 20231218.742-
hal.devices.get 0i_r 20231218.742-
hal.ex.file.from_memory 0rIirIIi_r 20231004.665-
hal.ex.shared_device 0v_r -20231113.707
hal.ex.submit_and_wait 0rr_v -20230419.494
hal.executable.create 0rrrrCrD_r -20240724.964
hal.executable.create 0rrrr_r 20240828.999-3.3.0
hal.executable.create 0rIrrr_r 3.4.0-
hal.executable.lookup.function 0rr_I 3.12.0-
hal.fence.await 0iCrD_i -3.3.0
hal.fence.await 0iICrD_i 3.4.0-
hal.fence.create 0ri_r -3.3.0
hal.fence.create 0rI_r 3.4.0-
hal.fence.fail 0ri_v -
hal.fence.join 0CrD_r -3.3.0
hal.fence.join 0ICrD_r 3.4.0-
hal.fence.query 0r_i -
hal.fence.signal 0r_v -
hal.pipeline_layout.create 0riCrD_r -20240724.964
hal_inline.buffer.allocate 0iI_rr -
hal_inline.buffer.allocate.initialized 0irII_rr -
hal_inline.buffer.length 0r_I -
hal_inline.buffer.storage 0r_r -
hal_inline.buffer.subspan 0rII_r -
hal_inline.buffer.wrap 0rII_r -
hal_inline.buffer_view.assert 0rriiCID_v -
hal_inline.buffer_view.buffer 0r_r -
hal_inline.buffer_view.create 0rIIiiCID_r -
hal_inline.buffer_view.dim 0ri_I -
hal_inline.buffer_view.element_type 0r_i -
hal_inline.buffer_view.encoding_type 0r_i -
hal_inline.buffer_view.rank 0r_i -
hal_inline.buffer_view.trace 0rCrD_v -
hal_inline.device.query.i64 0rr_iI -
hal_loader.executable.dispatch 0riiiiCiDCrIID_v -3.11.0
hal_loader.executable.dispatch 0rIiiiCiDCrIID_v 3.12.0-
hal_loader.executable.load 0rrr_r -
hal_loader.executable.lookup.function 0rr_I 3.12.0-
hal_loader.executable.query_support 0r_i -
io_parameters.gather 0rIrrrrrrr_v 20231113.707-
io_parameters.load 0rIrrrrIIiiI_r 20231113.707-20231113.707
io_parameters.load 0rIrrrIiirrr_r 20231218.742-
io_parameters.read 0rIrrrrIrII_v 20231113.707-20231113.707
io_parameters.scatter 0rIrrrrrrr_v 20231113.707-
io_parameters.write 0rIrrrrIrII_v 20231113.707-20231113.707
vmvx.abs.2d.f32 0rIIIrIIIII_v -
vmvx.add.2d.f32 0rIIIrIIIrIIIII_v -
vmvx.add.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.and.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.ceil.2d.f32 0rIIIrIIIII_v -
vmvx.copy.2d.x16 0rIIIrIIIII_v -
vmvx.copy.2d.x32 0rIIIrIIIII_v -
vmvx.copy.2d.x64 0rIIIrIIIII_v -
vmvx.copy.2d.x8 0rIIIrIIIII_v -
vmvx.ctlz.2d.i32 0rIIIrIIIII_v -
vmvx.div.2d.f32 0rIIIrIIIrIIIII_v -
vmvx.divs.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.divu.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.exp.2d.f32 0rIIIrIIIII_v -
vmvx.fill.2d.x32 0irIIII_v -
vmvx.floor.2d.f32 0rIIIrIIIII_v -
vmvx.log.2d.f32 0rIIIrIIIII_v -
vmvx.matmul.f32f32f32 0rIIrIIrIIIIIi_v -20230419.494
vmvx.matmul.i8i8i32 0rIIrIIrIIIIIi_v -20230419.494
vmvx.mmt4d 0rIIrIIrIIIIIiiii_v 20230524.529-
vmvx.mmt4d.f32f32f32 0rIIrIIrIIIIIiiii_v -20230419.494
vmvx.mmt4d.i8i8i32 0rIIrIIrIIIIIiiii_v -20230419.494
vmvx.mul.2d.f32 0rIIIrIIIrIIIII_v -
vmvx.mul.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.neg.2d.f32 0rIIIrIIIII_v -
vmvx.or.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.pack 0rIIrIIIIIIIIIi_v 20230524.529-20240410.859
vmvx.pack 0rIIIrIIIIIIIIIIi_v 20240621.931-
vmvx.pack.f32f32 0rIIrIIIIIIIIfi_v -20230419.494
vmvx.pack.i32i32 0rIIrIIIIIIIIii_v -20230419.494
vmvx.pack.i8i8 0rIIrIIIIIIIIii_v -20230419.494
vmvx.query_tile_sizes.2d 0IIi_II -
vmvx.rsqrt.2d.f32 0rIIIrIIIII_v -
vmvx.shl.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.shrs.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.shru.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.sub.2d.f32 0rIIIrIIIrIIIII_v -
vmvx.sub.2d.i32 0rIIIrIIIrIIIII_v -
vmvx.unpack 0rIIrIIIIIIIIi_v 20230524.529-20240410.859
vmvx.unpack 0rIIIrIIIIIIIIIi_v 20240621.931-
vmvx.unpack.f32f32 0rIIrIIIIIIIIi_v -20230419.494
vmvx.unpack.i32i32 0rIIrIIIIIIIIi_v -20230419.494
vmvx.unpack.i8i8 0rIIrIIIIIIIIi_v -20230419.494
vmvx.xor.2d.i32 0rIIIrIIIrIIIII_v -
"""
"""Name, convention and releases; no release before the dash is the first one, none after it the
last."""

DECLARED = tuple(map(_declared, _TABLE.split("\n")[1:-1]))
