"""What both sides of a run of the whole chip agree on: in the simulation, and beside it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from darwinn_formats.darwinn import Executable
from darwinn_sim.host.buffers import layer_bytes

MODEL = "DARWINN_MODEL"
RESULTS = "DARWINN_RESULTS"
INFERENCES = "DARWINN_INFERENCES"
LONGEST = "DARWINN_LONGEST"
RESETS = "DARWINN_RESETS"
"""Environment variables of the simulation: the compiled model, where its outputs and cycles are
written, how often to infer, cycles within which a reset comes, and how many further resets."""


def random_inputs(executable: Executable, random: Random) -> Mapping[str, bytes]:
    """Bytes for every input layer."""
    layers = executable.input_layers
    return {layer.name or "": random.randbytes(layer_bytes(layer)) for layer in layers}
