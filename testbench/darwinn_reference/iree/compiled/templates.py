"""Operations on numbers as LLVM instructions: a table of texts, which ``emit.py`` fills in.

``$a``, ``$b`` and ``$c`` are what an operation reads, ``$r`` is what it writes; other names are its
own. Where ``$slow`` is true the interpreter runs the operation instead: it raises the error of a
division by zero, and decides which NaN a result is, for which processors and compilers differ.
``TYPE`` stands for the type of LLVM, ``BITS`` for its width. Nothing is contracted, and nothing is
computed that depends on a flag: the operations are those of IEEE 754.
"""

from __future__ import annotations

from collections.abc import Mapping

TYPES: Mapping[str, str] = {"i": "i32", "l": "i64", "f": "float", "d": "double"}
"""Types of LLVM by register type."""

_INTEGER = """
add.iBITS        $r = add TYPE $a, $b
sub.iBITS        $r = sub TYPE $a, $b
mul.iBITS        $r = mul TYPE $a, $b
fma.iBITS        $p = mul TYPE $a, $b; $r = add TYPE $p, $c
div.iBITS.s      DIVISOR; $q = sdiv TYPE $a, $s; $n = sub TYPE 0, $a; CHOSEN
div.iBITS.u      NATURAL; $r = udiv TYPE $a, $s
rem.iBITS.s      DIVISOR; $q = srem TYPE $a, $s; $r = select i1 $m, TYPE 0, TYPE $q
rem.iBITS.u      NATURAL; $r = urem TYPE $a, $s
not.iBITS        $r = xor TYPE $a, -1
and.iBITS        $r = and TYPE $a, $b
or.iBITS         $r = or TYPE $a, $b
xor.iBITS        $r = xor TYPE $a, $b
shl.iBITS        AMOUNT; $r = shl TYPE $a, $n
shr.iBITS.s      AMOUNT; $r = ashr TYPE $a, $n
shr.iBITS.u      AMOUNT; $r = lshr TYPE $a, $n
cmp.eq.iBITS     $t = icmp eq TYPE $a, $b; $r = zext i1 $t to i32
cmp.ne.iBITS     $t = icmp ne TYPE $a, $b; $r = zext i1 $t to i32
cmp.lt.iBITS.s   $t = icmp slt TYPE $a, $b; $r = zext i1 $t to i32
cmp.lt.iBITS.u   $t = icmp ult TYPE $a, $b; $r = zext i1 $t to i32
cmp.nz.iBITS     $t = icmp ne TYPE $a, 0; $r = zext i1 $t to i32
ctlz.iBITS       $r = call TYPE @llvm.ctlz.iBITS(TYPE $a, i1 false)
abs.iBITS        $r = call TYPE @llvm.abs.iBITS(TYPE $a, i1 false)
min.iBITS.s      $r = call TYPE @llvm.smin.iBITS(TYPE $a, TYPE $b)
max.iBITS.s      $r = call TYPE @llvm.smax.iBITS(TYPE $a, TYPE $b)
min.iBITS.u      $r = call TYPE @llvm.umin.iBITS(TYPE $a, TYPE $b)
max.iBITS.u      $r = call TYPE @llvm.umax.iBITS(TYPE $a, TYPE $b)
"""

_DIVISOR = (
    "$slow = icmp eq TYPE $b, 0; $m = icmp eq TYPE $b, -1; $u = or i1 $slow, $m; "
    "$s = select i1 $u, TYPE 1, TYPE $b"
)
"""A divisor ``$s`` that the processor takes: neither 0 nor, of the lowest number, -1 (``$m``)."""

_NATURAL = "$slow = icmp eq TYPE $b, 0; $s = select i1 $slow, TYPE 1, TYPE $b"
"""The same without a sign."""

_CHOSEN = "$r = select i1 $m, TYPE $n, TYPE $q"

_AMOUNT = {32: "$n = and i32 $b, 31", 64: "$m = and i32 $b, 63; $n = zext i32 $m to i64"}
"""Amounts of shifts are 32 bits wide, and count modulo the width of what is shifted."""

_CONVERSIONS = """
trunc.i32.i8     $r = and i32 $a, 255
trunc.i32.i16    $r = and i32 $a, 65535
trunc.i64.i32    $r = trunc i64 $a to i32
ext.i8.i32.s     $t = trunc i32 $a to i8; $r = sext i8 $t to i32
ext.i8.i32.u     $r = and i32 $a, 255
ext.i16.i32.s    $t = trunc i32 $a to i16; $r = sext i16 $t to i32
ext.i16.i32.u    $r = and i32 $a, 65535
ext.i32.i64.s    $r = sext i32 $a to i64
ext.i32.i64.u    $r = zext i32 $a to i64
trunc.f64.f32    $r = fptrunc double $a to float
ext.f32.f64      $r = fpext float $a to double
bitcast.i32.f32  $r = bitcast i32 $a to float
bitcast.i64.f64  $r = bitcast i64 $a to double
bitcast.f32.i32  $slow = fcmp uno float $a, $a; $r = bitcast float $a to i32
bitcast.f64.i64  $slow = fcmp uno double $a, $a; $r = bitcast double $a to i64
cast.f64.si32    $n = fptrunc double $a to float; NEAREST(float, f32, $n); $r = trunc i64 $w to i32
cast.f64.ui32    $n = fptrunc double $a to float; NEAREST(float, f32, $n); $r = trunc i64 $w to i32
cast.f64.si64    NEAREST(double, f64, $a); $r = add i64 $w, 0
cast.f64.ui64    NEAREST(double, f64, $a); $r = add i64 $w, 0
cast.f32.si32    NEAREST(float, f32, $a); $r = trunc i64 $w to i32
cast.f32.ui32    NEAREST(float, f32, $a); $r = trunc i64 $w to i32
cast.f32.si64    NEAREST(float, f32, $a); $r = add i64 $w, 0
cast.f32.ui64    NEAREST(float, f32, $a); $r = add i64 $w, 0
"""

_FLOAT = """
add.fBITS        $r = fadd TYPE $a, $b
sub.fBITS        $r = fsub TYPE $a, $b
mul.fBITS        $r = fmul TYPE $a, $b
div.fBITS        $r = fdiv TYPE $a, $b
fma.fBITS        $p = fmul TYPE $a, $b; $r = fadd TYPE $p, $c
abs.fBITS        $r = call TYPE @llvm.fabs.fBITS(TYPE $a)
neg.fBITS        $r = fneg TYPE $a
ceil.fBITS       $r = call TYPE @llvm.ceil.fBITS(TYPE $a)
floor.fBITS      $r = call TYPE @llvm.floor.fBITS(TYPE $a)
round.fBITS      $r = call TYPE @llvm.round.fBITS(TYPE $a)
round.fBITS.even $n = call TYPE @llvm.rint.fBITS(TYPE $a); $z = fcmp oeq TYPE $n, 0.0; \
$o = fcmp une TYPE $a, 0.0; $t = and i1 $z, $o; $r = select i1 $t, TYPE 0.0, TYPE $n
min.fBITS        $t = fcmp olt TYPE $b, $a; $r = select i1 $t, TYPE $b, TYPE $a
max.fBITS        $t = fcmp ogt TYPE $b, $a; $r = select i1 $t, TYPE $b, TYPE $a
sqrt.fBITS       $r = call TYPE @llvm.sqrt.fBITS(TYPE $a)
rsqrt.fBITS      $t = call TYPE @llvm.sqrt.fBITS(TYPE $a); $r = fdiv TYPE 1.0, $t
cmp.eq.fBITS.o   $t = fcmp oeq TYPE $a, $b; $r = zext i1 $t to i32
cmp.eq.fBITS.u   $t = fcmp ueq TYPE $a, $b; $r = zext i1 $t to i32
cmp.ne.fBITS.o   $t = fcmp une TYPE $a, $b; $r = zext i1 $t to i32
cmp.ne.fBITS.u   $t = fcmp une TYPE $a, $b; $r = zext i1 $t to i32
cmp.lt.fBITS.o   $t = fcmp olt TYPE $a, $b; $r = zext i1 $t to i32
cmp.lt.fBITS.u   $t = fcmp ult TYPE $a, $b; $r = zext i1 $t to i32
cmp.lte.fBITS.o  $t = fcmp ole TYPE $a, $b; $r = zext i1 $t to i32
cmp.lte.fBITS.u  $t = fcmp ule TYPE $a, $b; $r = zext i1 $t to i32
cmp.nan.fBITS    $t = fcmp uno TYPE $a, $a; $r = zext i1 $t to i32
cast.si32.fBITS  $r = sitofp i32 $a to TYPE
cast.ui32.fBITS  $r = uitofp i32 $a to TYPE
cast.si64.fBITS  $r = sitofp i64 $a to TYPE
cast.ui64.fBITS  $r = uitofp i64 $a to TYPE
"""

_NEAREST = (
    "$h = call %0 @llvm.round.%1(%0 %2); $m = call %0 @llvm.fabs.%1(%0 $h); "
    "$slow = fcmp uge %0 $m, 0x43E0000000000000; $x = select i1 $slow, %0 0.0, %0 $h; "
    "$w = fptosi %0 $x to i64"
)
"""``$w``: the integer of 64 bits that is nearest, half away from zero; 2**63 and more is slow."""

LIBRARY: Mapping[str, int] = {
    **dict.fromkeys(("atan", "cos", "sin", "exp", "exp2", "expm1", "log", "log10"), 1),
    **dict.fromkeys(("log1p", "log2", "tanh", "erf"), 1),
    **dict.fromkeys(("atan2", "pow"), 2),
}
"""Functions of the C library, which Python's ``math`` calls too: how many numbers they take."""

LIBRARY_PREFIX = "darwinn.library."
"""Before their names: by its own LLVM would know a function, and might simplify what it gives."""


def _library(name: str, count: int, width: int) -> str:
    """In double precision, as the interpreter has it; what is not finite is decided there."""
    operands = "ab"[:count]
    if width == 64:
        call = ", ".join(f"double ${each}" for each in operands)
        return (
            f"$r = call double @{LIBRARY_PREFIX}{name}({call}); "
            "$m = call double @llvm.fabs.f64(double $r); "
            "$slow = fcmp ueq double $m, 0x7FF0000000000000"
        )
    wide = "; ".join(f"$w{each} = fpext float ${each} to double" for each in operands)
    call = ", ".join(f"double $w{each}" for each in operands)
    return (
        f"{wide}; $w = call double @{LIBRARY_PREFIX}{name}({call}); "
        "$r = fptrunc double $w to float; $m = call float @llvm.fabs.f32(float $r); "
        "$slow = fcmp ueq float $m, 0x7FF0000000000000"
    )


def _rows(text: str, **words: str) -> dict[str, str]:
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    rows = (line.split(maxsplit=1) for line in text.strip().splitlines())
    return dict(rows)


def _with_nearest(rows: Mapping[str, str]) -> dict[str, str]:
    expanded = {}
    for name, body in rows.items():
        before, found, rest = body.partition("NEAREST(")
        if found:
            values, _, after = rest.partition(")")
            nearest = _NEAREST
            for place, value in enumerate(values.split(", ")):
                nearest = nearest.replace(f"%{place}", value)
            body = before + nearest + after
        expanded[name] = body
    return expanded


def _templates() -> dict[str, str]:
    made = _with_nearest(_rows(_CONVERSIONS))
    for bits, integer, float_type in ((32, "i32", "float"), (64, "i64", "double")):
        width = str(bits)
        words = {"DIVISOR": _DIVISOR, "NATURAL": _NATURAL, "CHOSEN": _CHOSEN}
        words |= {"AMOUNT": _AMOUNT[bits], "TYPE": integer, "BITS": width}
        made |= _rows(_INTEGER, **words)
        made |= _rows(_FLOAT, TYPE=float_type, BITS=width)
        made |= {f"{name}.f{bits}": _library(name, count, bits) for name, count in LIBRARY.items()}
    return made


TEMPLATES: Mapping[str, str] = _templates()
"""LLVM instructions by mnemonic, apart by semicolons."""

_INTRINSICS = (
    *(("i", name, "{0} ({0}, i1)") for name in ("ctlz", "abs")),
    *(("i", name, "{0} ({0}, {0})") for name in ("smin", "smax", "umin", "umax")),
    *(("f", name, "{0} ({0})") for name in ("fabs", "ceil", "floor", "round", "rint", "sqrt")),
)


def declarations() -> str:
    """Declarations of all functions that templates call."""
    lines = []
    for letter, name, types in _INTRINSICS:
        for bits in (32, 64):
            spelled = f"i{bits}" if letter == "i" else {32: "float", 64: "double"}[bits]
            result, _, parameters = types.format(spelled).partition(" ")
            lines.append(f"declare {result} @llvm.{name}.{letter}{bits}{parameters}")
    for name, count in LIBRARY.items():
        parameters = ", ".join(["double"] * count)
        lines.append(
            f"declare double @{LIBRARY_PREFIX}{name}({parameters}) nounwind willreturn memory(none)"
        )
    return "\n".join(lines)
