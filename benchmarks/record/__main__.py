"""Has the project become slower? Measures beside the record, which is kept in the repository.

    make bench-record                        measure, and append a line to the record
    make bench                               measure, among other things, and compare
    python -m benchmarks.record [--append] [--only WORD] [--repeat N] [--page FILE] [--json]

Each measure is the least processor time of N turns, in turn with a fixed calibration loop; what is
compared is the ratio of both, with the last line of the same machine or, where there is none, of
any. Real models need DARWINN_CORPUS, the RTL its toolchain (docs/rtl-run.md). --page FILE writes
the record's page and measures nothing. --append keeps the measures, slower or not: measure without
it first. It keeps no line of a machine that is busy, or changes its speed meanwhile (2). Without it
this exits with 1 if a measure takes more than 1.1 times what the record says, also in three more
processes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.common import STARTS, alone, commit, machine, parser, refuse, with_word, write_page
from benchmarks.record.history import (
    ALLOWED,
    BUSY,
    LOOP,
    UNSTEADY,
    Change,
    Entry,
    Line,
    append,
    busier,
    change,
    read,
    unsteadiness,
)
from benchmarks.record.measures import MEASURES, measured
from benchmarks.record.page import page_of

HISTORY = Path(__file__).with_name("history.jsonl")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--append", action="store_true", help="keep it as a line of the record")
    options.add_argument("--only", default="", metavar="WORD", help="measures with this word")
    options.add_argument(
        "--history", type=Path, default=HISTORY, metavar="FILE", help="another record"
    )
    options.add_argument("--page", metavar="FILE", help="write the page of the record")
    options.add_argument("--json", action="store_true", help="print every change as JSON")
    return options.parse_args(arguments)


def changes(
    lines: Sequence[Line], here: str, names: Collection[str], repeat: int
) -> Iterator[Change]:
    """The measures of these names beside the record; what seems to be lost, or was measured when
    the machine was slow, is measured again."""
    quickest = math.inf
    for number, measure in enumerate(MEASURES):
        if measure.name not in names or not measure.can_be():
            continue
        entry = _entry(number, repeat)
        for _ in range(STARTS - 1):
            quickest = min(quickest, entry.calibration)
            slow = entry.calibration > ALLOWED * quickest
            if not slow and not change(lines, here, measure.name, entry).lost:
                break
            entry = entry.best(_entry(number, 2 * repeat))
        yield change(lines, here, measure.name, entry)


def _entry(number: int, repeat: int) -> Entry:
    loop, seconds = alone(measured, number, repeat)
    return Entry(seconds, loop)


def show(each: Change) -> None:
    before = "" if each.before is None else f"{each.before.ratio:10.3f}"
    times = "" if each.times is None else f"{each.times:7.2f}"
    print(
        f"{each.name:<28} {1e3 * each.entry.seconds:10.2f} {each.entry.ratio:10.3f} {before:>10} "
        f"{times:>7}{'  SLOWER' if each.lost else ''}",
        flush=True,
    )


def _reason_against(lines: Sequence[Line], here: str, entries: Mapping[str, Entry]) -> str:
    """Why the machine is in no state to keep a line; empty if it is."""
    if (busy := busier(lines, here, entries)) > BUSY:
        return (
            f"this machine is busy: the calibration loop takes {busy:.1f} times what it took for "
            "the last line"
        )
    if (times := unsteadiness(entries)) > UNSTEADY:
        return (
            f"this machine changes its speed: the calibration loop takes {times:.1f} times as long "
            "beside one measure as beside another"
        )
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    try:
        lines = read(options.history)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.page:
        if not lines:
            print(f"{options.history}: there is no line to draw", file=sys.stderr)
            return 2
        write_page(options.page, page_of(lines))
        return 0
    names = with_word(options.only, [measure.name for measure in MEASURES])
    here, found = machine(), []
    if not options.json:
        print(here)
        print(f"{'measure':<28} {'ms':>10} {'ratio':>10} {'record':>10} {'times':>7}")
    for each in changes(lines, here, names, options.repeat):
        found.append(each)
        if not options.json:
            show(each)
    if not found:
        refuse(
            f"no measure to take, of {', '.join(names)}: real models need DARWINN_CORPUS, the RTL "
            "its toolchain"
        )
    if options.append:
        entries = {each.name: each.entry for each in found}
        if reason := _reason_against(lines, here, entries):
            print(f"{reason}; nothing was appended", file=sys.stderr)
            return 2
        append(options.history, Line(time.strftime("%Y-%m-%d"), commit(), here, entries, LOOP))
    lost = [each.name for each in found if each.lost]
    if options.json:
        print(json.dumps({"machine": here, "lost": lost, "changes": [*map(asdict, found)]}))
    elif lost:
        print(f"slower than {ALLOWED:g} times the record: {', '.join(lost)}")
    return int(bool(lost) and not options.append)


if __name__ == "__main__":
    sys.exit(main())
