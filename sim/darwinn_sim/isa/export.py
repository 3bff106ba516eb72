"""The instruction table as JSON, for tools of others: ``python -m darwinn_sim.isa.export``.

What the members mean is told in docs/isa.md ("For other tools"); nothing else is needed to decode,
list or encode a stream.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from darwinn_sim.isa.codes import CODES
from darwinn_sim.isa.fields import BUNDLE_BYTES, Field, Graded, Instruction
from darwinn_sim.isa.table import INSTRUCTIONS


def table() -> dict[str, Any]:
    """Return the whole table, of what JSON has: objects, lists, texts, numbers, truth values."""
    return {
        "bundle_bytes": BUNDLE_BYTES,
        "codes": {
            name: {
                "meaning": (codes.__doc__ or "").strip(),
                "values": [
                    {"value": int(code), "name": code.label, "meaning": code.meaning}
                    for code in codes
                ],
            }
            for name, codes in CODES.items()
        },
        "instructions": [_instruction(instruction) for instruction in INSTRUCTIONS.values()],
    }


def _instruction(instruction: Instruction) -> dict[str, Any]:
    signals = [
        asdict(signal) | {"flag": int(signal.flag), "codes": type(signal.flag).__name__}
        for signal in instruction.signals
    ]
    fields = [_field(field) for field in instruction.fields]
    return asdict(instruction) | {"fields": fields, "signals": signals}


def _field(field: Field) -> dict[str, Any]:
    return asdict(field) | {
        "signed": field.signed,
        "codes": field.codes.__name__ if field.codes else None,
        "grades": [_graded(entry) for entry in field.grades],
    }


def _graded(entry: Graded) -> dict[str, Any]:
    given = {name: _spans(values) for name, values in entry.given}
    return asdict(entry) | {"values": _spans(entry.values), "given": given}


def _spans(values: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of values."""
    if isinstance(values, range):
        return [(values[0], values[-1])]
    return [(value, value) for value in values]


if __name__ == "__main__":
    json.dump(table(), sys.stdout, indent=1)
    sys.stdout.write("\n")
