"""Writing programs: instructions from names and numbers, traversals from loops, chunk framing.

A chunk is what the host queues at once: LoadProgram, the program, Execute. The program runs from
the bundle after LoadProgram to a Halt.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from darwinn_sim.isa.codec import encode_operations
from darwinn_sim.isa.fields import BUNDLE_BYTES
from darwinn_sim.isa.strides import normalised
from darwinn_sim.isa.table import BY_NAME

Values = Mapping[str, int | float | Sequence[int] | Sequence[float]]
"""Field values by name; floats are for float32 fields, sequences for repeated fields."""

PROGRAM_BUNDLES = 1 << BY_NAME["LoadProgram"].field("start_pc").width
"""Bundles of program memory: the longest program of one chunk."""

_EMPTY_BUNDLES_AFTER_HALT = 4


def build(operations: Iterable[tuple[str, Values]]) -> bytes:
    """Encode (instruction name, field values) pairs, one after another.

    A float given for a ``float32`` field is stored as the nearest float32; an int is stored as
    the field's bits. Fields that are not given are 0.

    Raises:
        KeyError: unknown instruction or field name.
        ValueError: a value that does not fit its field, or a float for a field that holds none.
    """
    return encode_operations((name, _as_integers(name, values)) for name, values in operations)


def frame(body: bytes, *, last: bool = True) -> bytes:
    """Return the chunk that loads and executes ``body`` and then halts.

    Args:
        body: encoded instructions, without framing and without a Halt.
        last: False if the executable has a further chunk.

    Raises:
        ValueError: ``body`` is no whole number of bundles, or does not fit program memory.
    """
    if len(body) % BUNDLE_BYTES:
        raise ValueError(f"a program of {len(body)} bytes ends inside a bundle")
    halt: Values = {"program_end": 1} if last else {"chunk_end": 1}
    tail = build([("Halt", halt), *[("Scalar", {})] * _EMPTY_BUNDLES_AFTER_HALT])
    bundles = (len(body) + len(tail)) // BUNDLE_BYTES
    if bundles > PROGRAM_BUNDLES:
        raise ValueError(f"a program of {bundles} bundles exceeds the {PROGRAM_BUNDLES} of a chunk")
    load = build([("LoadProgram", {"bundles": bundles})])
    return load + body + tail + build([("Execute", {"load_pc": 1})])


def traversal(
    instruction: str,
    name: str,
    base: int,
    loops: Sequence[tuple[int, int]],
    *,
    double: tuple[int, int] = (0, 0),
    alternate: tuple[int, int] = (0, 0),
) -> dict[str, int | Sequence[int]]:
    """Return the fields of traversal ``name`` of an instruction, from real loop counts and steps.

    Args:
        instruction: name of the instruction.
        name: name of the traversal in the instruction, such as ``narrow_read``.
        base: first address, in the traversal's unit.
        loops: (iterations, step) of each loop, innermost first; further loops run once. A step of
            0 leaves the loop out of the mask.
        double: (loop, distance of the second buffer) of double buffering; loop 0: none.
        alternate: (loop, iterations of loop 0 during the last iteration of that loop); loop 0:
            none.

    Raises:
        KeyError: unknown instruction or traversal.
        ValueError: more loops than the traversal has, or a loop that does not run.
    """
    depth = BY_NAME[instruction].field(f"{name}_stride").count
    if len(loops) > depth:
        raise ValueError(f"{instruction}.{name} has {depth} loops, not {len(loops)}")
    if any(count < 1 for count, _ in loops):
        raise ValueError(f"{instruction}.{name}: every loop runs at least once")
    rest = depth - len(loops)
    limit = np.array([count - 1 for count, _ in loops] + [0] * rest)
    step = np.array([value for _, value in loops] + [0] * rest)
    mask = sum(1 << loop for loop, value in enumerate(step) if value)
    alternate_loop, alternate_count = alternate
    fields: dict[str, int | Sequence[int]] = {
        "base": base,
        "stride": normalised(step, limit, np.array(mask)).tolist(),
        "limit": limit.tolist(),
        "mask": mask,
        "double_loop": double[0],
        "double_offset": double[1],
        "alternate_loop": alternate_loop,
    }
    if alternate_loop:
        fields["alternate_limit"] = alternate_count - 1
        fields["alternate_reset"] = int(step[0] * (limit[0] + 1 - alternate_count))
    return {f"{name}_{key}": value for key, value in fields.items()}


def _as_integers(name: str, values: Values) -> dict[str, int | Sequence[int]]:
    return {
        field: [_bits(name, field, item) for item in value]
        if isinstance(value, Sequence)
        else _bits(name, field, value)
        for field, value in values.items()
    }


def _bits(instruction: str, field: str, value: int | float) -> int:
    if not isinstance(value, float):
        return value
    if BY_NAME[instruction].field(field).kind != "float32":
        raise ValueError(f"{instruction}.{field} holds no float, not {value}")
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
    except OverflowError:
        raise ValueError(f"{instruction}.{field} holds a float32, not {value}") from None
    return int(bits)
