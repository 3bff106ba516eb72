"""Everything that takes hours: each job of the project with its share of a night.

    make nightly [HOURS=8] [ONLY="fuzz rtl"] [SEED=N] [JOBS=N] [OUT=FOLDER]

Random tests, the fuzzer, changes of the project's own sources, faults of real programs, hazards and
bounds of speed run one after the other. What a job does not use of its time is for those behind it;
one that goes on beyond its time is ended, and has failed. What needs something that is not there is
left out, by name. OUT (build/nightly) keeps what jobs go on with the next night, each job's output,
a line for each night in nights.jsonl, and a page about it with its figures beside those of the
nights before: nightly.html. The same SEED, which is printed, draws the same again.

Exits with 1 if a job failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

from darwinn_testbench.report.files import write_result

from benchmarks.common import commit, machine
from benchmarks.figures import FIGURES_VARIABLE, kept_figures
from tests.nightly.deadline import END_VARIABLE
from tests.nightly.jobs import JOBS, Job, command
from tests.nightly.page import page_of
from tests.nightly.results import Done, Night, Nights, Result

ROOT = Path(__file__).parents[2]
_HOUR = 3600.0
_GRACE = 1.5
"""A job that gets so many times its share of the time is ended."""
_AT_LEAST = 60.0
_TO_SAY = 30.0
"""Seconds in which a job that is ended may say what it has found: which tests have failed so far.
"""


def shares(jobs: Sequence[Job], seconds: float) -> Iterator[float]:
    """Seconds of each job in turn: of what is left, which is asked when its turn has come, and at
    least what it takes."""
    end = time.monotonic() + seconds
    for number, job in enumerate(jobs):
        left = max(0.0, end - time.monotonic())
        share = left * job.share / sum(each.share for each in jobs[number:])
        yield max(share, 60.0 * job.minutes)


def perform(job: Job, seconds: float, values: Mapping[str, str], log: Path) -> Done:
    """Run a job, with its output in ``log``; what it starts ends with it."""
    begin = time.monotonic()
    given = {**values, "seconds": str(int(seconds))}
    paths = [ROOT / each for each in ("formats", "sim", "testbench", "tests/support", ".")]
    figures = log.with_suffix(".figures.json")
    figures.unlink(missing_ok=True)
    environment = {
        **os.environ,
        FIGURES_VARIABLE: str(figures),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "DARWINN_NIGHTLY_SEED": values["seed"],
        END_VARIABLE: str(time.time() + seconds),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(job, given),
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_may_be_interrupted,
        )
        try:
            code = process.wait(_GRACE * seconds + _AT_LEAST)
            result = Result.PASSED if code == 0 else Result.FAILED
        except subprocess.TimeoutExpired:
            result = Result.LATE
            _interrupt(process)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    seconds_taken = round(time.monotonic() - begin)
    found = kept_figures(figures)
    return Done(job.name, result, seconds_taken, last_line(log), job.about, found)


def _may_be_interrupted() -> None:
    """What a shell starts in the background ignores SIGINT, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Have a job, and all that it has started, come to its end by itself."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(_TO_SAY)


def last_line(log: Path) -> str:
    """The last line of text of a file, of its end."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - (1 << 16)))
        lines = stream.read().decode(errors="replace").replace("\r", "\n").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    options = argparse.ArgumentParser(
        prog="python -m tests.nightly",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--hours", type=float, default=8.0, metavar="H", help="of all, about")
    names = [job.name for job in JOBS]
    options.add_argument("--only", nargs="*", choices=names, metavar="JOB", help=", ".join(names))
    options.add_argument("--seed", type=int, metavar="N", help="drawn and printed without")
    options.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    options.add_argument("--out", type=Path, default=Path("build/nightly"), metavar="FOLDER")
    found = options.parse_args(arguments)
    if not 0 < found.hours < 1000 or found.jobs < 1:
        options.error("a night has more than 0 hours, and at least one job at a time")
    if found.seed is None:
        found.seed = SystemRandom().randrange(1 << 31)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    out: Path = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    nights = Nights.load(out / "nights.jsonl")
    values = {"seed": str(options.seed), "jobs": str(options.jobs), "out": str(out)}
    print(f"nightly: seed {options.seed}, about {options.hours:g} h, in {out}", flush=True)
    wanted = [job for job in JOBS if not options.only or job.name in options.only]
    jobs = [job for job in wanted if not job.lacks()]
    lacking = tuple(
        Done(job.name, Result.LACKS, 0, job.lacks(), job.about) for job in wanted if job.lacks()
    )
    for each in lacking:
        print(each.line(), flush=True)
    started = time.strftime("%Y-%m-%d %H:%M")
    night = Night(started, commit(), machine(), options.seed, lacking)
    for job, seconds in zip(jobs, shares(jobs, options.hours * _HOUR), strict=True):
        print(f"{job.name}: {job.about} ({seconds / 60:.0f} min) ...", flush=True)
        done = perform(job, seconds, values, out / f"{job.name}.log")
        print(done.line(), flush=True)
        night = replace(night, jobs=(*night.jobs, done))
        # What is known so far survives whatever becomes of the jobs behind it.
        write_result(out / "nightly.html", page_of(night, nights, out))
    nights.add(night)
    print(f"nightly: {out / 'nightly.html'} shows it")
    return int(any(each.result.failed for each in night.jobs))


if __name__ == "__main__":
    sys.exit(main())
