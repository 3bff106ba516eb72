"""An inference by whatever USB device is plugged in, in a process of its own.

    python usb_inference.py MODEL SEED RESULT

loads the parameters of the model, infers twice with inputs drawn from SEED, and writes the outputs
in device order to RESULT as JSON: name and hexadecimal digits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from usb_client import Backend, UsbClient


def outputs_by_usb(
    model: BoundModel, seed: int, backend: Backend = None, **options: Any
) -> dict[str, bytes]:
    """Outputs of an inference, the same a second time; options are those of ``UsbClient``."""
    compiled = model.compiled
    (tensors,) = random_inputs(model.ports, seed=seed, runs=1)
    inputs = model.to_device(tensors)
    hints = compiled.inference.dma_hints
    client = UsbClient(backend, announced=not hints.fully_deterministic, **options)
    if compiled.caching is not None:
        client.run(compiled.caching, {})
    first, second = (client.run(compiled.inference, inputs) for _ in range(2))
    client.close()
    assert first == second
    return first


if __name__ == "__main__":
    path, seed, result = sys.argv[1:]
    (model,) = open_models(Path(path))
    outputs = outputs_by_usb(model, int(seed))
    Path(result).write_text(json.dumps({name: data.hex() for name, data in outputs.items()}))
