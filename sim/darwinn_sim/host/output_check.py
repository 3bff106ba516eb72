"""What a user sees of the outputs: whether it follows from written memory, and where it differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import Buffer, Description, Executable, Layer, to_tensor
from darwinn_formats.errors import FormatError
from numpy.typing import NDArray

from darwinn_sim.host.buffers import Request, batches_of, layer_bytes

_DESTINATIONS = (Description.BASE_ADDRESS_OUTPUT_ACTIVATION, Description.BASE_ADDRESS_SCRATCH)


class Elements(NamedTuple):
    """Elements of the output ``name``: the row-major index of the first, and how many there are."""

    name: str
    first: int
    number: int


def unknown_output(request: Request) -> Elements | None:
    """The first output with elements that may follow from memory nothing has written.

    What a layer has between its elements does not count. None if all follow from written memory.
    """
    for layer in request.executable.output_layers:
        for known in _known(request, layer):
            if known.all():
                continue
            unknown = np.where(known, 0, 0xFF).astype(np.uint8)
            found = _differing(layer, unknown.tobytes(), bytes(unknown.size))
            if found is not None:
                return found
    return None


def fill_any(request: Request, random: np.random.Generator) -> None:
    """Before a run for any input: random inputs, of which nothing is known, nor of destinations."""
    for buffer, mapped in request.buffers.items():
        known = mapped.region.payload_known
        is_input = buffer.desc == Description.BASE_ADDRESS_INPUT_ACTIVATION
        if is_input:
            payload = mapped.region.payload
            payload[:] = random.integers(0, 256, payload.size, np.uint8)
        if known is not None and (is_input or buffer.desc in _DESTINATIONS):
            known[:] = False


def known_outputs(request: Request) -> dict[str, bytes]:
    """For each byte of an output, as ``Driver.finish`` gives them, 1 if it follows from written
    memory.
    """
    return {
        layer.name: b"".join(known.tobytes() for known in _known(request, layer))
        for layer in request.executable.output_layers
    }


def _known(request: Request, layer: Layer) -> Iterator[NDArray[np.bool_]]:
    """Of each batch of an output, which bytes follow from written memory, where that is known."""
    for batch in range(batches_of(request.executable)):
        buffer = Buffer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, layer.name, batch)
        mapped = request.buffers.get(buffer)
        known = None if mapped is None else mapped.region.payload_known
        if known is not None:
            yield known[: layer_bytes(layer)]


def differing_output(
    executable: Executable, one: Mapping[str, bytes], other: Mapping[str, bytes]
) -> Elements | None:
    """The first output of two runs whose elements differ; None if all are equal."""
    for layer in executable.output_layers:
        size = layer_bytes(layer)
        for begin in range(0, len(one[layer.name]), size):
            parts = (each[layer.name][begin : begin + size] for each in (one, other))
            found = _differing(layer, *parts)
            if found is not None:
                return found
    return None


def _differing(layer: Layer, one: bytes, other: bytes) -> Elements | None:
    if one == other:
        return None
    try:
        tensors = to_tensor(layer, one), to_tensor(layer, other)
    except FormatError:
        # The layer does not say where its elements are: every byte is one.
        tensors = np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)
    places = np.flatnonzero(tensors[0] != tensors[1])
    return Elements(layer.name, int(places[0]), places.size) if places.size else None
