"""`darwinn delegate`: the library that gives applications the simulated chip."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from darwinn_testbench.cli.terminal import Exit
from darwinn_testbench.device.command import found_first, status_of
from darwinn_testbench.device.delegate.build import library, search_for
from darwinn_testbench.device.delegate.messages import CHIPS_VARIABLE, MAX_CHIPS
from darwinn_testbench.errors import InputError

EXAMPLES = """**Examples**

`darwinn delegate` prints the path, for `load_delegate(PATH)` in place of `libedgetpu.so.1`

`darwinn delegate -- python3 classify_image.py --model model_edgetpu.tflite`

`darwinn delegate --chips 2 -- python3 two_models.py`

`darwinn delegate -- /other/environment/bin/python application.py`

In Python, with `ai_edge_litert` or `tflite_runtime`, in whatever environment:

`Interpreter("model_edgetpu.tflite", experimental_delegates=[load_delegate(PATH)])`
"""

Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- COMMAND",
        help="A program to run. It finds the library by each of the vendor's names "
        "(libedgetpu.so, .so.1, .so.1.0), with or without a folder in front.",
        show_default=False,
    ),
]


Chips = Annotated[
    int | None,
    typer.Option(
        "--chips",
        metavar="N",
        min=1,
        max=MAX_CHIPS,
        help="Chips that COMMAND finds; the option `device` of `load_delegate` chooses one "
        "(`:0`, `usb:1`, `pci:0`).",
        show_default="1",
    ),
]


def command(command: Command = None, chips: Chips = None) -> None:
    """Run an Edge TPU application on the simulated chip, or print the path of a delegate.

    The delegate is a library with the interface of libedgetpu.so.1. The first call builds it, with
    cc. LiteRT and tflite_runtime can load it in any environment: it starts a process for the chip,
    which ends with the application. With COMMAND, this runs COMMAND unchanged, with the library in
    place of the vendor's, and returns its exit status.

    `darwinn docs device` says what applications can expect.
    """
    path = library()
    if not command:
        if chips:
            raise InputError(
                f"--chips is for a COMMAND; without one, set {CHIPS_VARIABLE}={chips} where the "
                "application runs"
            )
        print(path)
        return
    environment = found_first(LD_LIBRARY_PATH=path.parent, LD_AUDIT=search_for(path))
    if chips:
        environment[CHIPS_VARIABLE] = str(chips)
    raise Exit(asyncio.run(status_of(command, environment)))
