"""What the numbers in instruction fields stand for: operations, sync flags, units, memories.

Each enumeration names the values of a field, or the bits of a mask. The table refers to them, and
the disassembler and docs/isa.md take names and meanings from here; the chip model uses them
instead of bare numbers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class Code(IntEnum):
    """A value of a field (or a bit of a mask) with a name and a one-sentence meaning."""

    meaning: str

    def __new__(cls, value: int, meaning: str = "") -> Self:
        """Make a member from its number and its meaning."""
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    @property
    def label(self) -> str:
        """The name as listings show it."""
        return self.name.lower()


class TileFlag(Code):
    """Sync flags of a tile."""

    ACTIVATION_WRITE = 0, "the tensor unit wrote narrow memory"
    PARAMETER_READ = 1, "the tensor unit read parameters"
    PARTIAL_SUM_WRITE = 2, "the tensor unit wrote partial sums"
    MESH_INBOUND_FROM_NORTH = 3, "words from the north were written"
    MESH_INBOUND_FROM_EAST = 4, "words from the east were written"
    MESH_INBOUND_FROM_SOUTH = 5, "words from the south were written"
    MESH_INBOUND_FROM_WEST = 6, "words from the west were written"
    MESH_OUTBOUND_FOR_NORTH = 7, "words for the north were read"
    MESH_OUTBOUND_FOR_EAST = 8, "words for the east were read"
    MESH_OUTBOUND_FOR_SOUTH = 9, "words for the south were read"
    MESH_OUTBOUND_FOR_WEST = 10, "words for the west were read"
    WIDE_TO_NARROW_WRITE = 11, "wide-to-narrow wrote narrow memory"
    WIDE_TO_SCALING = 12, "wide-to-narrow loaded a block of the scale/bias buffer"
    NARROW_TO_WIDE_WRITE = 13, "narrow-to-wide wrote wide memory"
    RING_BUS_READ_A = 14, "ring consumer A wrote wide memory"
    RING_BUS_READ_B = 15, "ring consumer B wrote wide memory"
    RING_BUS_WRITE = 16, "the ring producer of this tile sent rows"
    RING_PRODUCER_A = 17, "turn on ring channel A: a sender anywhere finished its part"
    RING_PRODUCER_B = 18, "turn on ring channel B: a sender anywhere finished its part"


class ScalarFlag(Code):
    """Sync flags of the scalar core."""

    AV_POP = 0, "a unit of activations arrived in the activation buffer"
    PARAMETER_POP = 1, "a unit of parameters arrived in the parameter buffer"
    AV_INFEED = 2, "a unit of the activation buffer was sent: its place is free"
    PARAMETER_INFEED = 3, "a unit of the parameter buffer was sent: its place is free"
    SCALAR_INFEED = 4, "a word of scalar memory was sent"
    RING_PRODUCER_A = 5, "a tile sent its part on ring channel A"
    RING_PRODUCER_B = 6, "a tile sent its part on ring channel B"
    RING_OUTFEED = 7, "a ring outfeed took its part from the ring"
    PIPELINE = 8, "never used; name from public code"


class TileUnit(Code):
    """Units of a tile, as bits of a tile fence; what a unit is called everywhere."""

    TENSOR = 0, "tensor unit"
    RING_PRODUCER = 1, "ring producer"
    RING_CONSUMER_A = 2, "ring consumer A"
    RING_CONSUMER_B = 3, "ring consumer B"
    WIDE_TO_NARROW = 4, "wide-to-narrow"
    NARROW_TO_WIDE = 5, "narrow-to-wide"
    MESH_SOUTH = 6, "mesh south"
    MESH_WEST = 7, "mesh west"
    MESH_NORTH = 8, "mesh north"
    MESH_EAST = 9, "mesh east"


class ScalarUnit(Code):
    """Units beside the scalar core, as bits of a scalar fence; what they are called everywhere."""

    AV_POP = 0, "activation pop"
    PARAMETER_POP = 1, "parameter pop"
    RING_INFEED = 2, "ring infeed"
    RING_OUTFEED = 3, "ring outfeed"
    DRAIN = 4, "host output"


class LoadOperation(Code):
    """Load slot of a scalar bundle."""

    NONE = 0, "no load"
    DIRECT = 1, "register = memory[address]"
    INDIRECT = 2, "register = memory[register number address & 31]"
    POST_INCREMENT = 3, "as indirect, then that register += address >> 5"


class StoreOperation(Code):
    """Store slot of a scalar bundle."""

    NONE = 0, "no store"
    DIRECT = 1, "memory[address] = register"
    INDIRECT = 2, "memory[register number address & 31] = register"
    POST_INCREMENT = 3, "as indirect, then that register += address >> 5"
    PUSH = 4, "push the register's 4 bytes to the output stream of the host"
    DESCRIPTOR = 5, "descriptor word number address & 3 = register"
    ISSUE = 6, "issue the descriptor to the DMA engine"


class DescriptorWord(Code):
    """Words of the DMA descriptor that a scalar bundle fills."""

    ADDRESS_LOW = 0, "lower 32 bits of the host address"
    ADDRESS_HIGH = 1, "upper 32 bits of the host address"
    SIZE = 2, "bytes"
    TAG = 3, "what the descriptor transfers"


class DescriptorTag(Code):
    """What a DMA descriptor transfers."""

    INSTRUCTIONS = 0, "an instruction chunk (the host's side only: the chip never issues it)"
    INPUT = 1, "input activations, and scratch that is read back"
    PARAMETERS = 2, "parameters"
    OUTPUT = 3, "output activations, and scratch that is written out"
    INTERRUPT_0 = 4, "host interrupt 0 (address and size are 0)"
    INTERRUPT_1 = 5, "host interrupt 1"
    INTERRUPT_2 = 6, "host interrupt 2"
    INTERRUPT_3 = 7, "host interrupt 3"


class AluOperation(Code):
    """ALU slot of a scalar bundle: a and b are its operands; float operations are float32."""

    NONE = 0, "no operation"
    ADD = 1, "a + b"
    SUBTRACT = 2, "a - b"
    AND = 3, "a & b"
    OR = 4, "a | b"
    XOR = 5, "a ^ b"
    SHIFT_LEFT = 6, "a << b"
    SHIFT_RIGHT = 7, "a >> b, zeros shifted in"
    ARITHMETIC_SHIFT_RIGHT = 8, "a >> b, sign shifted in; assumed, name from public code"
    EQUAL = 9, "predicate = (a == b)"
    NOT_EQUAL = 10, "predicate = (a != b)"
    GREATER = 11, "predicate = (a > b), signed; assumed, name from public code"
    LESS = 12, "predicate = (a < b), signed: programs test the top bit with it to get a carry"
    GREATER_EQUAL = 13, "predicate = (a >= b), signed"
    GREATER_EQUAL_UNSIGNED = 14, "predicate = (a >= b), unsigned; assumed"
    MOVE = 15, "b"
    TO_FLOAT = 16, "float32 of the signed b; how it rounds beyond 2^24 is unknown"
    TO_INTEGER = 17, "integer nearest to the float32 b"
    FLOAT_ADD = 18, "a + b"
    FLOAT_SUBTRACT = 19, "a - b"
    FLOAT_MULTIPLY = 20, "a * b"
    FLOAT_MAXIMUM = 21, "the greater of a and b; known from the softmax code alone"
    FLOAT_MINIMUM = 22, "the smaller of a and b; known from the softmax code alone"

    @property
    def sets_predicate(self) -> bool:
        """True if the destination is a predicate, not a register."""
        return AluOperation.EQUAL <= self <= AluOperation.GREATER_EQUAL_UNSIGNED


class ScalarFunction(Code):
    """Transcendental slot of a scalar bundle, on float32."""

    NONE = 0, "no function"
    RECIPROCAL = 2, "1 / x"
    EXP2 = 3, "2 to the power x"


class InputFifo(Code):
    """Input streams from the host."""

    PARAMETERS = 0, "descriptors of tag 2; units of 64 bytes, buffer of 2 x 1024"
    ACTIVATIONS = 1, "descriptors of tag 1; units of 8 bytes, buffer of 2 x 16384"


class InfeedSource(Code):
    """What a ring infeed reads."""

    PARAMETERS = 0, "parameter buffer, units of 64 bytes"
    ACTIVATIONS = 1, "activation buffer, units of 8 bytes"
    SCALAR_MEMORY = 2, "scalar memory, words of 4 bytes"


class RingChannel(Code):
    """Channels of the ring bus."""

    A = 0, "rows go to ring consumer A"
    B = 1, "rows go to ring consumer B"


class RingTokens(Code):
    """Flags whose count a tile fence can await."""

    A = 0, "flag 17, tokens of ring producers for channel A"
    B = 1, "flag 18, tokens of ring producers for channel B"


class WatcherSide(Code):
    """Which traversal of an instruction a watcher holds back."""

    FIRST = 0, "the first traversal (the read, where there are two)"
    SECOND = 1, "the second traversal (the write)"


class PartialSumMode(Code):
    """What becomes of the accumulator."""

    WIDE_MEMORY_FIRST = 0, "as 1, and the first pass reads the row, too; assumed"
    WIDE_MEMORY = 1, "read the int32 row in wide memory at the start, write it at the end of a run"
    ACCUMULATOR_FIRST = 2, "read the row at the start, write none; assumed"
    ACCUMULATOR = 3, "start from 0, keep the sum in the accumulator, write none"


class MacDisable(Code):
    """Which of the four multipliers of a lane stand still."""

    NONE = 0, "four products a step"
    ABOVE_BYTE_1 = 12, "two products a step: bytes 0 and 1"
    ABOVE_BYTE_0 = 14, "one product a step: byte 0"


class OutputFunction(Code):
    """Bits of the output function."""

    TABLE = 0, "the coefficient table is evaluated"
    RANGE_REDUCTION = 1, "x = m * 4^k with 1 <= m < 4 and y = table(m) * 2^-k"
    OUTPUT_16BIT = 2, "outputs are 16 bit, little-endian"


CODES: dict[str, type[Code]] = {codes.__name__: codes for codes in Code.__subclasses__()}
"""Every enumeration of this module by name."""
