"""Builds designs of ``rtl/`` with Verilator and runs cocotb tests on them, one test a process.

A design is a top module with its parameters. A build gets all packages, and finds the modules below
the top by file name, in any folder of ``rtl/``. Generated sources (packages of the instruction
table and of sizes, the register block) go into the build folder, never into the tree. A build
folder is kept and brought up to date: Verilator does not rewrite files whose contents are the same,
so only affected files are compiled again.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO

from darwinn_sim.isa import systemverilog

from darwinn_rtl import bounded, parameters, toolchain
from darwinn_rtl.build_folders import build_root, hold, locked, prune_builds
from darwinn_rtl.line_coverage import COVERAGE_VARIABLE, keep_counts
from darwinn_rtl.registers_rdl import systemrdl
from darwinn_rtl.source_files import own_folder, source, source_files, source_folder
from darwinn_rtl.source_order import in_order
from darwinn_rtl.waves import WAVES_VARIABLE, keep_waves

VERILATOR_ARGUMENTS = (
    *("--cc", "--build", "-j", "1", "--assert", "-O3", "-Wno-fatal"),
    *("--x-assign", "unique", "--x-initial", "unique"),
)
"""Assertions are always on. State without a reset starts at random, because Verilator has no X."""

SIMULATION_ENVIRONMENT = {
    "NO_COLOR": "1",
    # The bus models use what cocotb 2.1 deprecates; hundreds of lines of it hide what matters.
    "PYTHONWARNINGS": "ignore::DeprecationWarning",
}
"""Environment of every simulation."""

ARGUMENT_VARIABLE = "DARWINN_RTL_ARGUMENT"
"""Environment variable: one more argument of every simulation, such as the fault to make."""

RATIO_VARIABLE = "DARWINN_RTL_MEMORY_CLOCK_RATIO"
"""Environment variable: ``memory_clock_ratio`` of all builds, in place of the description's; with 7
or more the memories of tiles are block RAM."""

OPTIMIZATION_VARIABLE = "DARWINN_RTL_OPTIMIZATION"
"""Environment variable: the C++ compiler's level of optimisation, 0 to 3, of all builds. With 0 a
build takes much less time, and a simulation more: for a short run (docs/rtl-run.md)."""

_OPTIMIZATION = "2"

_IN_ONE_FILE = ("-MAKEFLAGS", "VM_PARALLEL_BUILDS=0")
"""Verilator's option that compiles all C++ of a module together. Then no header is precompiled:
that takes seconds, and it differs with the folder, so that a compiler cache knows no object again
that was made with it."""

_MAIN = "cocotb_main.cpp"

LOG_LINES = 60
"""Lines at the end of a simulation's log that a failure shows."""


def search_arguments() -> list[str]:
    """Verilator's options for the folders in which it finds modules by name."""
    # The first of a name is taken, and of a name only one is among the sources.
    folders = sorted({path.parent for path in source_files()}, key=_own_first)
    return [word for folder in folders for word in ("-y", str(folder))]


def _own_first(folder: Path) -> tuple[bool, Path]:
    return source_folder() in (folder, *folder.parents), folder


@dataclass(frozen=True)
class Design:
    """A top module and its parameters.

    ``registers`` says whether the generated register block is part of it. ``c_sources`` are file
    names of C++ sources. ``blocks`` are modules that these simulate by themselves (without waves),
    each as a class. ``bound`` are modules that look into others (``bind``, IEEE 1800 23.11), by the
    names of those. ``defines`` go to the preprocessor. ``seen`` are inner signals (module, name)
    that cocotb may read besides the ports. With ``internals`` cocotb may read and write every
    signal, and the simulation is slower. With ``stock_main`` cocotb's main program replaces ours:
    it is slower, and cannot run C++ sources that need ours. ``sizes`` replace those of the
    description in ``harness_pkg``. ``optimization`` is the level of the C++ compiler.
    """

    top: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    registers: bool = False
    c_sources: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    bound: Mapping[str, str] = field(default_factory=dict)
    waves: bool = False
    coverage: bool = False
    defines: tuple[str, ...] = ()
    seen: tuple[tuple[str, str], ...] = ()
    internals: bool = False
    stock_main: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    optimization: str = _OPTIMIZATION

    @property
    def key(self) -> str:
        """Name of the build folder: different for designs that must not share one."""
        # What make has noted down of a build are the paths of what it was made from.
        made_from = (sys.version, toolchain.verilator_root(), source_folder())
        kind: tuple[object, ...] = (self.waves, self.coverage, *self.defines, *self.seen)
        # Such builds are told apart from others, which keep the names that they have.
        kind += ("internals",) * self.internals + ("stock_main",) * self.stock_main
        kind += tuple(self.sizes.items()) + tuple(self.bound.items())
        if self.in_one_file:
            kind += (f"-O{self.optimization}", "in one file")
        # Sources of one's own, beside ours.
        kind += tuple(filter(None, [own_folder()]))
        # So are those of other chips than the built-in harness.
        kind += parameters.differences()
        text = repr((self.parameters, self.c_sources, *kind, *made_from))
        return f"{self.top}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def in_one_file(self) -> bool:
        """Whether its C++ is compiled as one file (``_IN_ONE_FILE``): with fewer optimisations that
        takes less time, and with all of them a change takes more."""
        return self.optimization != _OPTIMIZATION

    def __hash__(self) -> int:
        return hash(self.key)


class SimulationFailed(AssertionError):
    """A cocotb test failed, or the simulator ended before it was done."""


class BuildFailed(SimulationFailed):
    """The tools refuse the sources."""


def generate(folder: Path, design: Design) -> list[Path]:
    """Write the generated sources that ``design`` needs; return their paths, packages first. The
    header of its C++ sources stands beside them."""
    _write_if_changed(folder / parameters.HEADER, parameters.header())
    packages = {
        systemverilog.PACKAGE: systemverilog.package(),
        **parameters.packages(design.sizes),
    }
    for name, text in packages.items():
        _write_if_changed(folder / f"{name}.sv", text)
    sources = [folder / f"{name}.sv" for name in packages]
    if design.registers:
        description = folder / "registers.rdl"
        changed = _write_if_changed(description, systemrdl())
        changed |= _write_if_changed(folder / "registers.made_by", _register_block_maker())
        names = ("darwinn_registers_pkg.sv", "darwinn_registers.sv")
        block = [folder / name for name in names]
        if changed or not all(path.exists() for path in block):
            _export_register_block(description, folder, block)
        sources += block
    return sources


def _register_block_maker() -> str:
    """What besides the description decides the register block: a kept one may be of another."""
    exporter = hashlib.sha256(inspect.getsource(_export_register_block).encode()).hexdigest()
    return f"peakrdl-regblock {metadata.version('peakrdl-regblock')}, exporter {exporter}\n"


def _export_register_block(description: Path, folder: Path, block: Sequence[Path]) -> None:
    from peakrdl_regblock import RegblockExporter
    from peakrdl_regblock.cpuif.axi4lite import AXI4Lite_Cpuif
    from peakrdl_regblock.udps import ALL_UDPS
    from systemrdl import RDLCompiler

    class RegistersPort(AXI4Lite_Cpuif):
        """The port of ``registers.sv``: our interfaces of AXI4."""

        is_interface = False  # of the generator's own kind, whose widths it would check
        port_declaration = "axi_read.target s_axil_read, axi_write.target s_axil_write"

        def signal(self, name: str) -> str:
            side = "write" if name[0] in "awb" and not name.startswith("ar") else "read"
            bits = f"[{self.addr_width - 1}:0]" if name.endswith("addr") else ""
            return f"s_axil_{side}.{name}{bits}"

    compiler = RDLCompiler()
    for definition in ALL_UDPS:
        compiler.register_udp(definition)
    compiler.compile_file(str(description))
    RegblockExporter().export(
        compiler.elaborate(),
        str(folder),
        cpuif_cls=RegistersPort,
        default_reset_activelow=True,
        err_if_bad_addr=True,
        err_if_bad_rw=True,
    )
    for path in block:
        # Verilator turns each unpacked structure into a C++ class, which takes two thirds of the
        # time of a build; packed ones are plain vectors.
        path.write_text(path.read_text().replace("struct {", "struct packed {"))


def _write_if_changed(path: Path, text: str) -> bool:
    if path.exists() and path.read_text() == text:
        return False
    path.write_text(text)
    return True


def design_sources(design: Design, folder: Path) -> list[Path]:
    """Every source of ``design`` in order, the generated ones written into ``folder``."""
    packages = [path for path in source_files() if path.stem.endswith("_pkg")]
    needed = in_order([*generate(folder, design), *packages])
    return [source("waivers.vlt"), *needed, source(f"{design.top}.sv")]


_PORT = re.compile(r"^ +(input|output) .*?(\w+),? *(?://.*)?$", re.MULTILINE)


def bindings(folder: Path, design: Design) -> list[Path]:
    """Write the source that binds the modules of ``design`` that are bound; none if none is."""
    if not design.bound:
        return []
    path = folder / "bound.sv"
    lines = [f"bind {inside} {name} {name} (.*);\n" for inside, name in design.bound.items()]
    _write_if_changed(path, "".join(lines))
    return [path]


def _port_access(folder: Path, design: Design) -> Path:
    """Write which signals cocotb may access: it writes the top's inputs, and reads outputs and
    ``seen``.

    If a signal can be written from outside, Verilator evaluates everything that depends on it once
    more in each step. So no other signal is open.
    """
    text = source(f"{design.top}.sv").read_text()
    path = folder / "ports.vlt"
    lines = [
        f'public_flat_{"rw" if direction == "input" else "rd"} -module "{design.top}" -var "{name}"'
        for direction, name in _PORT.findall(text[: text.index("\n);")])
    ]
    lines += [f'public_flat_rd -module "{module}" -var "{name}"' for module, name in design.seen]
    _write_if_changed(path, "\n".join(["`verilator_config", *lines, ""]))
    return path


def as_asked(design: Design) -> Design:
    """``design`` with the changes that environment variables request: waves, line and toggle
    coverage, memories with another clock, optimisation.

    Raises:
        BuildFailed: no such level of optimisation.
    """
    ratio = os.environ.get(RATIO_VARIABLE)
    level = os.environ.get(OPTIMIZATION_VARIABLE, design.optimization)
    if level not in tuple("0123"):
        raise BuildFailed(f"{OPTIMIZATION_VARIABLE}: expected 0, 1, 2 or 3, got {level!r}")
    return replace(
        design,
        optimization=level,
        sizes=design.sizes if ratio is None else {**design.sizes, parameters.RATIO: int(ratio)},
        waves=design.waves or WAVES_VARIABLE in os.environ,
        coverage=design.coverage or COVERAGE_VARIABLE in os.environ,
    )


def _instruments(design: Design) -> tuple[str, ...]:
    """Verilator's options for the further files and features of a simulation."""
    waves = ("--trace-fst",) if design.waves else ()
    internals = ("--public-flat-rw",) if design.internals else ()
    coverage = ("--coverage-line", "--coverage-toggle") if design.coverage else ()
    return (*waves, *coverage, *internals, *(f"+define+{name}" for name in design.defines))


def simulation_argument() -> str:
    """The further argument that the environment variable gives, or nothing."""
    return os.environ.get(ARGUMENT_VARIABLE, "")


def _main(design: Design) -> Path:
    """The program around the simulation."""
    from cocotb_tools.config import share_dir

    if not design.stock_main:
        return source(_MAIN)
    return Path(share_dir) / "lib" / "verilator" / "verilator.cpp"


def build(design: Design) -> Path:
    """Bring the build of ``design`` up to date and return its folder; once in a process.

    Raises ``BuildFailed`` with the end of the tools' output if it cannot be built.
    """
    return _built(as_asked(design), own_folder())


@cache
def _built(design: Design, own: Path | None) -> Path:
    from cocotb_tools.config import libs_dir

    toolchain.use_wheel_programs()
    folder = build_root() / design.key
    program = folder / "verilated" / design.top
    with locked(folder), (folder / "build.log").open("w") as output:
        hold(folder)
        packages, top = _sources_around(design, folder)
        is_new = _say_if_new(program)
        blocks = _blocks(design, packages, folder, output, program)
        _verilate(
            *("--exe", "--vpi", "--prefix", "Vtop", "--top-module", design.top, "-o", design.top),
            *("--Mdir", str(folder / "verilated"), "--timescale", "1ns/1ps"),
            # Python reaches the C++ sources through the program's own symbols.
            *("-LDFLAGS", f"-rdynamic -Wl,-rpath,{libs_dir} -L{libs_dir} -lcocotbvpi_verilator"),
            *blocks,
            *(f"-G{name}={value}" for name, value in design.parameters.items()),
            *map(str, (_port_access(folder, design), *packages, top, *bindings(folder, design))),
            str(_main(design)),
            *(str(source(name)) for name in design.c_sources),
            design=design,
            output=output,
        )
    if is_new:
        prune_builds()
    return folder / "verilated"


def _library_arguments(level: str) -> tuple[str, ...]:
    return (
        # A library's own C++ source says what becomes of a failed assertion, and of its message.
        *("-CFLAGS", "-fPIC -DVL_USER_STOP -DVL_USER_FATAL"),
        *("-MAKEFLAGS", f'OPT_GLOBAL="-O{level} -include {source("messages.h")}"'),
        # Longer vectors, in words, are moved by a loop: rows are.
        *("--expand-limit", "16"),
    )


@cache
def library(design: Design) -> Path:
    """Bring a shared library with ``design`` and its C++ sources up to date and return its path.

    Python opens it with ctypes and drives it through what its C++ sources export: no simulator
    process, and no cocotb. Raises ``BuildFailed`` with the end of the tools' output.
    """
    toolchain.use_wheel_programs()
    design = as_asked(design)
    folder = build_root() / f"library-{design.key}"
    path, log = folder / f"lib{design.top}.so", folder / "build.log"
    with locked(folder), log.open("w") as output:
        hold(folder)
        packages, top = _sources_around(design, folder)
        is_new = _say_if_new(path)
        blocks = _blocks(design, packages, folder, output, path)
        _verilate(
            *("--exe", "--top-module", design.top, "-o", str(path)),
            *("--Mdir", str(folder / "verilated"), "-LDFLAGS", "-shared"),
            *blocks,
            *(f"-G{name}={value}" for name, value in design.parameters.items()),
            *_library_arguments(design.optimization),
            *map(str, (*packages, top, *bindings(folder, design))),
            *(str(source(name)) for name in design.c_sources),
            design=design,
            output=output,
        )
    if is_new:
        prune_builds()
    return path


def _say_if_new(product: Path) -> bool:
    """Say before a first build that it takes long; whether it is one."""
    is_new = not product.exists()
    if is_new:
        print(
            f"building {product.name} from SystemVerilog (once): one to three minutes of processor "
            "time",
            file=sys.stderr,
            flush=True,
        )
    return is_new


def _sources_around(design: Design, folder: Path) -> tuple[list[Path], Path]:
    """The sources that are compiled with the top, and the top."""
    sources = design_sources(design, folder)
    return sources[:-1], sources[-1]


def _blocks(
    design: Design,
    packages: Sequence[Path],
    folder: Path,
    output: IO[str],
    program: Path,
) -> list[str]:
    """Compile the blocks; return Verilator's options that add them to ``program``.

    Their code is the same in a library and in a program, so a compiler cache keeps it once. Make
    does not know of them there, so a program older than one of them is made anew.
    """
    words = []
    for name in design.blocks:
        place = folder / f"module-{name}"
        archive = place / f"libV{name}.a"
        _verilate(
            *("--prefix", f"V{name}", "--top-module", name, "--Mdir", str(place)),
            *_library_arguments(design.optimization),
            *_IN_ONE_FILE,
            *map(str, (*packages, source(f"{name}.sv"))),
            design=replace(design, waves=False),
            output=output,
        )
        words += ["-CFLAGS", f"-I{place}", "-LDFLAGS", str(archive)]
        if program.exists() and program.stat().st_mtime <= archive.stat().st_mtime:
            program.unlink()
    return words


def _verilate(*arguments: str, design: Design, output: IO[str]) -> None:
    level = f"-O{design.optimization}"
    command = [
        *("verilator", *VERILATOR_ARGUMENTS, *search_arguments()),
        *("-MAKEFLAGS", f"OPT_FAST={level} OPT_GLOBAL={level}"),
        *_instruments(design),
        *(_IN_ONE_FILE if design.in_one_file else ()),
        *("-CFLAGS", f"-I{Path(output.name).parent}"),  # the generated header
        *arguments,
    ]
    why = ""
    try:
        if not bounded.run(command, stdout=output, stderr=subprocess.STDOUT).returncode:
            return
    except bounded.Unended as reason:
        why = f": {reason}"
    output.flush()
    raise BuildFailed(
        f"{design.top} cannot be built{why} ({output.name}):\n{_end(Path(output.name))}"
    )


def simulate(
    design: Design,
    module: str,
    test: str | Sequence[str],
    *,
    seed: int,
    work: Path,
    environment: Mapping[str, str] | None = None,
) -> Path:
    """Run cocotb test ``test`` of Python module ``module``; return the path of its results file.

    Several tests run in one simulation, one after the other; it takes longer to start than most of
    them do. ``seed`` decides everything that is random, the initial contents of registers included.
    ``work`` is where the simulation runs. Raises ``SimulationFailed`` with the end of the log; a
    simulation that does not end fails as well (``bounded``).
    """
    from cocotb_tools.runner import get_results

    from darwinn_rtl.simulator import Simulator

    folder = build(design)
    design = as_asked(design)
    work = work.absolute()  # the simulation runs in there
    work.mkdir(parents=True, exist_ok=True)
    tests = (test,) if isinstance(test, str) else tuple(test)
    name = tests[0] if len(tests) == 1 else module
    log, results = work / f"{name}.log", work / f"{name}.xml"
    results.unlink(missing_ok=True)
    how = "failed"
    try:
        Simulator().test(
            test_module=module,
            hdl_toplevel=design.top,
            hdl_toplevel_lang="verilog",
            testcase=tests,
            seed=seed,
            build_dir=folder,
            test_dir=work,
            results_xml=str(results),
            extra_env={**SIMULATION_ENVIRONMENT, **(environment or {})},
            plusargs=[
                "+verilator+rand+reset+2",
                f"+verilator+seed+{1 + seed % 0x7FFFFFFE}",
                *filter(None, [simulation_argument()]),
                *(["--trace"] if design.waves and design.stock_main else []),
            ],
            log_file=log,
        )
        passed = get_results(results) == (len(tests), 0)
    except (SystemExit, RuntimeError):
        passed = False
    except bounded.Unended as reason:
        passed, how = False, f"was ended ({reason}; {bounded.SECONDS_VARIABLE} sets the seconds)"
    if design.waves:
        keep_waves(work, design.top, name)
    if design.coverage:
        keep_counts(work / "coverage.dat", f"{design.top}-{name}")
    if not passed:
        raise SimulationFailed(f"{module}.{name} {how} (seed {seed}); log {log}:\n{_end(log)}")
    return results


def _end(log: Path) -> str:
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
