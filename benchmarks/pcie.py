"""What inferences through /dev/apex_0 cost beside those of `darwinn run`.

    python -m benchmarks.pcie [--repeat N] [--only WORD]

Reads the models from the folder that DARWINN_CORPUS names. For each: the best of N warm
inferences as `darwinn run` times them, and by the tests' client with `darwinn device --pcie`, from
its doorbell to its last interrupt. Exits with 1 if the best exceeds 1.2 times that of
`darwinn run` and 10 ms.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import warm

sys.path.append(str(warm.SUPPORT))

from apex_script import Script, build_client, calls_of


def script_of(run: warm.OwnRun, folder: Path, repeat: int) -> Path:
    """What the client is to do: get ready, and infer when it is told to."""
    with calls_of(run.session.accelerator) as calls:
        run()
    *first, inference = calls
    script = Script(folder)
    for call in first:
        script.queue(call)
        script.wait()
    script.lines.append("say ready")
    for _ in range(repeat + 1):
        begin = len(script.lines)
        script.queue(inference)
        added = script.lines[begin:]
        mapped = [line for line in added if not line.startswith("queue")]
        queued = [line for line in added if line.startswith("queue")]
        script.lines[begin:] = ["pause", *mapped, "clock", *queued]
        script.wait()
        script.lines.append("clock")
    return script.write("close")


def main() -> int:
    options = warm.options(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build_client(folder)

        @contextmanager
        def ways(path: Path) -> Iterator[Sequence[warm.Way]]:
            run = warm.OwnRun(path)
            script = script_of(run, folder, options.repeat)
            with warm.client(*warm.DARWINN, "device", "--pcie", "--", program, script) as client:
                yield run, client

        return warm.measure(options, ("run", "apex_0"), ways)


if __name__ == "__main__":
    sys.exit(main())
