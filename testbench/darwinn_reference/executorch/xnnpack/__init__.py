"""The XNNPACK delegate on the CPU: ``operations`` is the table of nodes, ``delegate`` runs them."""

from darwinn_reference.executorch.xnnpack.delegate import (
    BACKEND,
    Delegate,
    open_delegate,
    refusals,
)
from darwinn_reference.executorch.xnnpack.operations import OPERATIONS

__all__ = ["BACKEND", "OPERATIONS", "Delegate", "open_delegate", "refusals"]
