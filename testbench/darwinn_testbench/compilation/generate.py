"""Networks by chance, compiled, and judged by everything that executes a program.

Each seed is a network. One that fails is made smaller until nothing can be left out of it, and its
row has the command that repeats it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from darwinn_formats.darwinn import Executable, load
from darwinn_formats.errors import Unavailable
from darwinn_formats.files import Content, Source

from darwinn_testbench.compilation.bins import Held, bins_of, compared, held_by, hits
from darwinn_testbench.compilation.compile import Compiled, CompileOptions, compile_model
from darwinn_testbench.compilation.engines import compare_engines
from darwinn_testbench.compiler.random_networks import OPERATORS
from darwinn_testbench.compiler.recipes import Recipe, Shape, network_of, recipe, reduced
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Report, Row, Verdict, counted, judged
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.progress import ProgressCallback, silent


@dataclass(frozen=True)
class GenerateOptions:
    """What is drawn, and how it is judged.

    Attributes:
        seed: of the first network; each further one has the next number.
        count: number of networks.
        size: operators of each network; None: the seed decides.
        operators: names to choose from; all if there are none.
        keep: steps of the network that are made, by number; None: all.
        inputs: shapes of its inputs in place of those drawn.
        check: judge each network on all engines, and reduce what fails.
        engine: with the RTL, that runs each network, too.
        out: folder for the models, created if need be; None: they are not written.
        against: executables, with which the bins of programs are compared.
    """

    seed: int = 0
    count: int = 1
    size: int | None = None
    operators: Sequence[str] = ()
    keep: Sequence[int] | None = None
    inputs: Sequence[Shape] = ()
    check: bool = False
    engine: Engine = Engine.MODEL
    out: Path | None = None
    against: Sequence[Source] = ()

    def refuse_unfit(self) -> None:
        """Refuse what does not fit together.

        Raises:
            InputError: it does not.
        """
        unknown = [name for name in self.operators if name not in OPERATORS]
        if unknown:
            known = ", ".join(sorted(OPERATORS))
            raise InputError(f"--operators: no {unknown[0]} is drawn; there are {known}")
        if self.count > 1 and (self.keep is not None or self.inputs):
            raise InputError("--keep and --shapes are for one network: --count is above 1")
        if self.engine is Engine.ORIGINAL:
            raise InputError("--engine original: networks by chance run on model or rtl")
        if self.engine is Engine.RTL and not self.check:
            raise InputError("--engine rtl is for --check")


@dataclass(frozen=True, kw_only=True)
class GeneratedRow(Row):
    """A network.

    ``operators`` are its kinds of operators in order, ``on_chip`` how many of them the chip runs.
    ``cycles`` are those of an inference of its chip's part, with parameters that are cached
    loaded; ``rtl_cycles`` those of the RTL. ``repeat`` is the command that repeats it: where it
    fails, the smallest network that was found to fail in the same way, of ``smallest`` operators.
    """

    seed: int
    operators: tuple[str, ...]
    on_chip: int = 0
    inputs: int = 0
    outputs: int = 0
    cycles: int | None = None
    rtl_cycles: int | None = None
    repeat: str = ""
    smallest: int | None = None
    files: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def duration(self) -> float:
        """Seconds of the whole."""
        return self.seconds


@dataclass(frozen=True)
class _Judged:
    """What came of a network."""

    verdict: Verdict
    message: str = ""
    compiled: Compiled | None = None
    cycles: int | None = None
    rtl_cycles: int | None = None


def generate(
    options: GenerateOptions, *, progress: ProgressCallback = silent
) -> Report[GeneratedRow]:
    """Draw networks, compile them, and judge them if that is asked for.

    Raises:
        InputError: options that do not fit.
        FormatError, OSError: an executable to compare with cannot be read, or a model written.
        Unavailable: the RTL cannot be built here.
    """
    options.refuse_unfit()
    begin = time.perf_counter()
    others = _held_by_files(options.against) if options.against else None
    rows: list[GeneratedRow] = []
    found: list[tuple[str, str]] = []
    held = Held()
    for number in range(options.count):
        seed = options.seed + number
        progress(f"network {seed}", number, options.count)
        made = _recipe(options, seed)
        network = network_of(made)
        if network is None:
            raise InputError(f"seed {seed}: {_unfit(made, options)}")
        result = _judge(made, options)
        row = _row(options, made, result)
        if result.verdict.failed and options.check:
            progress(f"network {seed} fails: looking for a smaller one", number, options.count)
            row = _with_smallest(options, made, result, row)
            progress(f"network {seed} fails: {row.repeat}", number, options.count)
        rows.append(row)
        found += bins_of(made, network)
        held |= held_by(_executables(result.compiled))
    return Report(
        command="generate",
        file=f"seed {options.seed}",
        rows=tuple(rows),
        figures={
            "seed": options.seed,
            "networks": options.count,
            "checked": options.check,
            "engine": options.engine,
            "bins": hits(found),
            "programs": compared(held, others),
            "seconds": time.perf_counter() - begin,
        },
        message=_message(options, rows),
    )


def _unfit(made: Recipe, options: GenerateOptions) -> str:
    """Why a recipe is no network."""
    if made.steps or options.keep is not None:
        return "the steps do not fit each other or the inputs"
    return "none of --operators fits the inputs drawn"


def _message(options: GenerateOptions, rows: Sequence[GeneratedRow]) -> str:
    operators = sum(len(row.operators) for row in rows)
    told = f"{counted(len(rows), 'network')}, {counted(operators, 'operator')}"
    on_chip = sum(row.on_chip for row in rows)
    told += f", {on_chip} of them on the chip"
    if not options.check:
        return f"{told}; nothing was checked (--check does)"
    failed = [row for row in rows if row.verdict.failed]
    if failed:
        return f"{told}; {len(failed)} fail, repeat the first: {failed[0].repeat}"
    rtl = " and RTL" if options.engine is Engine.RTL else ""
    return f"{told}; equal bytes in model, lifted program{rtl}, no hazards, cycles repeatable"


def _recipe(options: GenerateOptions, seed: int) -> Recipe:
    made = recipe(seed, options.size, options.operators)
    if options.inputs:
        if len(options.inputs) != len(made.inputs):
            raise InputError(f"--shapes: seed {seed} has {len(made.inputs)} inputs")
        made = replace(made, inputs=tuple(options.inputs))
    if options.keep is not None:
        try:
            made = made.only(options.keep)
        except KeyError as error:
            raise InputError(f"--keep: seed {seed} has no step {error}") from None
    return made


def _judge(made: Recipe, options: GenerateOptions) -> _Judged:
    """Compile a network and judge what comes out."""
    network = network_of(made)
    assert network is not None
    source = Content(network.finish(), f"{_name(made.seed)}.tflite")
    try:
        compiled = compile_model(source, CompileOptions(check=options.check))
        return _on_engines(compiled, made, options)
    except Unavailable:
        raise
    except Exception as error:
        # Whatever a network makes the compiler fail with, it is the network that is looked for.
        verdict, text = judged(error)
        return _Judged(verdict if verdict.failed else Verdict.FAULT, text)


def _on_engines(compiled: Compiled, made: Recipe, options: GenerateOptions) -> _Judged:
    report = compiled.report
    if compiled.built is None or not compiled.built.data:
        # No operator goes to the chip: nothing ran, and nothing is wrong.
        return _Judged(Verdict.RAN, report.message, compiled)
    if report.verdict.failed:
        return _Judged(report.verdict, report.headline, compiled)
    if not options.check:
        return _Judged(report.verdict, "not verified (--check does)", compiled)
    rtl = options.engine is Engine.RTL
    agreed = [
        compare_engines(after, before, _name(made.seed), seed=made.seed, rtl=rtl)
        for before, after in (piece.part for piece in compiled.built.pieces)
    ]
    reason = next((each.reason for each in agreed if each.reason), "")
    verdict = Verdict.MISMATCH if reason else report.verdict
    cycles = sum(each.cycles for each in agreed)
    rtl_cycles = sum(each.rtl_cycles or 0 for each in agreed) if rtl else None
    return _Judged(verdict, reason, compiled, cycles, rtl_cycles)


def _row(options: GenerateOptions, made: Recipe, result: _Judged) -> GeneratedRow:
    network = network_of(made)
    assert network is not None
    rows = result.compiled.report.rows if result.compiled else ()
    files = _write(options, made, result) if options.out else ()
    return GeneratedRow(
        name=_name(made.seed),
        verdict=result.verdict,
        message=result.message if result.verdict.failed or not result.cycles else "",
        seed=made.seed,
        operators=tuple(network.kinds),
        on_chip=sum(row.place is Place.CHIP for row in rows),
        inputs=len(network.inputs),
        outputs=len(network.outputs),
        cycles=result.cycles,
        rtl_cycles=result.rtl_cycles,
        repeat=_command(options, made, reduced=False),
        files=files,
        seconds=result.compiled.report.figures["seconds"] if result.compiled else 0.0,
    )


def _with_smallest(
    options: GenerateOptions, made: Recipe, result: _Judged, row: GeneratedRow
) -> GeneratedRow:
    """The row with the smallest network that fails with the same verdict."""
    smallest = reduced(made, lambda each: _judge(each, options).verdict is result.verdict)
    return replace(
        row,
        repeat=_command(options, smallest, reduced=smallest != made),
        smallest=len(smallest.steps),
    )


def _command(options: GenerateOptions, made: Recipe, *, reduced: bool) -> str:
    """The command that makes exactly this network."""
    words = [f"darwinn generate --seed {made.seed}"]
    if options.size is not None:
        words.append(f"--size {options.size}")
    if options.operators:
        words.append(f"--operators {quote(','.join(options.operators))}")
    if reduced or options.keep is not None:
        words.append(f"--keep {','.join(str(step.number) for step in made.steps)}")
    if reduced or options.inputs:
        words.append(f"--shapes {','.join('x'.join(map(str, each)) for each in made.inputs)}")
    if options.engine is not Engine.MODEL:
        words.append(f"--engine {options.engine}")
    return " ".join([*words, "--check"])


def _name(seed: int) -> str:
    return f"network_{seed}"


def _write(options: GenerateOptions, made: Recipe, result: _Judged) -> tuple[str, ...]:
    """Write the network before compilation and compiled; the latter if there is anything."""
    assert options.out is not None
    network = network_of(made)
    assert network is not None
    options.out.mkdir(parents=True, exist_ok=True)
    contents = {f"{_name(made.seed)}.tflite": network.finish()}
    if result.compiled is not None and result.compiled.data:
        contents[f"{_name(made.seed)}_edgetpu.tflite"] = result.compiled.data
    for name, data in contents.items():
        write_result(options.out / name, data, over_link=True)
    return tuple(contents)


def _executables(compiled: Compiled | None) -> Iterator[Executable]:
    built = compiled.built if compiled else None
    for piece in built.pieces if built is not None else ():
        yield from piece.package.executables


def _held_by_files(files: Sequence[Source]) -> Held:
    held = Held()
    for file in files:
        held |= held_by(load(file).executables)
    return held
