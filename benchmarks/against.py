"""Processor time of inferences and cycles, of two states of the sources in turn.

    python -m benchmarks.against OLD [NEW] [--repeat N] [--only MODEL] [--what WHAT]
                               [--most RATIO]

OLD and NEW are commits; without NEW it is the sources as they are. Each has a process of its own,
and both measure in turn, a tenth of a second at a time, so that what else the machine does falls on
both alike; times are the least of N turns, of a thread's processor time. What a feature costs where
it is off is the ratio of the commit that brought it to the one before. Reads the models, which are
always the same few, from the folder that DARWINN_CORPUS names. Exits with 1 if a ratio is more than
RATIO.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.common import compiled, machine, parser, with_word

MODELS = (
    "bright_16x16",
    "dense_1024",
    "mobilenet_v1_1.0_224_quant_embedding_extractor",
    "mobilenet_v2_1.0_224_quant",
)
PACKAGES = ("formats", "sim", "testbench")
WHAT = ("inference", "cycles")
ROOT = Path(__file__).parents[1]

_SIDE = """
import json, sys, time
from darwinn_formats.darwinn import load
from darwinn_sim import timing
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session

def inference(path):
    (model,) = open_models(path)
    session = Session(model, lifts=False)
    (tensors,) = random_inputs(model.ports, seed=0, runs=1)
    return lambda: session.infer(tensors)

def cycles(path):
    host = timing.host_link("usb3")
    (model,) = load(path).models
    return lambda: timing.simulate(model.inference, host=host)

actions = {}
for line in sys.stdin:
    what, path = json.loads(line)
    if (what, path) not in actions:
        actions[what, path] = {"inference": inference, "cycles": cycles}[what](path)
        actions[what, path]()
    times, end = [], time.thread_time() + 0.1
    while not times or time.thread_time() < end:
        begin = time.thread_time()
        actions[what, path]()
        times.append(time.thread_time() - begin)
    print(min(times), flush=True)
"""
"""What each side runs: with nothing of this folder, which the other state may not have."""


def commit_with_sources(text: str) -> str:
    """A commit that has the packages; whatever Git calls a commit."""
    asked = ("git", "ls-tree", "-d", "--name-only", text, *PACKAGES)
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.stdout.split() != [*PACKAGES]:
        raise argparse.ArgumentTypeError(f"no commit {text} with the folders {', '.join(PACKAGES)}")
    return text


@contextmanager
def sources(commit: str | None) -> Iterator[Path]:
    """A folder with the sources of a commit; None: as they are."""
    if commit is None:
        yield ROOT
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", commit, *PACKAGES], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


@contextmanager
def side(tree: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that measures with the packages of ``tree``."""
    path = os.pathsep.join(str(tree / package) for package in PACKAGES)
    with subprocess.Popen(
        [sys.executable, "-c", _SIDE],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def turn(process: subprocess.Popen[str], what: str, path: Path) -> float:
    """Seconds of one of what was asked for, the least of a tenth of a second."""
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps([what, str(path)]) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        sys.exit(f"{what} of {path.name} failed")
    return float(answer)


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("old", type=commit_with_sources, metavar="OLD")
    arguments.add_argument("new", type=commit_with_sources, metavar="NEW", nargs="?")
    arguments.add_argument(
        "--only", default="", metavar="MODEL", help=f"with this word, of {', '.join(MODELS)}"
    )
    arguments.add_argument("--what", choices=WHAT, action="append", help="both by default")
    arguments.add_argument("--most", type=float, default=1.02, metavar="RATIO")
    options = arguments.parse_args()
    paths = [compiled(name) for name in with_word(options.only, MODELS)]
    print(machine())
    print(f"{'model':<48} {'':<9} {'old ms':>9} {'new ms':>9} {'ratio':>6}")
    exceeded = False
    with ExitStack() as stack:
        trees = [stack.enter_context(sources(commit)) for commit in (options.old, options.new)]
        sides = [stack.enter_context(side(tree)) for tree in trees]
        for path in paths:
            for what in options.what or WHAT:
                # The first turns compile kernels, or load them.
                times = [[turn(each, what, path) for each in sides] for _ in range(options.repeat)]
                old, new = map(min, zip(*times, strict=True))
                exceeded |= new > options.most * old
                print(
                    f"{path.name.removesuffix('_edgetpu.tflite'):<48} {what:<9} {1e3 * old:9.3f} "
                    f"{1e3 * new:9.3f} {new / old:6.3f}"
                    f"{'  EXCEEDED' if new > options.most * old else ''}",
                    flush=True,
                )
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
