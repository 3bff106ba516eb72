"""The kernels of the reference, registered by importing their modules."""

from darwinn_testbench.reference.tfrt.kernels import (
    control_flow,
    numbers,
    shapes,
    tensors,
    testing,
)

__all__ = ["control_flow", "numbers", "shapes", "tensors", "testing"]
