"""Versions of the bytecode: which releases of IREE write each, and what it changed.

Read from the history of the public schema, of the opcodes and of the releases' own modules. Within
a version, releases added operations at the end of the numbering, so that older modules stay valid.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BytecodeVersion:
    """A major version; ``minor`` is the highest minor one that is read, -1 if none is.

    ``first`` and ``last`` are releases, without text where no release wrote it, or where the newest
    does.
    """

    major: int
    minor: int
    first: str
    last: str
    changes: str


VERSIONS = (
    BytecodeVersion(
        13,
        -1,
        "",
        "20230228.444",
        "another schema: exports have their own signatures, functions no blocks and no features",
    ),
    BytecodeVersion(14, -1, "", "", "features that modules and functions require; in no release"),
    BytecodeVersion(
        15,
        0,
        "20230404.479",
        "3.9.0",
        "blocks have markers. Added since: `min`, `max`, `round.even`, `cast.any.ref`, `br_table`, "
        "`buffer.hash`, casts of f32 from and to 64 bits",
    ),
    BytecodeVersion(16, 0, "3.10.0", "3.10.0", "`discard.refs`, `assign.ref`"),
    BytecodeVersion(
        17,
        0,
        "3.11.0",
        "",
        "`call.yieldable`, `call.variadic.yieldable`; the feature bits `yield` and `unwind`",
    ),
)

READ = {entry.major: entry.minor for entry in VERSIONS if entry.minor >= 0}
"""Highest minor version that is read of each major one; lower ones are compatible."""


def unread(major: int) -> BytecodeVersion | None:
    """A version that is known and not read."""
    return next((entry for entry in VERSIONS if entry.major == major and entry.minor < 0), None)
