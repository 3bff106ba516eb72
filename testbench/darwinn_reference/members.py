"""docs/members.md: every member of the documents of the formats, and what happens with it.

The page follows from the declarations of the tables (``darwinn_formats.uses``), from the parts of
files that are no tables, and from the registries that execute: types of elements, kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

from darwinn_formats.darwinn import layout
from darwinn_formats.darwinn import schema as darwinn
from darwinn_formats.executorch import check, container
from darwinn_formats.executorch import schema as executorch
from darwinn_formats.flatbuffer.schema import Union, UnionVector
from darwinn_formats.iree import schema as iree
from darwinn_formats.tfrt import attributes, encoding, grammar
from darwinn_formats.tfrt import model as tfrt
from darwinn_formats.uses import BOTH, Part, Use, tables_of, uses_of

from darwinn_reference.executorch.values import has_arithmetic
from darwinn_reference.marked import replaced
from darwinn_reference.tfrt import KERNELS

START = "<!-- members: generated, see darwinn_reference.members -->"
END = "<!-- end of members -->"


@dataclass(frozen=True, slots=True)
class Row:
    """A member of a document.

    Attributes:
        group: its table, enumeration, union, section or production.
        member: its name there; empty for the group itself.
        use: what happens with its value.
        refused: words of the message that refuses it, or some of its values.
        is_later: whether newer versions of the format have it, and the document does not.
    """

    group: str
    member: str
    use: Use
    refused: str = ""
    is_later: bool = False

    @property
    def name(self) -> str:
        """Group and member."""
        return f"{self.group}.{self.member}" if self.member else self.group


Fate = Callable[[Any], tuple[Use, str]]
"""From a value of an enumeration to its uses, and to words of its refusal."""


def _always(use: Use = BOTH) -> Fate:
    return lambda value: (use, "")


def _layer_type(value: darwinn.DataType) -> tuple[Use, str]:
    return (BOTH, "") if value in layout.DTYPES else (Use.SHOWN, layout.NO_ARITHMETIC)


def _scalar_type(value: executorch.ScalarType) -> tuple[Use, str]:
    if value not in executorch.ITEM_SIZES:
        return Use.READ, check.RESERVED
    return (BOTH, "") if has_arithmetic(value) else (Use.SHOWN, "types of elements")


def _dynamism(value: executorch.TensorShapeDynamism) -> tuple[Use, str]:
    reason = check.REFUSED_SIZES.get(value, "")
    return (Use.READ if reason else BOTH), reason


def _device(value: executorch.DeviceType) -> tuple[Use, str]:
    return (BOTH, "") if value is executorch.DeviceType.CPU else (Use.SHOWN, "is not supported")


_ATTRIBUTES = {
    code & ~encoding.ARRAY_FLAG for kernel in KERNELS.values() for code in kernel.attributes
}


def _attribute(value: encoding.DType | encoding.Kind) -> tuple[Use, str]:
    has_form = isinstance(value, encoding.Kind) or value in attributes.STORED
    return (BOTH if value in _ATTRIBUTES else Use.SHOWN), "" if has_form else attributes.UNKNOWN


Enumerations = Mapping[str, tuple[type[IntEnum | IntFlag], Fate]]


@dataclass(frozen=True, slots=True)
class Document:
    """A format's document: its tables are those of a module, by the name of that.

    Attributes:
        title: of its part of the page.
        tables: module whose tables it declares, or the empty text.
        enumerations: by their names in the document, with the fate of each value.
        parts: parts of a file that are no tables.
    """

    title: str
    tables: str = ""
    enumerations: Enumerations = dataclasses.field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    def rows(self) -> Iterator[Row]:
        """All members."""
        for part in self.parts:
            yield Row(part.section, part.name, part.what_happens, part.refused)
        for name, (values, fate) in self.enumerations.items():
            for value in values:
                yield Row(name, value.name or str(value), *fate(value))
        for table in tables_of(self.tables):
            yield from _members(table)


DOCUMENTS: Mapping[str, Document] = {
    "darwinn-executable-schema": Document(
        "DarwiNN executables",
        darwinn.__name__,
        {
            "Description": (darwinn.Description, _always()),
            "Position": (darwinn.Position, _always()),
            "InterruptType": (darwinn.InterruptType, _always()),
            "Direction": (darwinn.Direction, _always()),
            "DataType": (darwinn.DataType, _layer_type),
            "ExecutableType": (darwinn.ExecutableType, _always()),
        },
    ),
    "executorch-program-schema": Document(
        "ExecuTorch programs",
        executorch.__name__,
        {
            "ScalarType": (executorch.ScalarType, _scalar_type),
            "TensorShapeDynamism": (executorch.TensorShapeDynamism, _dynamism),
            "DataLocation": (executorch.DataLocation, _always()),
            "TensorDataLocation": (executorch.TensorDataLocation, _always()),
            "DeviceType": (executorch.DeviceType, _device),
        },
    ),
    "executorch-pte-file-format": Document("ExecuTorch files (.pte)", parts=container.PARTS),
    "iree-bytecode-module-schema": Document(
        "IREE bytecode modules",
        iree.__name__,
        {
            "FeatureBits": (iree.Feature, _always()),
            "ModuleDependencyFlagBits": (iree.Presence, _always(Use.SHOWN)),
            "ImportFlagBits": (iree.Presence, _always()),
        },
    ),
    "tfrt-binary-executable-format": Document(
        "TFRT binary executable format",
        tfrt.__name__,
        {
            "section": (encoding.SectionId, _always()),
            "function kind": (encoding.FunctionKind, _always()),
            "location kind": (encoding.LocationKind, _always()),
            "element type of an attribute": (encoding.DType, _attribute),
            "attribute type": (encoding.Kind, _attribute),
        },
        grammar.PARTS,
    ),
}
"""The five documents, by the names of their files."""


def _members(table: type[Any]) -> Iterator[Row]:
    told = uses_of(table)
    if not told.members:
        yield Row(told.name, "", told.whole, is_later=told.is_later)
    for field, use in told.members.items():
        is_later = told.is_later or field in told.later
        yield Row(told.name, told.names[field], use, told.refused.get(field, ""), is_later)
    for entry in dataclasses.fields(table):
        if entry.name in told.unions:
            yield from _union(told.unions[entry.name], entry.metadata["flatbuffer"].kind)


def _union(name: str, kind: Union | UnionVector) -> Iterator[Row]:
    """A row for each table of a union."""
    member = kind.member if isinstance(kind, UnionVector) else kind
    for table in member.members.values():
        told = uses_of(table)
        use = told.whole
        for each in told.members.values():
            use |= each
        yield Row(name, told.name, use)


def rows() -> Iterator[tuple[str, Row]]:
    """Every member of every document, by the name of the document's file."""
    for name, document in DOCUMENTS.items():
        for row in document.rows():
            yield name, row


_WORDS = {
    Use.READ: "loaded",
    Use.SHOWN: "shown",
    Use.EXECUTED: "executed",
    BOTH: "shown, executed",
}


def _lines() -> Iterator[str]:
    for document in DOCUMENTS.values():
        found = list(document.rows())
        refused = sum(bool(row.refused) for row in found)
        counts = ", ".join(
            f"{sum(row.use is use for row in found)} {words.replace(', ', ' and ')}"
            for use, words in _WORDS.items()
        )
        yield f"## {document.title}"
        yield ""
        yield f"{len(found)} members: {counts}; refused {refused}, wholly or in part."
        yield ""
        yield "| in | member | what happens | refused with the words |"
        yield "|---|---|---|---|"
        for row in found:
            later = " (newer than the document)" if row.is_later else ""
            refusal = f"`{row.refused}`" if row.refused else ""
            member = f"`{row.member}`" if row.member else ""
            yield f"| `{row.group}` | {member}{later} | {_WORDS[row.use]} | {refusal} |"
        yield ""


def updated(text: str) -> str:
    """A page with the tables between its marks replaced; ValueError if a mark is missing."""
    *lines, _ = _lines()
    return replaced(text, (START, END), lines, "the members")
