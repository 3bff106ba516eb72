"""Where the facts of the instruction table come from, by the word under which a field cites it.

What only one field cites stands beside that field.
"""

from __future__ import annotations

from typing import Final

EVIDENCE: Final = {
    # Programs, executed or replayed.
    "simulation": "byte-exact simulation of whole programs",
    "one_network": "byte-exact simulation of one network",
    "additions": "byte-exact simulation of additions",
    "lstm": "byte-exact simulation of an LSTM",
    "lstm_alone": "byte-exact simulation of an LSTM, the one program that uses it",
    "zero_points": "byte-exact simulation of one network; elsewhere every zero point is 128",
    "token_counts": "byte-exact simulation of 9 executables of 2019, with counts from 1 to 10,213",
    "softmax": "softmax on the scalar core is byte-exact",
    "descriptors": "the descriptors of 170 executables come out exact",
    "byte_counts": "byte and row counts of 170 executables",
    "sync": "whole programs run to their end with no flag forced",
    # Laws over all known programs.
    "strides": "172,514 traversals without exception",
    "alternates": "14,320 traversals without exception",
    "rows": "row counts of 13,839 instructions",
    "tensors": "a law over 13,046 tensor instructions",
    "counters": "counters agree in 42,176 of 42,176 checks",
    "flags_5_6": "flags 5 and 6 agree in 388 of 388 checks; others are never awaited here",
    "targets": "29 of 29 targets are instruction boundaries",
    # Values that never vary.
    "zero": "always 0 in every known program",
    "public_name": "always 0 in every known program; name from public code",
    "last_fence": "set in the last fence of a program only; name from public code",
    "chunks": "always 0 in 203 chunks",
}
"""Evidence by key."""
