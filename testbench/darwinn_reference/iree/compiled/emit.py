"""A function of bytecode as text of LLVM: one function of the frame (``layout.py``).

Every operation is either inlined, by its template, or the interpreter's: then what it reads is
stored in the interpreter's registers, the host runs the interpreter's own step of it, and what it
wrote is loaded again. An inlined operation has a slow way that does the same, wherever it may fail.
So compiled code raises no error and knows no text of one: the interpreter does, at the operation.

Registers are slots of 64 bits on the stack, pairs of cells as in the original, which LLVM takes
apart and keeps in the processor's registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from darwinn_formats.iree import Instruction
from darwinn_formats.iree.opcodes import BLOCK, REFERENCE_BIT

from darwinn_reference.iree.compiled.layout import (
    Access,
    Branch,
    Layout,
    Word,
    access_of,
    copied_references,
    references_changed,
)
from darwinn_reference.iree.compiled.templates import TEMPLATES, TYPES, declarations
from darwinn_reference.iree.effects import ACCESSES
from darwinn_reference.iree.registers import SAME_BITS
from darwinn_reference.iree.steps import SILENT

ENTRY = "run"
"""Name of the function; it returns 0, or 1 where the host has noted an error."""

_NAME = re.compile(r"\$(\w+)")
_CONSTANT = re.compile(r"const\.[if](32|64)(\.zero)?")
_GLOBAL = re.compile(r"global\.(load|store)\.[if](32|64)")
_SELECT = re.compile(r"select\.[if](32|64)")
_STORED_TYPES = {"i8": "i8", "s8": "i8", "i16": "i16", "s16": "i16"}
_SELDOM, _OFTEN = ", !prof !0", ", !prof !1"
_WEIGHTS = """\
!0 = !{!"branch_weights", i32 1, i32 1000000}
!1 = !{!"branch_weights", i32 1000000, i32 1}
"""


def emit(layout: Layout) -> str:
    """The module of LLVM of a function."""
    return _Emitter(layout).module()


class _Emitter:
    """Lines of the function as they are written."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.lines: list[str] = []
        self.count = 0
        self.pairs: set[int] = set()

    # Writing.

    def say(self, text: str) -> None:
        self.lines.append(text)

    def value(self, text: str) -> str:
        """Write an instruction, and give the name of its result."""
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")

    # The frame, and the registers.

    def word(self, number: int, kind: str = "i64") -> str:
        place = self.value(f"getelementptr i64, ptr %frame, i64 {int(number)}")
        return self.value(f"load {kind}, ptr {place}")

    def set_word(self, number: int, value: str) -> None:
        place = self.value(f"getelementptr i64, ptr %frame, i64 {int(number)}")
        self.say(f"store i64 {value}, ptr {place}")

    def cell(self, register: int) -> str:
        """Address of the slot of a register."""
        pair = register & ~1
        self.pairs.add(pair)
        if register == pair:
            return f"%c{pair}"
        return self.value(f"getelementptr i8, ptr %c{pair}, i64 4")

    def read(self, kind: str, register: int) -> str:
        bits = self.value(f"load {TYPES[SAME_BITS.get(kind, kind)]}, ptr {self.cell(register)}")
        return self.reinterpreted(bits, kind) if kind in SAME_BITS else bits

    def reinterpreted(self, bits: str, kind: str) -> str:
        return self.value(f"bitcast {TYPES[SAME_BITS[kind]]} {bits} to {TYPES[kind]}")

    def write(self, kind: str, register: int, value: str) -> None:
        if kind in SAME_BITS:
            whole = SAME_BITS[kind]
            value = self.value(f"bitcast {TYPES[kind]} {value} to {TYPES[whole]}")
            kind = whole
        self.say(f"store {TYPES[kind]} {value}, ptr {self.cell(register)}")

    # The host.

    def outside(self, register: int) -> str:
        """Address of a register of the interpreter."""
        return self.value(f"getelementptr i8, ptr %cells, i64 {4 * register}")

    def spill(self, registers: Sequence[tuple[str, int]]) -> None:
        for kind, register in registers:
            bits = self.read(kind, register)
            self.say(f"store {TYPES[kind]} {bits}, ptr {self.outside(register)}, align 4")

    def reload(self, registers: Sequence[tuple[str, int]]) -> None:
        for kind, register in registers:
            bits = self.value(f"load {TYPES[kind]}, ptr {self.outside(register)}, align 4")
            self.write(kind, register, bits)

    def reload_references(self, ordinals: Sequence[int]) -> None:
        for ordinal in ordinals:
            address = self.word(self.layout.addresses[ordinal], "ptr")
            self.say(f"store ptr {address}, ptr %a{ordinal}")
            for access in self.layout.accesses:
                if access.reference == ordinal:
                    self.reload_count(access)

    def reload_count(self, access: Access) -> None:
        word = self.layout.counts[access]
        self.say(f"store i64 {self.word(word)}, ptr %n{word}")

    def call_host(self, number: int, *, gives: bool = False) -> None:
        """Have the host run an operation; ``gives``: it takes and hands back blocks to run."""
        if gives:
            self.set_word(Word.BLOCKS, self.value("load i64, ptr %blocks"))
        self.set_word(Word.DONE, "0")
        self.say(f"call void %host(i64 {number})")
        done = self.word(Word.DONE)
        if gives:
            self.say(f"store i64 {self.word(Word.BLOCKS)}, ptr %blocks")
        failed = self.value(f"icmp eq i64 {done}, 0")
        after = self.label()
        self.say(f"br i1 {failed}, label %failed, label %{after}{_SELDOM}")
        self.begin(after)

    def interpret(self, instruction: Instruction) -> None:
        """Have the interpreter run an instruction."""
        reads, writes = _registers(instruction)
        self.spill(reads)
        self.call_host(instruction.pc, gives=instruction.mnemonic.startswith("call"))
        self.reload(writes)
        self.reload_references(self.layout.changed(tuple(references_changed(instruction))))

    # Instructions.

    def instruction(self, instruction: Instruction) -> None:
        name = instruction.mnemonic
        if name in TEMPLATES:
            self.inlined(instruction, TEMPLATES[name])
        elif name in ACCESSES:
            self.access(instruction)
        elif _CONSTANT.fullmatch(name):
            kind = instruction.operation.fields[-1].kind
            value = 0 if name.endswith(".zero") else instruction.operands[0]
            self.write(SAME_BITS.get(kind, kind), instruction.operands[-1], str(value))
        elif _GLOBAL.fullmatch(name):
            self.global_access(instruction)
        elif _SELECT.fullmatch(name):
            self.select(instruction)
        elif name not in SILENT:
            self.interpret(instruction)

    def inlined(self, instruction: Instruction, template: str) -> None:
        """An operation by its template, with the slow way."""
        names: dict[str, str] = {}
        target, kind = 0, ""
        for field, operand in instruction.fields():
            if field.written:
                target, kind = operand, field.kind
            else:
                names["abc"[len(names)]] = self.read(field.kind, operand)

        def name_of(match: re.Match[str]) -> str:
            key = match[1]
            if key not in names:
                self.count += 1
                names[key] = f"%v{self.count}"
            return names[key]

        for line in template.split("; "):
            self.say(_NAME.sub(name_of, line))
        result = names["r"]
        slow = names.get("slow")
        if slow is None and kind in SAME_BITS:
            slow = self.value(f"fcmp uno {TYPES[kind]} {result}, {result}")
        if slow is None:
            self.write(kind, target, result)
            return
        way, fast, after = self.label(), self.label(), self.label()
        self.say(f"br i1 {slow}, label %{way}, label %{fast}{_SELDOM}")
        self.begin(way)
        self.interpret(instruction)
        self.say(f"br label %{after}")
        self.begin(fast)
        self.write(kind, target, result)
        self.say(f"br label %{after}")
        self.begin(after)

    def access(self, instruction: Instruction) -> None:
        """A load or a store within its buffer; the interpreter decides on all others."""
        access = access_of(instruction)
        _, offset, register = instruction.operands
        kind = instruction.operation.fields[2].kind
        whole = TYPES[SAME_BITS.get(kind, kind)]
        stored = _STORED_TYPES.get(access.element, whole)
        index = self.read("l", offset)
        if self.layout.tracked:
            self.track(access, stored, index)
        count = self.value(f"load i64, ptr %n{self.layout.counts[access]}")
        inside = self.value(f"icmp ult i64 {index}, {count}")
        way, fast, after = self.label(), self.label(), self.label()
        self.say(f"br i1 {inside}, label %{fast}, label %{way}{_OFTEN}")
        self.begin(way)
        self.interpret(instruction)
        if access.stores:
            self.reload_count(access)
        self.say(f"br label %{after}")
        self.begin(fast)
        base = self.value(f"load ptr, ptr %a{access.reference}")
        place = self.value(f"getelementptr {stored}, ptr {base}, i64 {index}")
        if access.stores:
            value = self.read(SAME_BITS.get(kind, kind), register)
            if stored != whole:
                value = self.value(f"trunc {whole} {value} to {stored}")
            self.say(f"store {stored} {value}, ptr {place}, align 1")
        else:
            value = self.value(f"load {stored}, ptr {place}, align 1")
            if stored != whole:
                extend = "sext" if access.element.startswith("s") else "zext"
                value = self.value(f"{extend} {stored} {value} to {whole}")
            self.say(f"store {whole} {value}, ptr {self.cell(register)}")
        self.say(f"br label %{after}")
        self.begin(after)

    def track(self, access: Access, stored: str, index: str) -> None:
        """Widen the range of the access in the frame, so that it takes this one in."""
        base = self.value(f"load ptr, ptr %a{access.reference}")
        first = self.value(f"getelementptr {stored}, ptr {base}, i64 {index}")
        behind = self.value(f"getelementptr {stored}, ptr {first}, i64 1")
        words = self.layout.ranges[access]
        for word, place, test in zip(words, (first, behind), ("ult", "ugt"), strict=True):
            address, held = self.value(f"ptrtoint ptr {place} to i64"), self.word(word)
            wider = self.value(f"icmp {test} i64 {address}, {held}")
            chosen = self.value(f"select i1 {wider}, i64 {address}, i64 {held}")
            self.set_word(word, chosen)

    def global_access(self, instruction: Instruction) -> None:
        kind = instruction.operation.fields[-1].kind
        kind = SAME_BITS.get(kind, kind)
        offset, register = instruction.operands
        place = self.value(f"getelementptr i8, ptr %globals, i64 {offset}")
        if ".load." in instruction.mnemonic:
            self.write(kind, register, self.value(f"load {TYPES[kind]}, ptr {place}"))
        else:
            self.say(f"store {TYPES[kind]} {self.read(kind, register)}, ptr {place}")

    def select(self, instruction: Instruction) -> None:
        kind = instruction.operation.fields[-1].kind
        kind = SAME_BITS.get(kind, kind)
        case, yes, no, target = instruction.operands
        condition = self.value(f"icmp ne i32 {self.read('i', case)}, 0")
        first, second = self.read(kind, yes), self.read(kind, no)
        chosen = f"select i1 {condition}, {TYPES[kind]} {first}, {TYPES[kind]} {second}"
        self.write(kind, target, self.value(chosen))

    # Blocks.

    def block_begin(self, pc: int, leave: int) -> None:
        """Count the block, and ask for further ones where there are none left."""
        self.begin(f"b{pc}")
        left = self.value("load i64, ptr %blocks")
        none = self.value(f"icmp eq i64 {left}, 0")
        ask, run = self.label(), self.label()
        self.say(f"br i1 {none}, label %{ask}, label %{run}{_SELDOM}")
        self.begin(ask)
        self.call_host(~leave, gives=True)
        self.say(f"br label %{run}")
        self.begin(run)
        left = self.value("load i64, ptr %blocks")
        self.say(f"store i64 {self.value(f'sub i64 {left}, 1')}, ptr %blocks")

    def way(self, branch: Branch) -> str:
        """A label from which a branch is taken, with its copies; they are written later."""
        if not branch.numbers and not branch.references:
            return f"b{branch.target}"
        label = self.label()
        self.ways.append((label, branch))
        return label

    def write_ways(self) -> None:
        for label, branch in self.ways:
            self.begin(label)
            for kind, source, target in _joined(branch.numbers):
                self.write(kind, target, self.read(kind, source))
            if branch.references:
                self.call_host(self.layout.copy_number(branch))
                self.reload_references(self.layout.changed(tuple(copied_references(branch))))
            self.say(f"br label %b{branch.target}")
        self.ways.clear()

    def leave(self, instruction: Instruction) -> None:
        """The instruction that ends a block."""
        name, ways = instruction.mnemonic, self.layout.branches[instruction.pc]
        if name == "cond_br":
            condition = self.value(f"icmp ne i32 {self.read('i', instruction.operands[0])}, 0")
            taken, other = (self.way(way) for way in ways)
            self.say(f"br i1 {condition}, label %{taken}, label %{other}")
        elif name == "br_table":
            case = self.read("i", instruction.operands[0])
            default, *cases = (self.way(way) for way in ways)
            listed = " ".join(f"i32 {number}, label %{way}" for number, way in enumerate(cases))
            self.say(f"switch i32 {case}, label %{default} [{listed}]")
        elif name == "return":
            self.interpret(instruction)
            self.say("br label %done")
        elif name == "fail":
            self.fail(instruction)
        else:
            if name.startswith("call"):
                self.interpret(instruction)
            self.say(f"br label %{self.way(ways[0])}")
        self.write_ways()

    def fail(self, instruction: Instruction) -> None:
        """A status of 0 goes on with the next block, if there is one."""
        status = self.value(f"icmp ne i32 {self.read('i', instruction.operands[0])}, 0")
        fails = self.label()
        following = f"b{instruction.end}" if instruction.end in self.starts else fails
        self.say(f"br i1 {status}, label %{fails}, label %{following}")
        self.begin(fails)
        self.interpret(instruction)
        self.say("br label %failed")

    # The whole.

    def module(self) -> str:
        self.ways: list[tuple[str, Branch]] = []
        self.starts = {entry.pc for entry in self.layout.instructions if entry.mnemonic == BLOCK}
        for body in _blocks(self.layout.instructions):
            self.block_begin(body[0].pc, body[-1].pc)
            for instruction in body[:-1]:
                self.instruction(instruction)
            self.leave(body[-1])
        blocks, self.lines = self.lines, []
        self.prologue()
        return "\n".join(
            [
                declarations(),
                f"define i64 @{ENTRY}(ptr %frame) nounwind {{",
                *self.lines,
                *blocks,
                *self.epilogue(),
                "}",
                _WEIGHTS,
            ]
        )

    def prologue(self) -> None:
        self.begin("entry")
        for pair in sorted(self.pairs | {entry & ~1 for entry in self.layout.arguments}):
            self.say(f"%c{pair} = alloca i64")
            self.say(f"store i64 0, ptr %c{pair}")
        for ordinal in self.layout.references:
            self.say(f"%a{ordinal} = alloca ptr")
        for word in self.layout.counts.values():
            self.say(f"%n{word} = alloca i64")
        self.say("%blocks = alloca i64")
        for name, number in (
            ("cells", Word.CELLS),
            ("globals", Word.GLOBALS),
            ("host", Word.HOST),
        ):
            self.say(f"%w{name} = getelementptr i64, ptr %frame, i64 {int(number)}")
            self.say(f"%{name} = load ptr, ptr %w{name}")
        self.say(f"store i64 {self.word(Word.BLOCKS)}, ptr %blocks")
        self.reload(_arguments(self.layout))
        self.reload_references(self.layout.references)
        self.say(f"br label %b{self.layout.instructions[0].pc}")

    def epilogue(self) -> Iterator[str]:
        """Both ends; each hands back the blocks that were not run."""
        for label, status in (("done", 0), ("failed", 1)):
            yield f"{label}:"
            yield f"%left.{label} = load i64, ptr %blocks"
            yield f"%place.{label} = getelementptr i64, ptr %frame, i64 {int(Word.BLOCKS)}"
            yield f"store i64 %left.{label}, ptr %place.{label}"
            yield f"ret i64 {status}"


def _blocks(instructions: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    body: list[Instruction] = []
    for entry in instructions:
        body.append(entry)
        if entry.operation.terminates:
            yield body
            body = []


def _arguments(layout: Layout) -> list[tuple[str, int]]:
    """Cells of the arguments."""
    found = {}
    for register in layout.arguments:
        found.update(dict.fromkeys(_cells(register)))
    return list(found)


def _cells(register: int) -> list[tuple[str, int]]:
    """What a register of any type takes: an even one both cells of its pair."""
    return [("i", register) if register % 2 else ("l", register)]


def _registers(
    instruction: Instruction,
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Registers with numbers that an instruction reads, and those that it writes.

    Of a list of registers of any type both cells are taken, and before what may be written as well:
    then what comes back is what was there.
    """
    reads: list[tuple[str, int]] = []
    writes: list[tuple[str, int]] = []
    for field, operand in instruction.fields():
        if field.kind in TYPES:
            kind = SAME_BITS.get(field.kind, field.kind)
            (writes if field.written else reads).append((kind, operand))
        elif field.kind == "V" and field.type in TYPES:
            reads += [(SAME_BITS.get(field.type, field.type), register) for register in operand]
        elif field.kind == "V" and field.type != "n":
            numbers = (register for register in operand if not register & REFERENCE_BIT)
            cells = [cell for register in numbers for cell in _cells(register)]
            reads += cells
            writes += cells if field.written else []
    return reads, writes


def _joined(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """Copies of cells, in order; of both cells of two numbers of 64 bits as one."""
    left = list(pairs)
    while left:
        source, target = left.pop(0)
        even = source % 2 == target % 2 == 0
        if even and left and left[0] == (source + 1, target + 1):
            left.pop(0)
            yield "l", source, target
        else:
            yield "i", source, target
