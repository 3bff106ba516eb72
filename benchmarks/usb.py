"""What inferences by USB cost beside those of `darwinn run`.

    python -m benchmarks.usb [--repeat N] [--only WORD]

Reads the models from the folder that DARWINN_CORPUS names. For each: the best of N warm
inferences as `darwinn run` times them, by a client of PyUSB in the process of the chip, and by the
same client with the stand-in for libusb. Exits with 1 if a best one exceeds 1.2 times that of
`darwinn run` and 10 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import warm

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
print("ready", flush=True)
while sys.stdin.readline():
    print(time.perf_counter())
    client.run(compiled.inference, inputs)
    print(time.perf_counter(), flush=True)
"""
COMMAND = (sys.executable, "-c", CLIENT)


@contextmanager
def ways(path: Path) -> Iterator[Sequence[warm.Way]]:
    with (
        warm.client(*COMMAND, "own", path) as own,
        warm.client(*warm.DARWINN, "device", "--usb", "--", *COMMAND, "found", path) as found,
    ):
        yield warm.OwnRun(path), own, found


if __name__ == "__main__":
    sys.exit(warm.measure(warm.options(__doc__).parse_args(), ("run", "PyUSB", "libusb"), ways))
