"""What inferences by USB cost beside those of `darwinn run`.

    python -m benchmarks.usb [--repeat N] [--only WORD]

Reads the models from the folder that DARWINN_CORPUS names. For each: the median of N warm
inferences as `darwinn run` times them, by a client of PyUSB in the process of the chip, and by the
same client with the stand-in for libusb. All take turns, so that what else the machine does meets
all of them. Exits with 1 if a median exceeds 1.2 times that of `darwinn run` and 10 ms.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
from darwinn_testbench import Session, open_models

from benchmarks.common import compiled, machine, parser

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

CLIENT = """
import sys, time
import numpy as np
from darwinn_testbench.chip.model import open_models
from usb_client import UsbClient
backend, path = sys.argv[1:]
if backend == "own":
    from darwinn_testbench.device import pyusb_backend
    backend = pyusb_backend()
else:
    backend = None
(model,) = open_models(path)
inputs = model.to_device({port.name: np.ones(port.shape, port.dtype) for port in model.ports})
compiled = model.compiled
client = UsbClient(backend, announced=not compiled.inference.dma_hints.fully_deterministic)
if compiled.caching is not None:
    client.run(compiled.caching, {})
while True:
    print("ready", flush=True)
    if not sys.stdin.readline():
        break
    begin = time.perf_counter()
    client.run(compiled.inference, inputs)
    print(time.perf_counter() - begin, flush=True)
"""


class Client:
    """A client in a process of its own, which infers when it is told to."""

    def __init__(self, before: tuple[str, ...], backend: str, model: Path) -> None:
        support = Path(__file__).parents[1] / "tests" / "support"
        paths = [str(support), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [*before, sys.executable, "-c", CLIENT, backend, str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
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
        found = float(self._next())
        self._next()
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measure(name: str, options: argparse.Namespace) -> bool:
    """Print a line about a model; True if all is within the bound."""
    path = compiled(name)
    (model,) = open_models(path)
    session = Session(model)
    tensors = {port.name: np.ones(port.shape, port.dtype) for port in model.ports}
    clients = [
        Client((), "own", path),
        Client((*DARWINN, "device", "--usb", "--"), "found", path),
    ]
    timed = [lambda: session.infer(tensors).seconds, *(client.seconds for client in clients)]
    # The first inference of each is not counted.
    times = [[one() for one in timed] for _ in range(options.repeat + 1)][1:]
    for client in clients:
        client.close()
    medians = [median(column) for column in zip(*times, strict=True)]
    bound = FACTOR * medians[0] + MORE
    within = all(each <= bound for each in medians)
    shown = "  ".join(f"{1000 * each:9.1f}" for each in (*medians, bound))
    print(f"{name[:44]:44}  {shown}  {'ok' if within else 'SLOW'}", flush=True)
    return within


def main() -> int:
    options_of = parser(__doc__)
    options_of.add_argument("--only", default="", metavar="WORD")
    options = options_of.parse_args()
    print(machine())
    heads = ["run", "PyUSB", "libusb", "bound"]
    print(f"{'median ms of warm inferences':44}  {'  '.join(f'{head:>9}' for head in heads)}")
    within = [measure(name, options) for name in MODELS if options.only in name]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
