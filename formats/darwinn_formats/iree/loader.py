"""Load IREE modules (.vmfb): zip archives and bare flatbuffers, with the modules inside them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, errors_name, name_of
from darwinn_formats.flatbuffer import Budget, Span
from darwinn_formats.iree import check
from darwinn_formats.iree.container import SIZE_PREFIX, Container, locate
from darwinn_formats.iree.module import Function, Module
from darwinn_formats.iree.schema import BytecodeModule, RodataSegment
from darwinn_formats.iree.versions import unread
from darwinn_formats.signatures import is_iree

MAXIMUM_NESTING = 4
"""Modules within modules at most."""

_EMPTY = Span(memoryview(b""))


@dataclass(frozen=True, slots=True)
class VmfbFile:
    """A loaded file: its name (``<bytes>`` if it was given as bytes), hash and module."""

    file: str
    sha256: str
    size: int
    module: Module

    @property
    def modules(self) -> tuple[tuple[str, Module], ...]:
        """All modules, outer ones first, each with the path of segments that leads to it."""
        return tuple(_walk("", self.module))


def load(source: Source) -> VmfbFile:
    """Load a module with everything in it.

    Raises:
        FormatError: with file, offset and field, for anything else.
        OSError: when the file cannot be read.
    """
    with errors_name(source):
        return _load(name_of(source), content_of(source))


def dump(module: Module) -> bytes:
    """Write a module as a bare flatbuffer with its size before it, all data embedded.

    Raises:
        FormatError: naming the field, when a value does not fit its type.
    """
    segments = tuple(
        replace(segment, embedded_data=data, external_data_offset=0, external_data_length=0)
        for segment, data in zip(module.definition.rodata_segments, module.rodata, strict=True)
    )
    return dump_definition(replace(module.definition, rodata_segments=segments))


def dump_definition(definition: BytecodeModule) -> bytes:
    """Write tables as a bare flatbuffer with its size before it.

    Raises:
        FormatError: naming the field, when a value does not fit its type.
    """
    return fb.write(definition, size_prefix=True)


def _walk(path: str, module: Module) -> Iterator[tuple[str, Module]]:
    yield path, module
    for ordinal, inner in module.nested.items():
        yield from _walk(f"{path}rodata[{ordinal}]/", inner)


def _load(name: str, data: bytes) -> VmfbFile:
    digest = hashlib.sha256(data).hexdigest()
    module = _load_module(memoryview(data), 0, Budget(len(data)), 0)
    return VmfbFile(name, digest, len(data), module)


def _load_module(data: memoryview, base: int, budget: Budget, nesting: int) -> Module:
    if nesting > MAXIMUM_NESTING:
        reason = f"modules are nested more than {MAXIMUM_NESTING} deep"
        raise FormatError("rodata_segments", reason, offset=base)
    container = locate(data, base)
    flat = data[container.start : container.end]
    try:
        definition = fb.verify(
            flat,
            BytecodeModule,
            base=base + container.start,
            budget=budget,
            prefix=SIZE_PREFIX,
            is_aligned=True,
        ).read()
    except FormatError:
        _refuse_old_schema(flat, base + container.start)
        raise
    try:
        return _module(definition, container, data, base, budget, nesting)
    except FormatError as error:
        raise error.within(BytecodeModule.__name__) from None


_OLD_VERSION_SLOT = 11
"""Field of a module that is its version in the schema before version 15."""


def _refuse_old_schema(flat: memoryview, offset: int) -> None:
    """Raise FormatError if the root of a flatbuffer has a version of another schema."""
    try:
        (root,) = struct.unpack_from("<I", flat)
        vtable = root - int(struct.unpack_from("<i", flat, root)[0])
        (size,) = struct.unpack_from("<H", flat, vtable)
        place = 4 + 2 * _OLD_VERSION_SLOT
        if place >= size:
            return
        (field,) = struct.unpack_from("<H", flat, vtable + place)
        (version,) = struct.unpack_from("<I", flat, root + field)
    except struct.error:
        return
    if unread(version >> 16) is not None and not version & 0xFFFF:
        check.refuse_version(version, offset + root + field)


def _module(
    definition: BytecodeModule,
    container: Container,
    data: memoryview,
    base: int,
    budget: Budget,
    nesting: int,
) -> Module:
    check.check_definition(definition)
    rodata = _rodata(definition.rodata_segments, container, data, base)
    functions = _functions(definition)
    checker = check.FunctionChecker(definition, functions)
    for function in functions:
        checker.check(function, budget)
    nested = {}
    for ordinal, segment in enumerate(rodata):
        if is_iree(segment.data):
            try:
                nested[ordinal] = _load_module(segment.data, segment.offset, budget, nesting + 1)
            except FormatError as error:
                raise error.within(f"rodata_segments[{ordinal}]") from None
    return Module(definition, container, functions, rodata, nested)


def _rodata(
    segments: Sequence[RodataSegment], container: Container, data: memoryview, base: int
) -> tuple[Span, ...]:
    found = []
    for index, segment in enumerate(segments):
        if segment.embedded_data is not None:
            found.append(segment.embedded_data)
            continue
        if not segment.external_data_length:
            found.append(_EMPTY)
            continue
        start = container.blobs + segment.external_data_offset
        end = start + segment.external_data_length
        if end > len(data):
            reason = f"bytes {start} to {end} are not in the {len(data)} of the file"
            field = f"rodata_segments[{index}].external_data_offset"
            raise FormatError(field, reason, offset=segment.file_offset)
        found.append(Span(data[start:end], base + start))
    return tuple(found)


def _functions(definition: BytecodeModule) -> tuple[Function, ...]:
    code = definition.bytecode_data or _EMPTY
    exports: dict[int, list[str]] = {}
    for export in definition.exported_functions:
        exports.setdefault(export.internal_ordinal, []).append(export.local_name)
    database = definition.debug_database
    maps = () if database is None else database.functions
    functions, descriptors = [], definition.function_descriptors
    for ordinal, descriptor in enumerate(descriptors):
        check.check_descriptor(descriptor, code, f"function_descriptors[{ordinal}]")
        signature = definition.function_signatures[ordinal]
        start = descriptor.bytecode_offset
        body = code.data[start : start + descriptor.bytecode_length]
        names = tuple(exports.get(ordinal, ()))
        local = maps[ordinal].local_name if len(maps) == len(descriptors) else ""
        functions.append(
            Function(
                ordinal,
                names[0] if names else local or f"function {ordinal}",
                names,
                check.convention_of(
                    signature.calling_convention,
                    f"function_signatures[{ordinal}].calling_convention",
                    signature.file_offset,
                ),
                {entry.key: entry.value for entry in signature.attributes},
                descriptor,
                Span(body, code.offset + start),
            )
        )
    return tuple(functions)
