"""The register table as a package for proofs: which offsets the host may read and write, and which
bits keep what it writes there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from darwinn_rtl.registers_rdl import ADDRESS_MAP, HARNESS_MAP, fields_of
from darwinn_sim.chips.register_map import Access, Register
from peakrdl_regblock.identifier_filter import kw_filter

PACKAGE = "register_map_pkg"

KEPT = tuple(
    register
    for register in HARNESS_MAP
    if register.access is Access.READ_WRITE and register.count == 1
)
"""Registers that keep what the host writes."""


def package() -> str:
    """Text of the package. An offset is that of a whole word: its low three bits are 0."""
    lines = [f"package {PACKAGE};", *_question("readable", lambda register: True)]
    lines += _question("writable", lambda register: register.access is not Access.READ_ONLY)
    lines += _value("kept", lambda register: sum(each.mask for each in fields_of(register)))
    lines += _value("after_reset", lambda register: register.reset)
    lines += _stored()
    return "\n".join([*lines, f"endpackage : {PACKAGE}", ""])


def _question(name: str, holds: Callable[[Register], bool]) -> Iterator[str]:
    """A function that is 1 at the offsets of registers for which something holds."""
    yield f"  function automatic logic {name}(input logic [18:0] offset);"
    for register in filter(holds, HARNESS_MAP):
        low, high = register.offset, register.end - 8
        yield f"    if (offset >= 19'h{low:x} && offset <= 19'h{high:x}) return 1'b1;"
    yield "    return 1'b0;"
    yield f"  endfunction : {name}"


def _value(name: str, value: Callable[[Register], int]) -> Iterator[str]:
    """A function of the offset of a register that keeps what is written; 0 for others."""
    yield f"  function automatic logic [63:0] {name}(input logic [18:0] offset);"
    yield "    case (offset)"
    for register in KEPT:
        yield f"      19'h{register.offset:x}: return 64'h{value(register):x};"
    yield "      default: return '0;"
    yield "    endcase"
    yield f"  endfunction : {name}"


def _stored() -> Iterator[str]:
    """A function that finds in what the register block puts out what such a register holds."""
    yield "  function automatic logic [63:0] stored("
    yield f"      input {ADDRESS_MAP}_pkg::{ADDRESS_MAP}__out_t out, input logic [18:0] offset);"
    yield "    stored = '0;"
    yield "    case (offset)"
    for register in KEPT:
        yield f"      19'h{register.offset:x}: begin"
        for each in fields_of(register):
            value = f"out.{register.name}.{kw_filter(each.name)}.value"
            yield f"        stored[{each.low + each.width - 1}:{each.low}] = {value};"
        yield "      end"
    yield "      default: ;"
    yield "    endcase"
    yield "  endfunction : stored"
