"""Writes docs/isa.md from the instruction table: ``python -m darwinn_sim.isa.document``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from darwinn_sim.isa.codes import CODES
from darwinn_sim.isa.fields import Field, Grade, Graded, Instruction
from darwinn_sim.isa.table import HEADER, INSTRUCTIONS, TILE_HEADER

_PREAMBLE = """\
# The Beagle instruction set

This page lists every instruction of the chip, bit by bit: its fields, their meaning, and our
confidence in each. [Facts of the chip](chip-facts.md) describes the units and their memories.

`python -m darwinn_sim.isa.document` generates this page from the instruction table: change
`sim/darwinn_sim/isa/table.py` and `codes.py`, not this page.

## How far this is known

There is no public description of this instruction set. We worked it out from public compiled
models: 85 files with 170 executables and 24 bare streams, 110,880 instructions, in which every set
bit falls in a field below. 39 further files, 203,331 bundles, confirmed it. Each field states how
sure its meaning is, and its evidence.

| confidence | meaning |
|---|---|
| high | follows from a law without exception, or from outputs that are right byte for byte |
| medium | one explanation fits, but there are few examples, or no test that could refute it |
| low | a guess from the place of the field, or a name from public code |
| open | unknown; the table states the value that known programs hold |

A field can be understood although some of its values occur in no known program. So each value has a
grade:

| grade | meaning |
|---|---|
| known | real programs hold it, and they compute the right result |
| assumed | no known program holds it; the model executes it by the rule of similar values |
| refused | we know no rule, or several are equally natural: the model refuses the program |

Every value is known, except those in [values by grade](#values-by-grade). If a result depends on an
assumption, its message names the assumption; with `--no-assumptions` the program is refused.

The evidence *byte-exact simulation of whole programs* means: a simulation used nothing but the
instruction bits and the parameter bytes, and gave the same bytes as an independent computation from
the uncompiled model.

## For other tools

`python -m darwinn_sim.isa.export` writes all of this as JSON:

- `bundle_bytes`;
- `codes`, by name, with `value`, `name` and `meaning` of each of their `values`;
- `instructions`.

An instruction has `opcode`, `name`, its length in `bundles`, `unit`, `summary`, and

- `fields`: see below.
- `traversals`: `name`, `loops`, whether it has a `prologue`, the `unit` of its addresses, `fields`.
- `producers`: prefixes of field names. Each producer has a field `..._increment` and a field
  `..._depth`.
- `signals`: the flags that each `producer` counts. `scope` says whose flag it is, `codes` names its
  table of codes. If `field` is not empty, the signal applies only while that field has `value`.
- `watchers`: how many there are.

A field has `name`; `offset` and `width` in bits; `count` of like fields, `pitch` bits apart;
`signed` (two's complement); `kind`, `meaning`, `confidence` and `evidence` as in the tables below.
Further keys of a field:

- `codes`: the codes that name its values (with kind `mask`: its bits), or null.
- `shown_as`: its name in listings, if that differs.
- `grades`: its values that are not known, each with `grade`, `reason` and the values. `values` are
  the first and last of each range. If `others` is true, the entry covers all values except those;
  if `mask` is not 0, it covers all values with any of its bits. `given` limits an entry: each field
  named there must hold one of its values. The first entry that fits decides. `rtl` says whether
  the SystemVerilog executes the value too.

## Streams

A **bundle** is 128 bits, little-endian: bit n of an instruction is bit n % 8 of byte n / 8. An
instruction is 1 to 17 bundles long; its opcode, bits 6 to 11, gives the length.

A **chunk** is the unit that the host queues: `LoadProgram`, the program, `Execute`. Program memory
holds 16384 bundles, so longer programs come in several chunks, each ended by a `Halt`. Instruction
addresses (`pc`) count bundles of the chunk. The bundle after `LoadProgram` is loaded to address 0
of program memory and has pc 1.

Instructions 1 to 26 are for the tiles. The scalar core sends them to the units of the tiles in
`tiles`. Each unit has a queue of its own and takes its instructions in order. The scalar core, or a
unit beside it, executes instructions 32 and up.

The **linker** patches addresses of host buffers into operand b of scalar moves (`alu_op` 15,
`alu_immediate` 1, operand 0 before patching): 32 bits at bit 70 of a `Scalar` bundle.

## Traversals

Address generators compute the addresses at which a unit reads or writes, one after another. Such a
sequence is a traversal. It has nested loops; loop 0 is the innermost. Loop k runs `limit[k] + 1`
times. When loop k advances, the loops inside it have run to their ends, and the generator adds
`stride[k]` to the address. The stride is therefore *normalised*:

    stride[k] = step[k] - sum of step[j] * limit[j] over the loops j < k in the mask

where step[k] is the real distance between two iterations of loop k (0 for a loop outside the mask).
This holds in 172,514 of 172,514 traversals. If a loop runs once, its stride is never added, so it
can have any value.

- **Double buffer**: if `double_offset` is not 0, iterations of loop `double_loop` (0: elements) use
  the address and the address plus `double_offset` alternately.
- **Alternate limit**: if `alternate_loop` is not 0, loop 0 has the limit `alternate_limit` during
  the last iteration of that loop. So the number of elements need not be a multiple of loop 0's.
- **Prologue**: each time before loops 0 to `prologue_loop` start, the traversal first visits
  `prologue_inner_limit + 1` elements at the prologue's base. This base starts at `prologue_base`.
  It advances by `prologue_outer_stride` after each prologue, up to the address
  `prologue_outer_limit`, and then wraps.

A listing shows a traversal as a loop nest, outermost loop first, with real steps:
`narrow_read from 64: L1 4 x +16 > L0 8 x +1`.

## Sync: producers and watchers

Units of a tile run independently of each other. Sync flags order them; a flag is a 16-bit counter.

- A **producer** adds 1 to its flag at the end of each iteration of the loops from `depth` outwards
  (depth 0: after every element; a depth beyond the loops: once, at the end).
- A **watcher** waits before iteration i of the loops from `depth` outwards until
  flag >= expected + i * stride, where the expected value is signed. Flags of the scalar core wrap
  at 16 bits and are compared by their signed 16-bit difference.
- A `TileFence` holds all later instructions of its tiles back until the units it names are idle,
  then loads a value into the flags it names. It can also increment the tile's fence counter, on
  which a `ScalarFence` waits.
- Flags 17 and 18 hand the ring bus from one sender to the next: a sender adds 1 on all tiles, and
  the next one waits for its number.
"""


def document() -> str:
    """Return the text of docs/isa.md."""
    return "\n".join(
        [
            _PREAMBLE,
            *_signals(),
            *_codes(),
            *_overview(),
            *_headers(),
            *_instructions(),
            *_grades(),
        ]
    )


def _signals() -> Iterator[str]:
    yield "Producers by instruction:"
    yield ""
    rows = []
    for instruction in INSTRUCTIONS.values():
        for signal in instruction.signals:
            condition = f"`{signal.field}` = {signal.value}" if signal.field else ""
            flag = f"{int(signal.flag)} {signal.flag.label}"
            rows.append((instruction.name, f"`{signal.producer}`", flag, signal.scope, condition))
    yield from _table(("instruction", "producer", "flag", "of", "if"), rows)


def _codes() -> Iterator[str]:
    yield "## Codes"
    yield ""
    yield "Values of fields, or bits of masks, by the name under which the field tables cite them."
    yield ""
    for codes in CODES.values():
        yield f"### {codes.__name__}"
        yield ""
        yield (codes.__doc__ or "").strip()
        yield ""
        yield from _table(
            ("value", "name", "meaning"),
            [(str(int(code)), code.label, code.meaning) for code in codes],
        )


def _overview() -> Iterator[str]:
    yield "## Instructions"
    yield ""
    rows = [
        (
            str(entry.opcode),
            f"[{entry.name}](#{entry.name.lower()})",
            str(entry.bundles),
            entry.unit,
        )
        for entry in INSTRUCTIONS.values()
    ]
    yield from _table(("opcode", "name", "bundles", "unit"), rows)


def _headers() -> Iterator[str]:
    yield "### Header"
    yield ""
    yield "Every instruction begins with these fields; the tables below do not repeat them."
    yield ""
    yield from _field_table(HEADER)
    yield "### Tile header"
    yield ""
    yield "Every tile instruction except the fence continues with these fields."
    yield ""
    yield from _field_table(TILE_HEADER[len(HEADER) :])


def _instructions() -> Iterator[str]:
    described: dict[tuple[Field, ...], str] = {}
    for instruction in INSTRUCTIONS.values():
        yield f"### {instruction.name}"
        yield ""
        length = f"{instruction.bundles} bundle" + ("s" if instruction.bundles > 1 else "")
        yield f"Opcode {instruction.opcode}, {length}, {_unit(instruction)}. {instruction.summary}"
        yield ""
        own = _own_fields(instruction)
        first = described.setdefault(own, instruction.name)
        if first == instruction.name and own:
            yield from _field_table(own)
        elif own:
            yield f"Fields as in [{first}](#{first.lower()})."
            yield ""


def _grades() -> Iterator[str]:
    yield "## Values by grade"
    yield ""
    yield (
        "These tables list all assumed and refused values. If several rows of a field fit a "
        "value, the first one decides. The column RTL says whether the SystemVerilog executes the "
        "value as assumed; if not, `--engine rtl` refuses it."
    )
    yield ""
    for grade, rule in ((Grade.ASSUMED, "executed as"), (Grade.REFUSED, "reason")):
        yield f"### {grade.capitalize()}"
        yield ""
        holders: dict[tuple[str, Graded], list[Instruction]] = {}
        for instruction in INSTRUCTIONS.values():
            for field in instruction.graded_fields:
                for entry in field.grades:
                    if entry.grade is grade:
                        holders.setdefault((field.name, entry), []).append(instruction)
        rows = [
            (
                _instruction_names(found),
                f"`{name}`",
                _graded_values(entry),
                entry.reason,
                *(["yes" if entry.rtl else "no"] if grade is Grade.ASSUMED else []),
            )
            for (name, entry), found in holders.items()
        ]
        head = ("instruction", "field", "values", rule)
        yield from _table((*head, "RTL") if grade is Grade.ASSUMED else head, rows)


def _instruction_names(found: Sequence[Instruction]) -> str:
    """The instructions that share an entry; where nearly all do, those that do not."""
    absent = [each.name for each in INSTRUCTIONS.values() if each not in found]
    if not absent:
        return "all"
    if len(absent) < 4:
        return f"all but {', '.join(absent)}"
    return ", ".join(each.name for each in found)


def _graded_values(entry: Graded) -> str:
    if entry.mask:
        values = f"bits of {entry.mask:#x}"
    else:
        values = f"not {_values_text(entry.values)}" if entry.others else _values_text(entry.values)
    conditions = [f"`{name}` {_values_text(held)}" for name, held in entry.given]
    return f"{values} with {' and '.join(conditions)}" if conditions else values


def _values_text(values: Sequence[int]) -> str:
    if isinstance(values, range) and len(values) > 2:
        return f"{values.start} to {values.stop - 1}"
    return ", ".join(map(str, values))


def _unit(instruction: Instruction) -> str:
    return instruction.unit.replace("_", " ")


def _own_fields(instruction: Instruction) -> tuple[Field, ...]:
    """Return the fields after the header or the tile header."""
    fields = tuple(replace(field, grades=()) for field in instruction.fields)
    header = TILE_HEADER if fields[: len(TILE_HEADER)] == TILE_HEADER else HEADER
    return fields[len(header) :]


def _field_table(fields: Iterable[Field]) -> Iterator[str]:
    rows = [
        (
            _offset(field),
            str(field.width),
            f"`{field.name}`",
            field.kind,
            _meaning(field),
            field.confidence,
            field.evidence,
        )
        for field in fields
    ]
    yield from _table(
        ("offset", "width", "field", "kind", "meaning", "confidence", "evidence"), rows
    )


def _offset(field: Field) -> str:
    if field.count == 1:
        return str(field.offset)
    return f"{field.offset} + {field.pitch} k, k < {field.count}"


def _meaning(field: Field) -> str:
    if field.codes is None:
        return field.meaning
    name = field.codes.__name__
    kind = "Bits" if field.kind == "mask" else "Values"
    return f"{field.meaning} {kind}: [{name}](#{name.lower()})."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |".replace("|  |", "| |")
    yield ""


if __name__ == "__main__":
    sys.stdout.write(document())
