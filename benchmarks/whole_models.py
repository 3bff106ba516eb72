"""What whole models cost beside the chip's part of them: `darwinn run`, interpreter, delegate.

    python -m benchmarks.whole_models [--repeat N] [--only WORD] [--other PYTHON]

Reads the models from the folder that DARWINN_CORPUS names. For each: the best of N warm
inferences as `darwinn run --chip-only` times them, by ``Interpreter``, and by the
delegate in LiteRT, with the operators around the chip's; with --other also in the environment of
another Python, which has tflite_runtime. Exits with 1 if a best one exceeds 1.2 times that of
`darwinn run` and 10 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from darwinn_testbench import Interpreter
from darwinn_testbench.device.delegate.build import library

from benchmarks import warm
from benchmarks.common import seconds_of

MODELS = (
    *warm.MODELS,
    "gabor_64x64_7k_4o_2s",
    "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
)

CLIENT = """
import sys, time
import numpy as np
try:
    from ai_edge_litert.interpreter import Interpreter, load_delegate
except ImportError:
    from tflite_runtime.interpreter import Interpreter, load_delegate
library, model = sys.argv[1:]
interpreter = Interpreter(model, experimental_delegates=[load_delegate(library)])
interpreter.allocate_tensors()
for each in interpreter.get_input_details():
    interpreter.set_tensor(each["index"], np.ones(each["shape"], each["dtype"]))
print("ready", flush=True)
while sys.stdin.readline():
    print(time.perf_counter())
    interpreter.invoke()
    print(time.perf_counter(), flush=True)
"""


def whole(path: Path) -> warm.Way:
    """Inferences of all of a model by ``Interpreter``, of ones."""
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    for each in interpreter.get_input_details():
        interpreter.set_tensor(each["index"], np.ones(each["shape"], each["dtype"]))
    return lambda: seconds_of(interpreter.invoke, 1)[0]


def main() -> int:
    options_of = warm.options(__doc__)
    options_of.add_argument("--other", metavar="PYTHON")
    options = options_of.parse_args()
    pythons = [sys.executable, *filter(None, [options.other])]
    heads = ("run", "interp.", "delegate", "other")[: 2 + len(pythons)]

    @contextmanager
    def ways(path: Path) -> Iterator[Sequence[warm.Way]]:
        with ExitStack() as stack:
            clients = [
                stack.enter_context(warm.client(python, "-c", CLIENT, library(), path))
                for python in pythons
            ]
            yield warm.OwnRun(path), whole(path), *clients

    return warm.measure(options, heads, ways, MODELS)


if __name__ == "__main__":
    sys.exit(main())
