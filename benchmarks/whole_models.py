"""What whole models cost beside the chip's part of them: `darwinn run`, interpreter, delegate.

    python -m benchmarks.whole_models [--repeat N] [--only WORD] [--other PYTHON]

Reads the models from the folder that DARWINN_CORPUS names. For each: the median of N warm
inferences as `darwinn run` times them (the chip's operator alone), by ``Interpreter``, and by the
delegate in LiteRT, with the operators around the chip's; with --other also in the environment of
another Python, which has tflite_runtime. All take turns, so that what else the machine does meets
all of them. Exits with 1 if a median exceeds 1.2 times that of `darwinn run` and 10 ms.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from darwinn_testbench import Interpreter, Session, open_models
from darwinn_testbench.device.delegate.build import library

from benchmarks.common import compiled, machine, parser, seconds_of

MODELS = (
    "dense_256",
    "gabor_64x64_7k_4o_2s",
    "keras_lstm_mnist_ptq",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v2_1.0_224_quant",
    "ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
)
FACTOR, MORE = 1.2, 0.010
"""A median may be FACTOR times that of `darwinn run`, and MORE seconds."""

CLIENT = """
import sys, numpy as np
try:
    from ai_edge_litert.interpreter import Interpreter, load_delegate
except ImportError:
    from tflite_runtime.interpreter import Interpreter, load_delegate
library, model = sys.argv[1:]
interpreter = Interpreter(model, experimental_delegates=[load_delegate(library)])
interpreter.allocate_tensors()
for each in interpreter.get_input_details():
    interpreter.set_tensor(each["index"], np.ones(each["shape"], each["dtype"]))
while True:
    print("ready", flush=True)
    sys.stdin.readline()
    import time
    begin = time.perf_counter()
    interpreter.invoke()
    print(time.perf_counter() - begin, flush=True)
"""


class Client:
    """An application in a process of its own, which infers when it is told to."""

    def __init__(self, python: str, model: Path, script: Path) -> None:
        command = [python, str(script), str(library()), str(model)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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
        self._process.kill()
        self._process.wait()


def ways(path: Path) -> tuple[Callable[[], float], Callable[[], float]]:
    """Seconds of an inference of the chip's operator alone, and of the whole by interpreter."""
    (model,) = open_models(path)
    session = Session(model)
    tensors = {port.name: np.ones(port.shape, port.dtype) for port in model.ports}
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    for each in interpreter.get_input_details():
        interpreter.set_tensor(each["index"], np.ones(each["shape"], each["dtype"]))
    return (
        lambda: session.infer(tensors).seconds,
        lambda: seconds_of(interpreter.invoke, 1)[0],
    )


def measure(name: str, options: argparse.Namespace, script: Path) -> bool:
    """Print a line about a model; True if all is within the bound."""
    path = compiled(name)
    alone, whole = ways(path)
    pythons = [sys.executable, *filter(None, [options.other])]
    clients = [Client(python, path, script) for python in pythons]
    timed = [alone, whole, *(client.seconds for client in clients)]
    times: list[list[float]] = [[] for _ in timed]
    for number in range(options.repeat + 1):
        # Each begins a round in its turn: none always follows the same other one.
        for place in range(len(timed)):
            which = (place + number) % len(timed)
            times[which].append(timed[which]())
    for client in clients:
        client.close()
    # The first inference of each is not warm.
    medians = [median(column[1:]) for column in times]
    bound = FACTOR * medians[0] + MORE
    within = all(each <= bound for each in medians)
    shown = "  ".join(f"{1000 * each:9.1f}" for each in (*medians, bound))
    print(f"{name[:44]:44}  {shown}  {'ok' if within else 'SLOW'}", flush=True)
    return within


def main() -> int:
    options_of = parser(__doc__)
    options_of.add_argument("--only", default="", metavar="WORD")
    options_of.add_argument("--other", metavar="PYTHON")
    options = options_of.parse_args()
    print(machine())
    others = ["other"] if options.other else []
    heads = ["run", "interp.", "delegate", *others, "bound"]
    print(f"{'median ms of warm inferences':44}  {'  '.join(f'{head:>9}' for head in heads)}")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "client.py"
        script.write_text(CLIENT)
        names = [name for name in MODELS if options.only in name]
        within = [measure(name, options, script) for name in names]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
