"""Processor seconds and memory of `layers` and `profile --operations` of real models, with a bound.

    python -m benchmarks.layers [FILE ...] [--repeat N] [--only WORD]

Without files: the compiled models of DARWINN_CORPUS, DARWINN_WILD and DARWINN_WILD2. Each is a
command of its own, from the start of Python to the last byte of JSON; kernels and bytecode have
been made before, as those of an installation have, and the least of N times counts. What a command
refuses is listed, and has no bound. Exits with 1 beyond a bound.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.common import MIB, corpus, existing_file, machine, parser, real_folders, with_word

SECONDS = 2.0
MEMORY = 500 * MIB
COMMANDS = {"layers": ("layers",), "profile --operations": ("profile", "--operations")}

_DARWINN = (sys.executable, "-m", "darwinn_testbench")


class Used(NamedTuple):
    """What a command has used; ``code`` is how it has ended."""

    seconds: float
    peak_bytes: int
    code: int

    @property
    def exceeds(self) -> bool:
        """It has done its work, and used too much for it."""
        return self.code == 0 and (self.seconds > SECONDS or self.peak_bytes > MEMORY)

    def __str__(self) -> str:
        used = f"{self.seconds:6.2f} s {self.peak_bytes / MIB:5.0f} MiB"
        return f"{used} {f'exit {self.code}' if self.code else 'SLOW' if self.exceeds else 'ok':7}"


def used_by(path: Path, words: tuple[str, ...], bytecode: str) -> Used:
    """What one call of the command has used; ``bytecode`` is a folder that keeps Python's."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        (*_DARWINN, *words, "--json", str(path)),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # Of this child alone: RUSAGE_CHILDREN would have the greatest memory of all so far.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, process.returncode)


def models() -> list[Path]:
    """The compiled models of the corpus, and of strangers."""
    corpus("darwinn")
    folders = [folder / "darwinn" for folder in real_folders()]
    return [path for folder in folders for path in sorted(folder.glob("*_edgetpu.tflite"))]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("files", nargs="*", type=existing_file, metavar="FILE")
    options.add_argument("--only", default="", metavar="WORD")
    options.set_defaults(repeat=2)
    chosen = options.parse_args()
    paths = with_word(chosen.only, chosen.files or models(), lambda each: each.name)
    print(machine())
    print(f"{'model':40}  {'  '.join(f'{name:>26}' for name in COMMANDS)}")
    exceeded = False
    with TemporaryDirectory() as bytecode:
        for number, path in enumerate(paths):
            found = []
            for words in COMMANDS.values():
                if number == 0:
                    used_by(path, words, bytecode)  # Compiles what has not been compiled.
                calls = [used_by(path, words, bytecode) for _ in range(chosen.repeat)]
                found.append(min(calls))
            exceeded |= any(each.exceeds for each in found)
            name = path.name.removesuffix("_edgetpu.tflite")
            print(f"{name[:40]:40}  {'  '.join(map(str, found))}", flush=True)
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
