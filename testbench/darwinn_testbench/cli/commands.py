"""The commands by name. The module of a command is loaded when the command is called.

The help of the whole needs a line about each, and should not wait for what all of them need.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperCommand

from darwinn_testbench.cli.terminal import INTERRUPTED, Exit, print_line

if TYPE_CHECKING:
    from darwinn_testbench.request.record import Entry

SUMMARIES: Mapping[str, str] = {
    "inspect": (
        "Show the executables of a file, their inputs and outputs, and their instruction "
        "statistics."
    ),
    "disasm": (
        "Print the instructions: operands by name, relocations, traversals as loop nests, tile "
        "sets."
    ),
    "dma": (
        "Compare the DMA that the program issues with the DMA hints of the file, entry by entry."
    ),
    "explain": (
        "Say for each operator whether it runs on the chip or the CPU, why, and how to change that."
    ),
    "compile": "Compile a model for the Edge TPU, verify the result, and write it with a log.",
    "generate": "Generate random networks and compile them; with --check, judge the programs.",
    "layers": (
        "Recover the network from the executable alone, or list the operators of another format."
    ),
    "run": "Run a compiled model on each set of inputs, or call a function of a program.",
    "verify": (
        "Run a compiled model on the simulated chip and say whether every output byte is right."
    ),
    "cycles": "Estimate the cycles of each executable with an event model of the chip.",
    "accuracy": (
        "Predict published latencies and show the errors; no model's figures predict itself."
    ),
    "calibrate": "Fit a host to times that you measured, and write its description for --host.",
    "profile": "Show the time of an inference by layer, unit and wait, or by operator.",
    "import": "Show the operator times that ExecuTorch's runtime recorded, on any device.",
    "report": (
        "Write one HTML page about a compiled model: verdict, times, pictures, memory, DMA, "
        "outputs."
    ),
    "view": "Open the page of a profile in a browser, several files side by side.",
    "diff": "Show how two compiled models differ: programs, resources, cycles and outputs.",
    "regress": (
        "Verify many executables: each case of the manifest, with each of its seeds, on each "
        "engine."
    ),
    "survey": "Verify and time every compiled model in folders, one row each.",
    "classify": "Classify pictures: print the classes with the highest scores.",
    "detect": "Detect objects in pictures: an SSD with its post-processing, or a YOLO.",
    "segment": "Find the class of each pixel of pictures.",
    "pose": (
        "Find people in pictures: PoseNet or BodyPix with decoder, MoveNet, or a YOLO "
        "with key points."
    ),
    "evaluate": "Measure top-1 and top-5 of a classifier on a data set, on the chip and in LiteRT.",
    "delegate": (
        "Run an Edge TPU application on the simulated chip, or print the path of a delegate."
    ),
    "device": (
        "Attach the simulated chip as a device for other programs, or replay a recorded session."
    ),
    "harness": ("Test a DMA engine of your own on the harness, or take the RTL to other tools."),
    "docs": "Show a page of the manual, or list all of them.",
    "warm-up": "Compile the model of the chip for this processor, before it is needed.",
    "sample": (
        "Write three small networks, before compilation and compiled, to try the commands on."
    ),
}
"""Name of each command, which its module has too (`-` is `_`), and the first line of its help."""

_READ_NO_FILE = frozenset({"accuracy", "delegate", "docs", "harness", "sample", "warm-up"})
"""Commands that read nothing of strangers: they need no limits."""

_RUN_PROGRAMS = frozenset({"delegate", "device"})
"""Commands whose argument is a command line: what follows its first word is not theirs."""

_BY_PROJECT = "DEFAULT_MAP"
"""What the library calls the source of a value that neither is typed nor a parameter's default."""

MARKUP: Any = "markdown"
"""How help texts are written."""

_WITHOUT_TABLE = frozenset({"delegate", "device", "disasm", "docs", "report", "view"})
"""Commands whose result is no table of rows."""


class _Command(TyperCommand):
    """A command whose help names what a user types, and no types of Python.

    What would write over a file that it reads is refused before it begins.
    """

    def invoke(self, ctx: Any) -> Any:
        # Loaded with a command, as the list of commands does without it.
        from darwinn_testbench.cli.outputs import refuse_replacing, refuse_two_on_stdout
        from darwinn_testbench.request.project import taken

        refuse_two_on_stdout(self.params, ctx.params)
        refuse_replacing(self.params, ctx.params)
        try:
            with taken(*ctx.meta[_BY_PROJECT]):
                return super().invoke(ctx)
        except KeyboardInterrupt as interruption:
            # The library makes a code of it without a word.
            text = ": ".join(filter(None, ("interrupted", str(interruption))))
            print_line(f"darwinn {self.name}: {text}")
            raise Exit(INTERRUPTED) from None

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        # Loaded with a command, as the list of commands does without it.
        from darwinn_testbench.cli import project
        from darwinn_testbench.cli.outputs import refuse_empty

        name = str(self.name)
        entries = settings(name)
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        taken_back: frozenset[str] = frozenset()
        if name not in _RUN_PROGRAMS:
            args, taken_back = project.without_opposites(entries, args)
        defaults = project.defaults_of(entries, taken_back)
        ctx.default_map = defaults.values
        paths = [each for each in self.params if not _is_command_line(name, each)]
        refuse_empty(paths, {**defaults.values, **self.make_parser(ctx).parse_args(list(args))[0]})
        left = super().parse_args(ctx, args)
        usual = {each.name: each.default for each in self.params}
        said = [each for each in defaults.said if _source(ctx, each) == _BY_PROJECT]
        defaults.tell(name, (each for each in said if ctx.params[each] != usual[each]))
        options = {name: entries[name].setting.option for name in defaults.said}
        typed = frozenset(option for name, option in options.items() if name not in said)
        ctx.meta[_BY_PROJECT] = frozenset(options.values()) - typed, typed
        return left

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # Loaded for help alone, as the library does it.
        from typer import rich_utils

        # Bounds beside N would take the help's columns; what is beyond is answered with them.
        rich_utils.RANGE_STRING = ""
        super().format_help(ctx, formatter)


def _is_command_line(command: str, parameter: Any) -> bool:
    """Whether a parameter is the words of another program, which may be empty."""
    return command in _RUN_PROGRAMS and parameter.param_type_name == "argument"


def _source(ctx: Any, name: str) -> str:
    """What the library calls the source of a parameter's value."""
    return str(ctx.get_parameter_source(name).name)


class _Deferred(TyperCommand):
    """Stands for a command in the list of commands until it is called."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        return load(str(self.name)).make_context(*arguments, **named)


def add_to(application: typer.Typer) -> None:
    """Register all commands, in the order in which help lists them."""
    for name, summary in SUMMARIES.items():
        application.command(name, cls=_Deferred, help=summary)(_called)


@cache
def load(name: str) -> TyperCommand:
    """The command ``name`` itself, with its arguments and its whole help.

    It is kept: what checks its arguments is made at its first call, and takes longer than most do.
    """
    # Loaded with a command, as the list of commands does without it.
    from darwinn_testbench.cli.settled import settled

    with _without_collections():
        module = _module(name)
    alone = typer.Typer(
        add_completion=False, rich_markup_mode=MARKUP, pretty_exceptions_enable=False
    )
    decorate = alone.command(
        name,
        cls=_Command,
        epilog=module.EXAMPLES,
        context_settings={"allow_interspersed_args": name not in _RUN_PROGRAMS},
    )
    decorate(settled(_function(name)))
    return cast(TyperCommand, typer.main.get_command(alone))


def settings(name: str) -> Mapping[str, Entry]:
    """The settings of the command ``name``, by the parameter; a parameter may have none."""
    from darwinn_testbench.cli.settled import settings_of

    return settings_of(_function(name))


def _module(name: str) -> Any:
    return import_module(f"darwinn_testbench.cli.{name.replace('-', '_')}")


def _function(name: str) -> Callable[..., None]:
    """What the command calls, with limits if it reads a file, and its rows as CSV if it has any."""
    from darwinn_testbench.cli.limited import limited
    from darwinn_testbench.cli.listed import listed

    command: Callable[..., None] = _module(name).command
    command = command if name in _WITHOUT_TABLE else listed(command)
    return command if name in _READ_NO_FILE else limited(command)


@contextmanager
def _without_collections() -> Iterator[None]:
    """No search for cycles meanwhile, nor ever again among what is there afterwards.

    Modules stay, and to look through their objects once took a twentieth of a short command.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _called() -> None:
    """What a deferred command would do, were it not replaced by the command itself."""
