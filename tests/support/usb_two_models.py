"""A model on each of several USB devices, in one process.

    python usb_two_models.py SEED RESULT MODEL...

loads the parameters of each model into a device of its own, in their order, then infers with each
in turn, twice. RESULT has the outputs of each model as those of ``usb_inference``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import usb.core
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from usb_client import APPLICATION, UsbClient

if __name__ == "__main__":
    seed, result, *paths = sys.argv[1:]
    models = [model for path in paths for model in open_models(Path(path))]
    devices = list(usb.core.find(find_all=True, **APPLICATION))
    assert len(devices) == len(models)
    clients = [UsbClient(device=device) for device in devices]
    for client, model in zip(clients, models, strict=True):
        if model.compiled.caching is not None:
            client.run(model.compiled.caching, {})
    outputs: list[dict[str, str]] = []
    for _ in range(2):
        outputs = []
        for client, model in zip(clients, models, strict=True):
            (tensors,) = random_inputs(model.ports, seed=int(seed), runs=1)
            came = client.run(model.compiled.inference, model.to_device(tensors))
            outputs.append({name: data.hex() for name, data in came.items()})
    for client in clients:
        client.close()
    Path(result).write_text(json.dumps(outputs))
