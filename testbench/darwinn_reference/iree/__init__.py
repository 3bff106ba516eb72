"""CPU reference of IREE modules (.vmfb): VM bytecode with its ``hal``, ``hal_inline`` and ``vmvx``
imports, and VMVX executables as dispatches."""

from darwinn_reference.iree.original import OriginalIree, why_not
from darwinn_reference.iree.reference import IMPORTS, IreeReference

__all__ = ["IMPORTS", "IreeReference", "OriginalIree", "why_not"]
