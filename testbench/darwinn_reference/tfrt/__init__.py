"""CPU reference of TFRT: an executor of BEF functions, with the kernels of the original's tests."""

from darwinn_reference.tfrt.definition import KernelDefinition, Style
from darwinn_reference.tfrt.driver import (
    SINGLE,
    Driver,
    Options,
    queue_of,
)
from darwinn_reference.tfrt.expected import (
    ReportedError,
    complaints,
    expected_errors,
    parts_of,
)
from darwinn_reference.tfrt.host import Diagnostic, Host
from darwinn_reference.tfrt.kernels.tensors import DenseHostTensor
from darwinn_reference.tfrt.reference import TfrtReference, dense
from darwinn_reference.tfrt.registry import KERNELS
from darwinn_reference.tfrt.values import CHAIN, ErrorValue, KernelError

__all__ = [
    "CHAIN",
    "KERNELS",
    "SINGLE",
    "DenseHostTensor",
    "Diagnostic",
    "Driver",
    "ErrorValue",
    "Host",
    "KernelDefinition",
    "KernelError",
    "Options",
    "ReportedError",
    "Style",
    "TfrtReference",
    "complaints",
    "dense",
    "expected_errors",
    "parts_of",
    "queue_of",
]
