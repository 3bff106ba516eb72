"""The layers of a profile as CSV, for spreadsheets: a column for each figure and each cause."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence

from darwinn_sim.timing import Cause

from darwinn_testbench.profile.profile import ProfileRow

_WAITS = [cause.label for cause in Cause if cause not in (Cause.BUSY, Cause.FINISHED)]


def to_csv(rows: Sequence[ProfileRow]) -> bytes:
    """A header and a line for each layer."""
    plain = [
        item.name
        for item in dataclasses.fields(ProfileRow)
        if item.name not in ("waiting", "verdict", "message")
    ]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*plain, *(f"waiting for {cause}" for cause in _WAITS)])
    for row in rows:
        waits = [row.waiting.get(cause, 0) for cause in _WAITS]
        writer.writerow([*(getattr(row, name) for name in plain), *waits])
    return stream.getvalue().encode()
