"""The custom operators that LiteRT lacks: what the chip runs, and what the vendor's library adds.

A model of the Edge TPU compiler has the part for the chip as a custom operator; the operators
around it are LiteRT's. Whoever runs such a model (:class:`~darwinn_testbench.Interpreter`, the
delegate) hands tensors to the operators here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR

from darwinn_testbench.chip.session import Device
from darwinn_testbench.device.operators.chip_operator import ChipOperator
from darwinn_testbench.device.operators.custom_operator import CustomOperator, PlacedOperator
from darwinn_testbench.device.operators.pose_decoder import POSE_DECODER, PoseDecoder

_KINDS: Mapping[str, Callable[[PlacedOperator, Callable[[], Device]], CustomOperator]] = {
    CUSTOM_OPERATOR: lambda place, device: ChipOperator(place, device()),
    POSE_DECODER: lambda place, _: PoseDecoder(place),
}

NAMES = frozenset(_KINDS)
"""Names of the custom operators that are there."""


def make(place: PlacedOperator, device: Callable[[], Device]) -> CustomOperator:
    """The custom operator at ``place``, on the chip that ``device`` gives if it is the chip's.

    Raises:
        FormatError, InputError: options or tensors that are not valid.
    """
    return _KINDS[place.name](place, device)
