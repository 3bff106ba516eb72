"""Calls in processes of their own that begin with what takes a second to load.

A process executes some Python once, such as imports; each call is a fork of it. What a call does to
its process, to its environment and to what is loaded there, no other call sees.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_SERVER = """
import gc, json, os, signal, sys, traceback
exec(sys.argv[1])
gc.freeze()
for line in sys.stdin:
    call = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm(call["seconds"])
        os.chdir(call["folder"])
        os.environ.update(call["variables"])
        for number, name in enumerate((os.devnull, call["printed"], call["errors"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
        sys.argv[1:] = call["words"]
        try:
            exec(call["code"], {"__name__": "__main__"})
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        # What the server has loaded is not taken down again.
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

_SECONDS = 300
"""How long a call may take."""


class Forks:
    """A process that has executed ``before``; ``folder`` is for what its calls print."""

    def __init__(self, before: str, folder: Path) -> None:
        self._folder = folder
        self._calls = 0
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, before],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.communicate(timeout=_SECONDS)

    def run(
        self,
        code: str,
        words: Sequence[str] = (),
        *,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Execute ``code`` with the arguments ``words``, in ``folder``, with more variables of the
        environment; the exit code is -14 where it takes too long.
        """
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._calls += 1
        printed, errors = (self._folder / f"{self._calls}.{name}" for name in ("out", "err"))
        call = {
            "code": code,
            "words": [*words],
            "folder": str(folder or self._folder),
            "variables": {**(variables or {})},
            "printed": str(printed),
            "errors": str(errors),
            "seconds": _SECONDS,
        }
        print(json.dumps(call), file=self._server.stdin, flush=True)
        code_of_exit = int(self._server.stdout.readline())
        return subprocess.CompletedProcess(
            words, code_of_exit, printed.read_text(), errors.read_text()
        )
