"""The one table of VM bytecode operations: opcode, mnemonic and fields, in encoding order.

Field notation, as in docs/formats-iree.md:

======== ===================== ================================================================
``i``    u16                   register that holds an i32; also ``l`` i64, ``f`` f32, ``d`` f64,
                               ``r`` reference, ``*`` any of them
``r!``   u16                   reference that may be moved out of its register
``>i``   u16                   register that is written
``#i``   4 or 8 bytes          immediate number of the type: ``#i``, ``#l``, ``#f``, ``#d``
``G``    u32                   global: byte offset, or ordinal of a reference
``T``    u32                   type ordinal
``O``    u32                   ordinal of a read-only data segment
``F``    u32                   function: bit 31 set for an import
``B``    u32                   byte offset of the block that control goes to
``S``    u16, bytes            text
``V(x)`` aligned, u16, u16s    list of registers; ``V(n)`` is a list of numbers
``>V``   aligned, u16, u16s    list of registers that are written
``M``    aligned, u16, pairs   copies of registers to the arguments of a block
``C``    u16, then ``B M``     cases of a branch table: as many blocks and copies as the count
======== ===================== ================================================================

Aligned means to 2 bytes from the start of the function; nothing else is aligned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CORE, F32, F64 = 0x00, 0xE0, 0xE1
"""Sets of operations, by the byte that is before the opcode; the core set has none."""

MOVE_BIT = 0x4000
REFERENCE_BIT = 0x8000
IMPORT_BIT = 0x8000_0000
PLAIN_ARGUMENT = 0xFFFF
"""Segment size of an argument that is not a repeated tuple."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an operation.

    ``kind`` is one of ``ilfdr*`` for a register, ``#`` for an immediate, and the capitals of the
    table above; ``type`` is the type of an immediate or of the registers of a list.
    """

    kind: str
    type: str = ""
    written: bool = False
    movable: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the virtual machine.

    ``prefix`` is the set it belongs to. ``terminates``: a block ends with it.
    """

    prefix: int
    opcode: int
    mnemonic: str
    fields: tuple[Field, ...]
    terminates: bool


BLOCK = "block"
_TERMINATORS = frozenset(
    (
        "br",
        "cond_br",
        "br_table",
        "return",
        "fail",
        "yield",
        "break",
        "cond_break",
        "call.yieldable",
        "call.variadic.yieldable",
    )
)

_CORE_ROWS = """
00 global.load.i32 G >i           | 01 global.store.i32 G i
02 global.load.indirect.i32 i >i  | 03 global.store.indirect.i32 i i
04 global.load.i64 G >l           | 05 global.store.i64 G l
06 global.load.indirect.i64 i >l  | 07 global.store.indirect.i64 i l
08 global.load.ref G T >r         | 09 global.store.ref G T r!
0A global.load.indirect.ref i T >r | 0B global.store.indirect.ref i T r!
0C const.i32.zero >i              | 0D const.i32 #i >i
0E const.i64.zero >l              | 0F const.i64 #l >l
10 const.ref.zero >r              | 11 const.ref.rodata O >r
12 list.alloc T i >r              | 13 list.reserve r i
14 list.size r >i                 | 15 list.resize r i
16 list.get.i32 r i >i            | 17 list.set.i32 r i i
18 list.get.i64 r i >l            | 19 list.set.i64 r i l
1A list.get.ref r i T >r          | 1B list.set.ref r i r!
1C select.i32 i i i >i            | 1D select.i64 i l l >l
1E select.ref i T r! r! >r        | 1F switch.i32 i i V(i) >i
20 switch.i64 i l V(l) >l         | 21 switch.ref i T r! V(r!) >r
22 add.i32 i i >i                 | 23 sub.i32 i i >i
24 mul.i32 i i >i                 | 25 div.i32.s i i >i
26 div.i32.u i i >i               | 27 rem.i32.s i i >i
28 rem.i32.u i i >i               | 29 fma.i32 i i i >i
2A add.i64 l l >l                 | 2B sub.i64 l l >l
2C mul.i64 l l >l                 | 2D div.i64.s l l >l
2E div.i64.u l l >l               | 2F rem.i64.s l l >l
30 rem.i64.u l l >l               | 31 fma.i64 l l l >l
32 not.i32 i >i                   | 33 and.i32 i i >i
34 or.i32 i i >i                  | 35 xor.i32 i i >i
36 not.i64 l >l                   | 37 and.i64 l l >l
38 or.i64 l l >l                  | 39 xor.i64 l l >l
3A shl.i32 i i >i                 | 3B shr.i32.s i i >i
3C shr.i32.u i i >i               | 3D shl.i64 l i >l
3E shr.i64.s l i >l               | 3F shr.i64.u l i >l
40 trunc.i32.i8 i >i              | 41 trunc.i32.i16 i >i
42 trunc.i64.i32 l >i             | 43 ext.i8.i32.s i >i
44 ext.i8.i32.u i >i              | 45 ext.i16.i32.s i >i
46 ext.i16.i32.u i >i             | 47 ext.i32.i64.s i >l
48 ext.i32.i64.u i >l             | 49 cmp.eq.i32 i i >i
4A cmp.ne.i32 i i >i              | 4B cmp.lt.i32.s i i >i
4C cmp.lt.i32.u i i >i            | 4D cmp.nz.i32 i >i
4E cmp.eq.i64 l l >i              | 4F cmp.ne.i64 l l >i
50 cmp.lt.i64.s l l >i            | 51 cmp.lt.i64.u l l >i
52 cmp.nz.i64 l >i                | 53 cmp.eq.ref r r >i
54 cmp.ne.ref r r >i              | 55 cmp.nz.ref r >i
56 br B M                         | 57 cond_br i B M B M
58 call F V(*) >V                 | 59 call.variadic F V(n) V(*) >V
5A return V(*)                    | 5B fail i S
5C import.resolved F >i           | 5D yield B M
5E trace S V(*)                   | 5F print S V(*)
60 cond_break i B M               | 61 break B M
62 buffer.load.i8.u r l >i        | 63 buffer.load.i8.s r l >i
64 buffer.load.i16.u r l >i       | 65 buffer.load.i16.s r l >i
66 buffer.load.i32 r l >i         | 67 buffer.load.i64 r l >l
68 buffer.store.i8 r l i          | 69 buffer.store.i16 r l i
6A buffer.store.i32 r l i         | 6B buffer.store.i64 r l l
6C buffer.alloc l i >r            | 6D buffer.clone r l l i >r
6E buffer.length r >l             | 6F buffer.copy r l r l l
70 buffer.compare r l r l l >i    | 71 buffer.fill.i8 r l l i
72 buffer.fill.i16 r l l i        | 73 buffer.fill.i32 r l l i
74 buffer.fill.i64 r l l l        | 75 ctlz.i32 i >i
76 ctlz.i64 l >l                  | 77 abs.i32 i >i
78 abs.i64 l >l                   | 79 block
7A min.i32.s i i >i               | 7B min.i32.u i i >i
7C max.i32.s i i >i               | 7D max.i32.u i i >i
7E min.i64.s l l >l               | 7F min.i64.u l l >l
80 max.i64.s l l >l               | 81 max.i64.u l l >l
82 cast.any.ref r! T >r           | 83 br_table i B M C
84 buffer.hash r l l >l           | 85 discard.refs V(*)
86 assign.ref r! >r               | 87 call.yieldable F V(*) B >V
88 call.variadic.yieldable F V(n) V(*) B >V
"""

_F32_ROWS = """
00 global.load.f32 G >f           | 01 global.store.f32 G f
02 global.load.indirect.f32 i >f  | 03 global.store.indirect.f32 i f
04 const.f32.zero >f              | 05 const.f32 #f >f
06 list.get.f32 r i >f            | 07 list.set.f32 r i f
08 select.f32 i f f >f            | 09 switch.f32 i f V(f) >f
0A add.f32 f f >f                 | 0B sub.f32 f f >f
0C mul.f32 f f >f                 | 0D div.f32 f f >f
0E rem.f32 f f >f                 | 0F fma.f32 f f f >f
10 abs.f32 f >f                   | 11 neg.f32 f >f
12 ceil.f32 f >f                  | 13 floor.f32 f >f
14 cast.si32.f32 i >f             | 15 cast.ui32.f32 i >f
16 cast.f32.si32 f >i             | 17 cast.f32.ui32 f >i
18 bitcast.i32.f32 i >f           | 19 bitcast.f32.i32 f >i
1A atan.f32 f >f                  | 1B atan2.f32 f f >f
1C cos.f32 f >f                   | 1D sin.f32 f >f
1E exp.f32 f >f                   | 1F exp2.f32 f >f
20 expm1.f32 f >f                 | 21 log.f32 f >f
22 log10.f32 f >f                 | 23 log1p.f32 f >f
24 log2.f32 f >f                  | 25 pow.f32 f f >f
26 rsqrt.f32 f >f                 | 27 sqrt.f32 f >f
28 tanh.f32 f >f                  | 29 erf.f32 f >f
2A cmp.eq.f32.o f f >i            | 2B cmp.eq.f32.u f f >i
2C cmp.ne.f32.o f f >i            | 2D cmp.ne.f32.u f f >i
2E cmp.lt.f32.o f f >i            | 2F cmp.lt.f32.u f f >i
30 cmp.lte.f32.o f f >i           | 31 cmp.lte.f32.u f f >i
32 cmp.nan.f32 f >i               | 33 buffer.load.f32 r l >f
34 buffer.store.f32 r l f         | 35 buffer.fill.f32 r l l f
36 round.f32 f >f                 | 37 min.f32 f f >f
38 max.f32 f f >f                 | 39 round.f32.even f >f
3A cast.f32.si64 f >l             | 3B cast.f32.ui64 f >l
3C cast.si64.f32 l >f             | 3D cast.ui64.f32 l >f
"""

_F64_ROWS = """
00 global.load.f64 G >d           | 01 global.store.f64 G d
02 global.load.indirect.f64 i >d  | 03 global.store.indirect.f64 i d
04 const.f64.zero >d              | 05 const.f64 #d >d
06 list.get.f64 r i >d            | 07 list.set.f64 r i d
08 select.f64 i d d >d            | 09 switch.f64 i d V(d) >d
0A add.f64 d d >d                 | 0B sub.f64 d d >d
0C mul.f64 d d >d                 | 0D div.f64 d d >d
0E rem.f64 d d >d                 | 0F fma.f64 d d d >d
10 abs.f64 d >d                   | 11 neg.f64 d >d
12 ceil.f64 d >d                  | 13 floor.f64 d >d
14 trunc.f64.f32 d >f             | 15 ext.f32.f64 f >d
16 cast.si32.f64 i >d             | 17 cast.ui32.f64 i >d
18 cast.f64.si32 d >i             | 19 cast.f64.ui32 d >i
1A cast.si64.f64 l >d             | 1B cast.ui64.f64 l >d
1C cast.f64.si64 d >l             | 1D cast.f64.ui64 d >l
1E bitcast.i64.f64 l >d           | 1F bitcast.f64.i64 d >l
20 atan.f64 d >d                  | 21 atan2.f64 d d >d
22 cos.f64 d >d                   | 23 sin.f64 d >d
24 exp.f64 d >d                   | 25 exp2.f64 d >d
26 expm1.f64 d >d                 | 27 log.f64 d >d
28 log10.f64 d >d                 | 29 log1p.f64 d >d
2A log2.f64 d >d                  | 2B pow.f64 d d >d
2C rsqrt.f64 d >d                 | 2D sqrt.f64 d >d
2E tanh.f64 d >d                  | 2F erf.f64 d >d
30 cmp.eq.f64.o d d >i            | 31 cmp.eq.f64.u d d >i
32 cmp.ne.f64.o d d >i            | 33 cmp.ne.f64.u d d >i
34 cmp.lt.f64.o d d >i            | 35 cmp.lt.f64.u d d >i
36 cmp.lte.f64.o d d >i           | 37 cmp.lte.f64.u d d >i
38 cmp.nan.f64 d >i               | 39 buffer.load.f64 r l >d
3A buffer.store.f64 r l d         | 3B buffer.fill.f64 r l l d
3C round.f64 d >d                 | 3D min.f64 d d >d
3E max.f64 d d >d                 | 3F round.f64.even d >d
"""


def _field(text: str) -> Field:
    body = text.removeprefix(">").removesuffix("!").removesuffix(")")
    written, movable = text.startswith(">"), "!" in text
    if body.startswith("#"):
        return Field("#", body[1:])
    if body.startswith("V"):
        return Field("V", body[2:].rstrip("!") or "*", written, movable)
    return Field(body, body if body in "ilfdr*" else "", written, movable)


def _operations(prefix: int, rows: str) -> Mapping[int, Operation]:
    made = {}
    for row in rows.replace("\n", "|").split("|"):
        if words := row.split():
            opcode, mnemonic = int(words[0], 16), words[1]
            fields = tuple(_field(word) for word in words[2:])
            made[opcode] = Operation(prefix, opcode, mnemonic, fields, mnemonic in _TERMINATORS)
    return made


OPERATIONS: Mapping[int, Mapping[int, Operation]] = {
    CORE: _operations(CORE, _CORE_ROWS),
    F32: _operations(F32, _F32_ROWS),
    F64: _operations(F64, _F64_ROWS),
}
"""All operations, by set and by opcode."""

BY_MNEMONIC: Mapping[str, Operation] = {
    operation.mnemonic: operation
    for operations in OPERATIONS.values()
    for operation in operations.values()
}
"""All operations by their mnemonic, which is unique over the sets."""
