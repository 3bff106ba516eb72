"""What inferences through /dev/apex_0 cost beside those of `darwinn run`.

    python -m benchmarks.pcie [--repeat N] [--only WORD]

Reads the models from the folder that DARWINN_CORPUS names. For each: the median of N warm
inferences as `darwinn run` times them, and by the tests' client with `darwinn device --pcie`, from
its doorbell to its last interrupt. The two take turns, so that what else the machine does meets
both. Exits with 1 if the median exceeds 1.2 times that of `darwinn run` and 10 ms.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from darwinn_testbench import Session, open_models

from benchmarks.common import compiled, machine, parser

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from apex_script import Script, build_client, calls_of

MODELS = (
    "dense_256",
    "keras_lstm_mnist_ptq",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v2_1.0_224_quant",
    "ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
)
FACTOR, MORE = 1.2, 0.010
"""A median may be FACTOR times that of `darwinn run`, and MORE seconds."""

DARWINN = (sys.executable, "-c", "from darwinn_testbench.cli import main; main()")


class Client:
    """The client with its script, which infers when it is told to."""

    def __init__(self, program: Path, script: Path) -> None:
        self._process = subprocess.Popen(
            [*DARWINN, "device", "--pcie", "--", program, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._next()

    def _next(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def seconds(self) -> float:
        """How long an inference takes there."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        begin = float(self._next())
        return float(self._next()) - begin

    def close(self) -> None:
        if self._process.wait():
            sys.exit("the client has failed")


def measure(name: str, repeat: int, program: Path, folder: Path) -> bool:
    """Print a line about a model; True if it is within the bound."""
    (model,) = open_models(compiled(name))
    session = Session(model)
    tensors = {port.name: np.ones(port.shape, port.dtype) for port in model.ports}
    with calls_of(session.accelerator) as calls:
        session.infer(tensors)
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
    client = Client(program, script.write("close"))
    # The first inference of each is not counted.
    times = [(session.infer(tensors).seconds, client.seconds()) for _ in range(repeat + 1)][1:]
    client.close()
    own, there = (median(column) for column in zip(*times, strict=True))
    bound = FACTOR * own + MORE
    within = bool(there <= bound)
    shown = "  ".join(f"{1000 * each:9.1f}" for each in (own, there, bound))
    print(f"{name[:44]:44}  {shown}  {'ok' if within else 'SLOW'}", flush=True)
    return within


def main() -> int:
    options_of = parser(__doc__)
    options_of.add_argument("--only", default="", metavar="WORD")
    options = options_of.parse_args()
    print(machine())
    print(f"{'median ms of warm inferences':44}  {'run':>9}  {'apex_0':>9}  {'bound':>9}")
    with tempfile.TemporaryDirectory() as folder:
        program = build_client(Path(folder))
        names = [name for name in MODELS if options.only in name]
        within = [measure(name, options.repeat, program, Path(folder)) for name in names]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
