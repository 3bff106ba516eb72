"""The warnings and errors of Verilator and slang for the SystemVerilog sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import NamedTuple

from darwinn_rtl import bounded, toolchain
from darwinn_rtl.build import Design, bindings, design_sources, search_arguments
from darwinn_rtl.build_folders import build_root, locked
from darwinn_rtl.source_files import source_files, source_folder

NOT_MENDED: tuple[tuple[str, str, str], ...] = (
    (
        "sign-conversion|sign-compare|arith-op-mismatch|bitwise-op-mismatch",
        "",
        "parameters and loop variables are int, and stay signed when they are cast to the width of "
        "what they meet; both sides are equally wide, which Verilator checks, and none is negative",
    ),
    (
        "useless-cast",
        "int'|'logic",
        "the cast says the width where it follows from a parameter or from a system function",
    ),
    (
        "packed-array-conv",
        "",
        "a concatenation, or a port without the array's type, of the same bits in the same order",
    ),
    ("case-enum-explicit", "", "the default takes the instructions of all other units"),
    (
        "unused-but-set-variable",
        "'unused",
        "names for Verilator what a module leaves unread",
    ),
    (
        "unused-but-set-variable",
        "'(idle|flags|scalar_flags)'",
        "the C++ side of chip_player reads them",
    ),
    (
        "unconnected-output-port",
        "'(address|next_address|index|loop_ended|latest)'",
        "not every user of a traversal or of watchers reads all that they tell",
    ),
    (
        "upward-name",
        "'(host|[ms]_axil?_(read|write)|chip|tile|queue|tensor|packer|spreader|sender|gen_\\w+)'",
        "modules that count coincidences are bound into others and look at what is there",
    ),
)
"""Kinds of slang's warnings that stay: options, a pattern of the text, and the reason."""


class Finding(NamedTuple):
    """A warning or an error of slang: its option (errors that are always on have none), its text,
    and the file and line."""

    option: str
    text: str
    file: str
    line: int

    @property
    def reason(self) -> str:
        """Why it stays; empty if it must be fixed."""
        for options, pattern, reason in NOT_MENDED:
            if self.option in options.split("|") and re.search(pattern, self.text):
                return reason
        return ""


def verilator(design: Design) -> str:
    """The output of ``verilator --lint-only -Wall`` for ``design``; empty if it is clean."""
    toolchain.use_wheel_programs()
    folder = build_root() / design.key
    with locked(folder):
        sources = [*design_sources(design, folder), *bindings(folder, design)]
    command = [
        *("verilator", "--lint-only", "-Wall", "--assert", "--quiet-stats", "--quiet"),
        *(*search_arguments(), "--top-module", design.top),
        *(f"-G{name}={value}" for name, value in design.parameters.items()),
        *(f"+define+{name}" for name in design.defines),
        *map(str, sources),
    ]
    done = bounded.run(command, stdout=PIPE, stderr=PIPE, text=True)
    return str(done.stdout + done.stderr)


def slang(design: Design, tops: Sequence[str]) -> Iterator[Finding]:
    """All warnings and errors of slang for the sources, with each of ``tops`` elaborated with its
    default parameters; ``design`` says which sources are generated."""
    from pyslang.analysis import AnalysisManager
    from pyslang.driver import Driver

    folder = build_root() / design.key
    with locked(folder):
        generated = [path for path in design_sources(design, folder) if path.parent == folder]
        binds = bindings(folder, design)
    driver = Driver()
    driver.addStandardArgs()
    words = [*(f"--top={top}" for top in tops), *(f"-D{name}" for name in design.defines)]
    words += map(str, (*generated, *source_files(), *binds))
    assert driver.parseCommandLine(" ".join(["slang", "-Weverything", *words]))
    assert driver.processOptions() and driver.parseAllSources()
    compilation = driver.createCompilation()
    elaborated = list(compilation.getAllDiagnostics())
    analysis = AnalysisManager(driver.analysisOptions)
    analysis.analyze(compilation)
    engine, manager = driver.diagEngine, driver.sourceManager
    for found in (*elaborated, *analysis.getDiagnostics()):
        file = Path(manager.getFullPath(manager.getFullyExpandedLoc(found.location).buffer))
        ignored = engine.getSeverity(found.code, found.location).name == "Ignored"
        if not found.isError() and (ignored or source_folder() not in file.parents):
            continue
        yield Finding(
            engine.getOptionName(found.code),
            engine.formatMessage(found),
            file.name,
            manager.getLineNumber(found.location),
        )
