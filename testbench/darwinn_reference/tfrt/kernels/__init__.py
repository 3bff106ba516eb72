"""The kernels of the reference, registered by importing their modules."""

from darwinn_reference.tfrt.kernels import (
    benchmark,
    control_flow,
    lifetimes,
    numbers,
    shapes,
    tensors,
    testing,
)

__all__ = ["benchmark", "control_flow", "lifetimes", "numbers", "shapes", "tensors", "testing"]
