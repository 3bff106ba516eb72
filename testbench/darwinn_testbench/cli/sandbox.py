"""`--sandbox`: the same command in a process of its own, with limits of the kernel.

What it prints is passed through, and so is its exit code. If a signal ends it, that is one error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from darwinn_testbench.confinement import Confinement, confine
from darwinn_testbench.errors import ProcessEnded

OPTION = "--sandbox"

_LIMITS = Confinement()
_CAUSES = {
    signal.SIGXCPU: f"more than {_LIMITS.seconds} s of processor time",
    signal.SIGKILL: "killed from outside, or for want of memory",
}


def is_wanted(arguments: Sequence[str]) -> bool:
    """Whether the option is there, before the command of a user's own that may follow ``--``."""
    return OPTION in _own(arguments)


def run(arguments: Sequence[str]) -> int:
    """The exit code of the command line, run without the option in a process with limits.

    Raises:
        ProcessEnded: by a signal.
    """
    own = _own(arguments)
    words = [word for word in own if word != OPTION] + list(arguments[len(own) :])
    command = [sys.executable, "-m", __name__, str(os.getpid()), *words]
    with subprocess.Popen(command) as process:
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:
                # The terminal's keys have reached the other process as well: it says so itself.
                continue
    if code >= 0:
        return code
    cause = signal.Signals(-code)
    reason = f" ({_CAUSES[cause]})" if cause in _CAUSES else ""
    raise ProcessEnded(f"the process was ended by {cause.name}{reason}")


def _own(arguments: Sequence[str]) -> list[str]:
    """The arguments before ``--``."""
    words = list(arguments)
    return words[: words.index("--")] if "--" in words else words


def main() -> None:
    """In the other process, whose first argument is the number of the one that started it."""
    from darwinn_testbench.cli import main as run_command

    parent, *arguments = sys.argv[1:]
    confine(_LIMITS, parent=int(parent))
    run_command(arguments)


if __name__ == "__main__":
    main()
