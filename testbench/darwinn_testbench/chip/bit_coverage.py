"""How much of an instruction stream is understood: its set bits by the fields that explain them.

A bit that is 0 says nothing, so only set bits count. One counts as explained when it lies in a
field whose meaning is established, with the confidence that docs/isa.md gives; a field marked
*open* has a place and no meaning, and explains nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from darwinn_formats.darwinn import load
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, name_of
from darwinn_sim.isa.codec import DecodeError, decode, explained, unexplained_bits
from darwinn_sim.isa.fields import Confidence
from darwinn_sim.isa.table import INSTRUCTIONS

from darwinn_testbench.chip.inspection import chunks_of
from darwinn_testbench.report import Report, Row, Verdict, judged

_OUTSIDE = "outside"
_CONFIDENCES: tuple[str, ...] = get_args(Confidence)
_KEYS = (*_CONFIDENCES, _OUTSIDE)


@dataclass(frozen=True, kw_only=True)
class CoverageRow(Row):
    """The set bits of one kind of instruction, in all files together.

    ``high``, ``medium`` and ``low`` count bits in fields of known meaning by confidence, ``open``
    bits in fields of unknown meaning, ``outside`` bits in no field. ``explained`` is the share of
    the first three in all set bits, ``high_share`` the share of the first.
    """

    opcode: int
    instructions: int
    set_bits: int
    high: int
    medium: int
    low: int
    open: int
    outside: int
    explained: float
    high_share: float


def coverage(sources: Sequence[Source]) -> Report[CoverageRow]:
    """Count the set bits of every instruction in ``sources`` by what explains them.

    There is a row for each opcode that occurs, in numerical order; it is REFUSED if bits of it are
    not explained. A chunk that does not decode adds nothing, and one row says where and why.
    Of several files one that cannot be read is a row as well. ``figures["total"]`` is the sum of
    the rows.

    Raises:
        FormatError, OSError: the only file is not valid or cannot be read.
    """
    bits: dict[int, Counter[str]] = {}
    instructions: Counter[int] = Counter()
    names: list[str] = []
    failures: list[CoverageRow] = []
    for source in sources:
        try:
            file = load(source)
        except (FormatError, OSError) as error:
            if len(sources) == 1:
                raise
            verdict, text = judged(error)
            failure = _row(name_of(source), -1, 0, Counter(), text)
            failures.append(replace(failure, verdict=verdict))
            continue
        names.append(file.file)
        for executable, chunk, stream in chunks_of(file):
            try:
                counts = list(_count(bytes(stream), instructions))
            except DecodeError as error:
                place = f"{file.file}: executable {executable}, chunk {chunk}"
                failures.append(_row(place, -1, 0, Counter(), str(error)))
                continue
            for opcode, key, number in counts:
                bits.setdefault(opcode, Counter())[key] += number
    rows = tuple(
        _row(INSTRUCTIONS[opcode].name, opcode, instructions[opcode], bits.get(opcode, Counter()))
        for opcode in sorted(instructions)
    )
    total = _row("total", -1, instructions.total(), _sum(bits.values()))
    return Report(
        command="inspect",
        file=", ".join(names),
        rows=(*rows, *failures),
        figures={"files": names, "total": total},
        message=(
            f"{percent(total.explained)} of {total.set_bits:,} set bits lie in fields of known "
            f"meaning, {percent(total.high_share)} with high confidence"
        ),
    )


def _count(stream: bytes, instructions: Counter[int]) -> Iterator[tuple[int, str, int]]:
    """(opcode, what explains them, number) of the set bits of a chunk; counts instructions too."""
    program = decode(stream)
    instructions.update(program.opcode.tolist())
    for entry in explained(program):
        yield entry.opcode, entry.confidence, entry.bits
    opcode_at = dict(zip(program.pc.tolist(), program.opcode.tolist(), strict=True))
    for pc, _ in unexplained_bits(stream):
        yield opcode_at[pc], _OUTSIDE, 1


def _sum(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total


def _row(
    name: str, opcode: int, instructions: int, bits: Counter[str], failure: str = ""
) -> CoverageRow:
    set_bits = bits.total()
    unknown = bits["open"] + bits[_OUTSIDE]
    message = f"{unknown} set bits have no known meaning" if unknown else failure
    return CoverageRow(
        name=name,
        verdict=Verdict.REFUSED if message else Verdict.PASS,
        message=message,
        opcode=opcode,
        instructions=instructions,
        set_bits=set_bits,
        **{key: bits[key] for key in _KEYS},
        explained=1 - unknown / set_bits if set_bits else 1.0,
        high_share=bits["high"] / set_bits if set_bits else 1.0,
    )


def percent(share: float, digits: int = 3) -> str:
    """A share in percent, cut and not rounded: 100 % means all."""
    unit = 10**digits
    return "100 %" if share == 1 else f"{int(share * 100 * unit) / unit:.{digits}f} %"
