"""A process that has loaded the simulator and its kernels, and tries mutants in forks of itself.

Loading takes longer than it takes to catch most mutants. A fork has the code of the mutant's
function in the place of the function's own, and forgets what was computed with that. A mutant of
what is executed when a module is loaded, or of a kernel, cannot be tried so.

A request is a line of JSON on standard input: ``file``, with its changed source, ``arguments`` of
pytest, ``variables`` of the environment, ``output`` (a file) and ``seconds`` of the processor. The
answer is a line: the exit code (negative: a signal), null where the tests do not end,
:data:`CANNOT` where no function of that file is another one. A first null says that all is loaded.
"""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from darwinn_testbench.confinement import Confinement, confine, die_with
from darwinn_testbench.kernels.parts import Part, exercise

from tests.mutation.recorder import SOURCES, import_all

CANNOT = 100
"""Beyond the exit codes of pytest."""
WALL_FACTOR = 6
"""Seconds on the wall for one of the processor: others use it too."""


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """Code of all functions of a module, those of classes and of other functions among them."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & inspect.CO_OPTIMIZED:
                yield each
            yield from functions_in(each)


def replace(path: Path) -> bool:
    """Give the functions of a loaded module the code that its file has now; whether any changed.

    Raises ValueError where that cannot be done: it uses other variables of functions around it.
    """
    module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    codes = {(code.co_qualname, code.co_firstlineno): code for code in functions_in(module)}
    changed = False
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename == str(path):
            old = function.__code__
            new = codes.get((old.co_qualname, old.co_firstlineno), old)
            if new != old:
                function.__code__ = new
                changed = True
    return changed


def forget() -> None:
    """What functions of the project have kept of their results."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and each.__module__.startswith("darwinn"):
            each.cache_clear()


def _tests(request: dict[str, Any]) -> int:
    """In a fork: the exit code of the tests."""
    os.environ.update(request["variables"])
    try:
        if not replace(Path(request["file"])):
            return CANNOT
    except ValueError:
        return CANNOT
    forget()
    return int(pytest.main(request["arguments"]))


def _forked(request: dict[str, Any]) -> int | None:
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            confine(Confinement(seconds=request["seconds"]), parent=parent)
            output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (sys.stdout, sys.stderr):
                os.dup2(output, stream.fileno())
            code = _tests(request)
        finally:
            with suppress(ValueError, OSError):
                sys.stdout.flush()
            os._exit(code)
    ended = os.pidfd_open(child)
    in_time, _, _ = select.select([ended], [], [], WALL_FACTOR * request["seconds"])
    os.close(ended)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if in_time and code not in (-signal.SIGXCPU, -signal.SIGKILL) else None


def main() -> None:
    """Load the simulator, and its ``kernels`` if that is the argument; then answer requests."""
    die_with(os.getppid())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for folder in SOURCES:
        import_all(".".join(Path(folder).parts[1:]))
    for part in (Part.FUNCTION, Part.TIME) if "kernels" in sys.argv[1:] else ():
        exercise(part)
    print("null", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
