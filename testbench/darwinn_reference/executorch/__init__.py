"""ExecuTorch programs on the CPU: an interpreter of execution plans with kernels in NumPy."""

from darwinn_reference.executorch.interpreter import (
    Backend,
    DelegateProgram,
    missing_operators,
)
from darwinn_reference.executorch.operators import (
    OPERATORS,
    REFUSED,
    Convention,
    Operator,
)
from darwinn_reference.executorch.reference import ExecutorchReference
from darwinn_reference.executorch.values import TensorValue

__all__ = [
    "OPERATORS",
    "REFUSED",
    "Backend",
    "Convention",
    "DelegateProgram",
    "ExecutorchReference",
    "Operator",
    "TensorValue",
    "missing_operators",
]
