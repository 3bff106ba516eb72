"""The layers of a profile as CSV, for spreadsheets: a column for each figure and each cause."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence

from darwinn_testbench.profile.profile import WAITS, ProfileRow


def to_csv(rows: Sequence[ProfileRow]) -> bytes:
    """A header and a line for each layer."""
    left_out = {"waiting", "verdict", "message"}
    if not any(row.tensor for row in rows):
        left_out |= {"operator", "tensor"}
    plain = [item.name for item in dataclasses.fields(ProfileRow) if item.name not in left_out]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*plain, *(f"waiting for {cause.label}" for cause in WAITS)])
    for row in rows:
        waits = [row.waiting.get(cause.label, 0) for cause in WAITS]
        writer.writerow([*(getattr(row, name) for name in plain), *waits])
    return stream.getvalue().encode()
