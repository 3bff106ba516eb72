"""The custom operators that LiteRT lacks: what the chip runs, and what the vendor's library adds.

A model of the Edge TPU compiler has the part for the chip as a custom operator; the operators
around it are LiteRT's. Whoever runs such a model (:class:`~darwinn_testbench.Interpreter`, the
delegate) hands tensors to the operators here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR

from darwinn_testbench.chip.operators.custom_operator import CustomOperator, PlacedOperator
from darwinn_testbench.chip.operators.pose_decoder import POSE_DECODER, PoseDecoder

OnChip = Callable[[PlacedOperator], CustomOperator]
"""Makes the operator that the chip runs: whoever runs a model says on which chip."""

_ON_HOST: Mapping[str, Callable[[PlacedOperator], CustomOperator]] = {POSE_DECODER: PoseDecoder}

OWN_CODE = frozenset(_ON_HOST)
"""Names of those of the host, which run in this program's own code and not in LiteRT."""

NAMES = frozenset((CUSTOM_OPERATOR, *_ON_HOST))
"""Names of the custom operators that are there."""


def make(place: PlacedOperator, on_chip: OnChip) -> CustomOperator:
    """The custom operator at ``place``, made by ``on_chip`` if it is the chip's.

    Raises:
        FormatError, InputError: options or tensors that are not valid.
    """
    return _ON_HOST.get(place.name, on_chip)(place)
