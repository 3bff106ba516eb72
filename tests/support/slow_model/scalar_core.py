"""Slow scalar core: an interpreter of bundles, loops and branches (docs/isa.md).

Each slot of a bundle computes its effects from the registers as they were; all effects are applied
together at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Fields = Mapping[str, Any]
WORD = 1 << 32


def signed(word: int) -> int:
    """A register as two's complement."""
    return word - WORD if word >> 31 else word


def to_float(word: int) -> np.float32:
    """A register as float32."""
    return np.float32(struct.unpack("<f", struct.pack("<I", word))[0])


def to_word(value: Any) -> int:
    """The bits of a float32; all that are no number have the same."""
    return 0x7FC00000 if np.isnan(value) else int(np.float32(value).view(np.uint32))


REGISTER_OPERATIONS: dict[int, Callable[[int, int], int]] = {
    1: lambda a, b: (a + b) % WORD,
    2: lambda a, b: (a - b) % WORD,
    3: lambda a, b: a & b,
    4: lambda a, b: a | b,
    5: lambda a, b: a ^ b,
    6: lambda a, b: (a << b % 32) % WORD,
    7: lambda a, b: a >> b % 32,
    15: lambda a, b: b,
    16: lambda a, b: to_word(np.float32(signed(b))),
    17: lambda a, b: int(np.rint(to_float(b))) % WORD,
    18: lambda a, b: to_word(to_float(a) + to_float(b)),
    19: lambda a, b: to_word(to_float(a) - to_float(b)),
    20: lambda a, b: to_word(to_float(a) * to_float(b)),
    21: lambda a, b: to_word(max(to_float(a), to_float(b))),
    22: lambda a, b: to_word(min(to_float(a), to_float(b))),
}
PREDICATE_OPERATIONS: dict[int, Callable[[int, int], bool]] = {
    9: lambda a, b: a == b,
    10: lambda a, b: a != b,
    12: lambda a, b: signed(a) < signed(b),
    13: lambda a, b: signed(a) >= signed(b),
}
FUNCTIONS: dict[int, Callable[[int], int]] = {
    2: lambda x: to_word(np.float32(1) / to_float(x)),
    3: lambda x: to_word(np.float32(np.exp2(np.float64(to_float(x))))),
}


class Machine:
    """Registers, predicates and memory; what left the core; how many bundles were executed."""

    def __init__(self, memory: Sequence[int]) -> None:
        self.registers = [0] * 32
        self.predicates = [0] * 8
        self.memory = list(memory)
        self.descriptor = [0, 0, 0, 0]
        self.issued: list[tuple[int, ...]] = []
        self.output = b""
        self.steps = 0

    def run(self, program: Sequence[tuple[str, Fields]], most: int = 100_000) -> None:
        """Execute one-bundle instructions (Scalar, Loop, Branch) until the end or ``most``."""
        pc = 0
        loops: list[list[int]] = []
        while pc < len(program) and self.steps < most:
            name, fields = program[pc]
            self.steps += 1
            following = pc + 1
            if name == "Scalar":
                self.bundle(fields)
            elif name == "Branch" and self._taken(fields):
                following = pc + fields["offset"]
            elif name == "Loop":
                # First bundle, bundle after the body, passes left.
                loops.append([pc + 1, pc + 1 + fields["body"], fields["count"]])
                pc += 1
                continue
            while loops and loops[-1][1] == following:
                loops[-1][2] -= 1
                if loops[-1][2]:
                    following = loops[-1][0]
                    break
                loops.pop()
            pc = following

    def _taken(self, fields: Fields) -> bool:
        if not fields.get("conditional"):
            return True
        return bool(self.predicates[fields["branch_predicate"]] == fields["branch_polarity"])

    def bundle(self, fields: Fields) -> None:
        """Execute one scalar bundle; fields that are not given are 0."""

        def get(name: str) -> int:
            return int(fields.get(name, 0))

        if get("gate") and self.predicates[get("predicate")] != get("polarity"):
            return
        old = tuple(self.registers)
        new: dict[int, int] = {}
        loaded = self._load(old, get, new)
        self._store(old, get, new)
        with np.errstate(all="ignore"):
            self._alu(old, get, new)
            if get("function_op"):
                operand = old[get("function_source")]
                new[get("function_destination")] = FUNCTIONS[get("function_op")](operand)
        for register, value in (loaded | new).items():
            self.registers[register] = value

    def _load(
        self, old: tuple[int, ...], get: Callable[[str], int], new: dict[int, int]
    ) -> dict[int, int]:
        operation, where = get("load_op"), get("load_address")
        if not operation:
            return {}
        pointer = where % 32
        if operation == 3:
            new[pointer] = (old[pointer] + (where >> 5)) % WORD
        return {get("load_register"): self.memory[where if operation == 1 else old[pointer]]}

    def _store(self, old: tuple[int, ...], get: Callable[[str], int], new: dict[int, int]) -> None:
        operation, where = get("store_op"), get("store_address")
        value, pointer = old[get("store_register")], where % 32
        if operation in (1, 2, 3):
            self.memory[where if operation == 1 else old[pointer]] = value
        if operation == 3:
            new[pointer] = (old[pointer] + (where >> 5)) % WORD
        if operation == 4:
            self.output += value.to_bytes(4, "little")
        if operation == 5:
            self.descriptor[where % 4] = value
        if operation == 6:
            self.issued.append(tuple(self.descriptor))

    def _alu(self, old: tuple[int, ...], get: Callable[[str], int], new: dict[int, int]) -> None:
        operation = get("alu_op")
        a = old[get("alu_a")]
        b = get("alu_b") if get("alu_immediate") else old[get("alu_b") % 32]
        if operation in PREDICATE_OPERATIONS:
            outcome = PREDICATE_OPERATIONS[operation](a, b)
            self.predicates[get("alu_destination") % 8] = int(outcome)
        elif operation:
            new[get("alu_destination")] = REGISTER_OPERATIONS[operation](a, b)
