"""The grammar of BEF files, production by production, and where the model holds each part.

Names are those of the public document of the format. Counts are not held themselves: they are the
lengths of what they count. docs/members.md lists the productions with what happens to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darwinn_formats.tfrt.model import (
    BefFile,
    Body,
    CallSite,
    FileLineColumn,
    Function,
    Fused,
    Kernel,
    NameLocation,
    Register,
    UnknownSection,
)
from darwinn_formats.uses import BOTH, Part, Use

_Held = tuple[type[Any], str]

_ENCODING = ("BYTE", "INTEGER", "FIXED32", "NULL_TERMINATED_STRING", "OFFSET", "INDEX")

_PARTS: Mapping[str, Mapping[str, _Held | Use]] = {
    **{name: {"": Use.READ} for name in _ENCODING},
    "SECTION": {"": Use.READ},
    "SECTION_HEADER": {"LENGTH_AND_ALIGNMENT": Use.READ},
    "SECTION_ID": {"": (UnknownSection, "id")},
    "LENGTH_AND_ALIGNMENT": {"": Use.READ},
    "SECTION_BODY_ALIGNMENT": {
        "Alignment": (UnknownSection, "alignment"),
        "AlignmentPadding": Use.READ,
    },
    "BEF_FILE": {"": BOTH},
    "FORMAT_VERSION_NUMBER": {"": Use.READ},
    "SECTION_DATA": {"": (UnknownSection, "data")},
    "STRINGS_SECTION": {"": (BefFile, "strings")},
    "ATTRIBUTES_SECTION": {"": (BefFile, "attributes")},
    "KERNELS_SECTION": {
        "KernelCount": (BefFile, "kernel_names"),
        "KernelNameOffset": (Kernel, "name"),
    },
    "TYPES_SECTION": {"TypeCount": (BefFile, "types"), "TypeNameOffset": (BefFile, "types")},
    "FUNCTION_INDEX_SECTION": {"NumFunctions": (BefFile, "functions")},
    "FUNCTION_ENTRY": {
        "FunctionKind": (Function, "kind"),
        "Function": (Function, "body"),
        "Name": (Function, "name"),
        "NumArguments": (Function, "argument_types"),
        "Type": (Function, "argument_types"),
        "NumResults": (Function, "result_types"),
    },
    "FUNCTIONS_SECTION": {"": (BefFile, "functions")},
    "FUNCTION": {"Location": (Body, "location"), "AlignmentPadding": Use.READ},
    "REGISTER_TABLE": {"NumRegs": (Body, "registers")},
    "REGISTER_ENTRY": {"NumUses": (Register, "uses")},
    "KERNEL_TABLE": {"NumKernels": (Body, "kernels"), "AttributeName": (Kernel, "attribute_names")},
    "KERNEL_ENTRY": {
        "KernelOffset": (Body, "kernels"),
        "NumOperands": (Kernel, "ready_count"),
        "StreamId": (Kernel, "stream"),
    },
    "RESULT_REGS": {"Register": (Body, "results")},
    "KERNEL": {"": (Body, "kernels")},
    "KERNEL_HEADER": {
        "KernelCode": (Kernel, "name"),
        "KernelLocation": (Kernel, "location"),
        "NumArguments": (Kernel, "arguments"),
        "NumAttributes": (Kernel, "attributes"),
        "NumFunctions": (Kernel, "functions"),
        "NumResults": (Kernel, "results"),
    },
    "KERNEL_RESULT_TABLE": {"NumUsedBys": (Kernel, "used_by")},
    "KERNEL_BODY": {
        "KernelArgument": (Kernel, "arguments"),
        "KernelAttribute": (Kernel, "attributes"),
        "KernelFunction": (Kernel, "functions"),
        "KernelResult": (Kernel, "results"),
        "KernelUsedBy": (Kernel, "used_by"),
    },
    "LOCATION_STRINGS_SECTION": {"": (FileLineColumn, "file")},
    "LOCATIONS_SECTION": {"": (Kernel, "location")},
    "LOCATION": {"": (Kernel, "location")},
    "UNKNOWN_LOC": {"": BOTH},
    "FILELINECOL_LOC": {
        "Filename": (FileLineColumn, "file"),
        "LineNum": (FileLineColumn, "line"),
        "ColumnNum": (FileLineColumn, "column"),
    },
    "NAME_LOC": {"Name": (NameLocation, "name"), "Child": (NameLocation, "child")},
    "CALLSITE_LOC": {"Callee": (CallSite, "callee"), "Caller": (CallSite, "caller")},
    "FUSED_LOC": {"NumLocations": (Fused, "locations")},
    "ATTRIBUTE_TYPES_SECTION": {"NumAttributes": (BefFile, "attributes")},
    "ATTRIBUTE_TYPE_ENTRY": {
        "Attributes": (BefFile, "attributes"),
        "AttributeType": (BefFile, "attributes"),
    },
    "ATTRIBUTE_NAMES_SECTION": {"NumFunctions": (BefFile, "has_attribute_names")},
    "REGISTER_TYPES_SECTION": {"NumFunctions": (BefFile, "has_register_types")},
    "REGISTER_TYPE_TABLE": {"NumRegs": (Body, "registers"), "Types": (Register, "type")},
}
"""For each production its named parts, or itself, and what holds them or what happens to them."""

_REFUSED: Mapping[str, str] = {"FORMAT_VERSION_NUMBER": "is not known"}

PARTS: tuple[Part, ...] = tuple(
    Part(production, name, use=place, refused=_REFUSED.get(production, ""))
    if isinstance(place, Use)
    else Part(production, name, place)
    for production, parts in _PARTS.items()
    for name, place in parts.items()
)
"""The grammar as parts of a file."""
