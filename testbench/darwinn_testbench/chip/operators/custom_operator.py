"""What a custom operator is, to whoever runs a model: options, tensors, and a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from darwinn_formats.flatbuffer import Span
from darwinn_reference.arrays import AnyArray

from darwinn_testbench.chip.inputs import TensorPort


@dataclass(frozen=True)
class PlacedOperator:
    """A custom operator between its tensors: number ``index`` of its graph.

    ``file`` is the model's name for messages.
    """

    name: str
    options: Span
    inputs: tuple[TensorPort, ...]
    outputs: tuple[TensorPort, ...]
    file: str = "model"
    index: int = 0


class CustomOperator(Protocol):
    """A custom operator that is ready to run.

    ``outputs`` are its output tensors, whose shapes the operator decides. ``on_chip`` says whether
    the chip runs it, or the host.
    """

    outputs: tuple[TensorPort, ...]
    on_chip: bool

    def prepare(self) -> None:
        """Whatever takes long and happens once."""

    def run(self, inputs: Sequence[AnyArray]) -> tuple[list[AnyArray], dict[int, AnyArray]]:
        """The outputs, and the next values of inputs that are variables, by their position."""
