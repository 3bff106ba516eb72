"""Our references and the original runtimes on the same programs, in one table.

    python -m benchmarks.conformance [--only WORD] [--json] [--seconds N]

Makes ExecuTorch programs (operators, networks, state, control flow, several methods, external
weights, quantised by XNNPACK's and torchao's quantisers) and IREE modules, calls each several times
with random inputs, and compares all outputs: integers exactly, floats within the policy
``float32-reassociated``. Needs the extras ``executorch`` and ``iree``; of what is missing the
programs are left out, and named. Each program is made and run in a process of its own, since the
original runtimes may crash, for at most N seconds (300).

Exits with 1 at a difference, or where something is refused or fails here that the original
executes, with 2 if nothing could be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict

from benchmarks.common import machine, refuse, with_word
from benchmarks.conformance.run import FAILURES, FORMATS, Row, Worker


def _number(value: float | None, pattern: str) -> str:
    return "" if value is None else format(value, pattern)


def show(row: Row) -> None:
    print(
        f"{row.format:<10} {row.name:<42} {_number(row.worst, '.2g'):>8} "
        f"{_number(row.ours, '.2f'):>9} {_number(row.theirs, '.2f'):>9}  {row.outcome}"
        f"{': ' + row.reason[:120] if row.reason else ''}",
        flush=True,
    )


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--only", metavar="WORD", default="", help="programs with WORD in the name"
    )
    options.add_argument("--json", action="store_true", help="print all rows as JSON instead")
    options.add_argument("--seconds", type=float, default=300.0, metavar="N")
    return options.parse_args()


def main() -> int:
    options = _options()
    programs: list[tuple[str, str]] = []
    for kind, entry in FORMATS.items():
        reason = entry.missing()
        if reason:
            print(reason, file=sys.stderr)
            continue
        programs += [(kind, name) for name in entry.makers()]
    if not programs:
        refuse("nothing to compare: pip install 'darwinn-testbench[executorch,iree]'")
    chosen = with_word(options.only, programs, " ".join)
    worker, rows = Worker(options.seconds), []
    if not options.json:
        print(machine())
        print(f"{'format':<10} {'program':<42} {'apart':>8} {'ours ms':>9} {'theirs':>9}  outcome")
    for kind, name in chosen:
        rows.append(worker(kind, name))
        if not options.json:
            show(rows[-1])
    worker.close()
    counts = dict(Counter(row.outcome for row in rows))
    if options.json:
        print(json.dumps({"counts": counts, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        print(f"{len(rows)} programs: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return int(any(row.outcome in FAILURES for row in rows))


if __name__ == "__main__":
    sys.exit(main())
