"""Payloads of the XNNPACK delegate: ``load`` reads them, ``dump`` writes them."""

from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.describe import describe, disassemble, node_text
from darwinn_formats.executorch.xnnpack.loader import Lookup, XnnpackGraph, dump, is_xnnpack, load

__all__ = [
    "Lookup",
    "XnnpackGraph",
    "describe",
    "disassemble",
    "dump",
    "is_xnnpack",
    "load",
    "node_text",
    "schema",
]
