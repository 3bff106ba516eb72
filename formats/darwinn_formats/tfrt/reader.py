"""Read BEF files: every offset, alignment, length and index is checked before it is used.

The result can be executed without further checks: registers are written once and before they are
read, and the lists of users agree with the operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from darwinn_formats.files import Source, content_of, errors_name, name_of
from darwinn_formats.signatures import BEF
from darwinn_formats.tfrt.attributes import AttributeReader
from darwinn_formats.tfrt.check import check_registers
from darwinn_formats.tfrt.cursor import Cursor
from darwinn_formats.tfrt.encoding import (
    KERNEL_ALIGNMENT,
    NAMELESS,
    PSEUDO_KERNEL_CODE,
    PSEUDO_KERNEL_LOCATION,
    VERSION,
    FunctionKind,
    LocationKind,
    SectionId,
)
from darwinn_formats.tfrt.model import (
    Attribute,
    BefFile,
    Body,
    CallSite,
    FileLineColumn,
    Function,
    Fused,
    Kernel,
    Location,
    NameLocation,
    Register,
    UnknownLocation,
    UnknownSection,
    Untyped,
)

MAXIMUM_DEPTH = 64
"""Locations in locations."""

_REQUIRED = tuple(SectionId)[: SectionId.FUNCTIONS + 1]
_KERNEL_HEADER_BYTES = 24
_WORD = 4


def load(source: Source) -> BefFile:
    """Read a BEF file.

    Raises:
        FormatError: with file, offset and field, for anything that is not a valid BEF file.
        OSError: when the file cannot be read.
    """
    with errors_name(source):
        return replace(_Reader(content_of(source)).read(), file=name_of(source))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sections: dict[SectionId, Cursor] = {}
        self.unknown: list[UnknownSection] = []

    def read(self) -> BefFile:
        self.read_sections()
        self.strings = _string_table(self.sections[SectionId.STRINGS])
        self.kernel_names = self.name_table(SectionId.KERNELS)
        self.types = self.name_table(SectionId.TYPES)
        self.has_attribute_types = SectionId.ATTRIBUTE_TYPES in self.sections
        self.attribute_index: dict[int, int] = {}
        self.attributes: list[Attribute] = []
        if self.has_attribute_types:
            self.read_attributes()
        self.locations = (
            _Locations(self.sections[SectionId.LOCATIONS], self.location_strings())
            if SectionId.LOCATIONS in self.sections
            else None
        )
        functions = _Functions(self).read()
        attributes = self.sections[SectionId.ATTRIBUTES]
        return BefFile(
            functions,
            tuple(self.attributes),
            self.kernel_names,
            self.types,
            tuple(self.strings.values()),
            SectionId.ATTRIBUTE_NAMES in self.sections,
            SectionId.REGISTER_TYPES in self.sections,
            None if self.has_attribute_types else self.data[attributes.start : attributes.end],
            tuple(self.unknown),
        )

    def read_sections(self) -> None:
        cursor = Cursor(self.data, 0, len(self.data), "file")
        if cursor.bytes(min(2, len(self.data)), "magic") != BEF:
            raise cursor.fail("magic", "not a BEF file: it does not start with 0B EF", 0)
        version = cursor.byte("version")
        if version != VERSION:
            raise cursor.fail("version", f"version {version} is not known", cursor.position - 1)
        while cursor.remaining:
            self.read_section(cursor)
        for number in _REQUIRED:
            if number not in self.sections:
                raise cursor.fail(f"section {number.name}", "is missing")

    def read_section(self, cursor: Cursor) -> None:
        start = cursor.position
        number = cursor.byte("section id")
        word = cursor.integer("section length")
        length, alignment = word >> 1, 1
        if word & 1:
            alignment = cursor.byte("section alignment")
            if alignment == 0 or alignment & (alignment - 1):
                reason = f"{alignment} is not a power of two"
                raise cursor.fail("section alignment", reason, cursor.position - 1)
            cursor.align(alignment, "section padding")
        if length > cursor.remaining:
            reason = f"{length} bytes are needed, {cursor.remaining} are there"
            raise cursor.fail("section length", reason, start)
        begin = cursor.position
        data = cursor.bytes(length, "section")
        try:
            section = SectionId(number)
        except ValueError:
            self.unknown.append(UnknownSection(number, alignment, data))
            return
        if section in self.sections:
            raise cursor.fail(f"section {section.name}", "is there twice", start)
        self.sections[section] = Cursor(self.data, begin, begin + length, section.name)

    def string(self, cursor: Cursor, field: str) -> str:
        """A string of the Strings section, by an OFFSET."""
        return _string(self.strings, cursor, field, "string")

    def name_table(self, section: SectionId) -> tuple[str, ...]:
        cursor = self.sections[section]
        names = tuple(self.string(cursor, f"[{n}]") for n in range(cursor.count("count")))
        cursor.expect_end("count")
        return names

    def read_attributes(self) -> None:
        cursor = self.sections[SectionId.ATTRIBUTE_TYPES]
        reader = AttributeReader(self.sections[SectionId.ATTRIBUTES])
        for number in range(cursor.count("count", 2)):
            start = cursor.position
            offset = cursor.integer(f"[{number}].offset")
            code = cursor.integer(f"[{number}].type")
            if offset in self.attribute_index:
                raise cursor.fail(f"[{number}].offset", f"{offset} is there twice", start)
            self.attribute_index[offset] = number
            self.attributes.append(reader.read(offset, code, f"attribute {number}"))
        cursor.expect_end("count")

    def attribute(self, offset: int, cursor: Cursor, field: str, at: int) -> int:
        """Index of the attribute at an offset; without types they are numbered as they come."""
        index = self.attribute_index.get(offset)
        if index is not None:
            return index
        section = self.sections[SectionId.ATTRIBUTES]
        if self.has_attribute_types:
            raise cursor.fail(field, f"no attribute starts at offset {offset}", at)
        if offset >= section.end - section.start:
            raise cursor.fail(field, f"offset {offset} is beyond the attributes", at)
        self.attribute_index[offset] = len(self.attributes)
        self.attributes.append(Untyped(offset))
        return len(self.attributes) - 1

    def location_strings(self) -> dict[int, str]:
        section = self.sections.get(SectionId.LOCATION_STRINGS)
        return {} if section is None else _string_table(section)


def _string_table(cursor: Cursor) -> dict[int, str]:
    """Strings by the offset at which they start."""
    data = cursor.data[cursor.start : cursor.end]
    if data and data[-1]:
        raise cursor.fail("", "the last string does not end with a zero byte", cursor.end - 1)
    strings, offset = {}, 0
    for text in data.split(b"\0")[:-1]:
        strings[offset] = text.decode("utf-8", "surrogateescape")
        offset += len(text) + 1
    return strings


class _Locations:
    """Locations by offset.

    Those that were written do not share bytes; a file in which they do could be small and yet
    hold any amount of locations, so that no more bytes are read than the section has.
    """

    def __init__(self, section: Cursor, strings: dict[int, str]) -> None:
        self.section = section
        self.strings = strings
        self.known: dict[int, Location] = {}
        self.budget = section.remaining

    def read(self, offset: int, cursor: Cursor, field: str, at: int) -> Location:
        if offset in self.known:
            return self.known[offset]
        if offset >= self.section.remaining:
            raise cursor.fail(field, f"offset {offset} is beyond the locations", at)
        place = self.section.at(offset, "offset")
        start = place.position
        location = self.location(place, 0)
        self.budget -= place.position - start
        if self.budget < 0:
            raise place.fail("", "locations overlap", start)
        self.known[offset] = location
        return location

    def location(self, cursor: Cursor, depth: int) -> Location:
        if depth > MAXIMUM_DEPTH:
            raise cursor.fail("", f"locations are nested more than {MAXIMUM_DEPTH} deep")
        start = cursor.position
        match cursor.byte("kind"):
            case LocationKind.UNKNOWN:
                return UnknownLocation()
            case LocationKind.FILE_LINE_COLUMN:
                file = self.string(cursor, "file")
                return FileLineColumn(file, cursor.integer("line"), cursor.integer("column"))
            case LocationKind.NAME:
                return NameLocation(self.string(cursor, "name"), self.location(cursor, depth + 1))
            case LocationKind.CALL_SITE:
                callee = self.location(cursor, depth + 1)
                return CallSite(callee, self.location(cursor, depth + 1))
            case LocationKind.FUSED:
                count = cursor.count("count")
                return Fused(tuple(self.location(cursor, depth + 1) for _ in range(count)))
            case kind:
                raise cursor.fail("kind", f"location kind {kind} is not known", start)

    def string(self, cursor: Cursor, field: str) -> str:
        return _string(self.strings, cursor, field, "location string")


def _string(strings: Mapping[int, str], cursor: Cursor, field: str, what: str) -> str:
    start = cursor.position
    offset = cursor.integer(field)
    if offset not in strings:
        raise cursor.fail(field, f"no {what} starts at offset {offset}", start)
    return strings[offset]


class _Functions:
    """The functions, with the sections that run along with them: names and register types."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.section = reader.sections[SectionId.FUNCTIONS]
        self.index = reader.sections[SectionId.FUNCTION_INDEX]
        self.names = reader.sections.get(SectionId.ATTRIBUTE_NAMES)
        self.register_types = reader.sections.get(SectionId.REGISTER_TYPES)
        self.budget = self.section.remaining

    def read(self) -> tuple[Function, ...]:
        if self.section.start % KERNEL_ALIGNMENT and self.section.remaining:
            raise self.section.fail("", f"not aligned to {KERNEL_ALIGNMENT} bytes")
        count = self.count = self.index.count("count", 5)
        heads = [self.head(f"[{number}]") for number in range(count)]
        self.index.expect_end("count")
        for cursor in (self.names, self.register_types):
            if cursor is not None:
                start, stated = cursor.position, cursor.integer("count")
                if stated != count:
                    reason = f"{stated} functions, the function index has {count}"
                    raise cursor.fail("count", reason, start)
        functions = tuple(
            head if head.kind is FunctionKind.NATIVE else self.body(head, offset, number, at)
            for number, (head, offset, at) in enumerate(heads)
        )
        for cursor in (self.names, self.register_types):
            if cursor is not None:
                cursor.expect_end("count")
        self.check_names(functions, heads)
        return functions

    def head(self, field: str) -> tuple[Function, int, int]:
        cursor, start = self.index, self.index.position
        number = cursor.byte(f"{field}.kind")
        try:
            kind = FunctionKind(number)
        except ValueError:
            raise cursor.fail(f"{field}.kind", f"kind {number} is not known", start) from None
        at = cursor.position
        offset = cursor.integer(f"{field}.offset")
        name = self.reader.string(cursor, f"{field}.name")
        arguments, results = self.types(f"{field}.arguments"), self.types(f"{field}.results")
        return Function(kind, name, arguments, results, None), offset, at

    def types(self, field: str) -> tuple[str, ...]:
        cursor, types = self.index, self.reader.types
        count = cursor.count(field)
        return tuple(types[cursor.index(len(types), "type", field)] for _ in range(count))

    def check_names(
        self, functions: tuple[Function, ...], heads: list[tuple[Function, int, int]]
    ) -> None:
        names = Counter(function.name for function in functions if function.name != NAMELESS)
        for number, (function, _, at) in enumerate(heads):
            if names[function.name] > 1:
                raise self.index.fail(f"[{number}].name", f"{function.name!r} is there twice", at)

    def body(self, head: Function, offset: int, number: int, at: int) -> Function:
        path = f"[{number}]"
        if offset >= self.section.end - self.section.start:
            raise self.index.fail(f"{path}.offset", f"{offset} is beyond the functions", at)
        cursor = self.section.at(offset, path)
        start = cursor.position
        at = cursor.position
        location_offset = cursor.integer(f"{path}.location")
        location = self.location(location_offset, cursor, f"{path}.location", at)
        uses = [cursor.integer(f"{path}.uses") for _ in range(cursor.count(f"{path}.registers"))]
        types = self.types_of_registers(len(uses), path)
        table = [
            tuple(cursor.integer(f"{path}.{field}") for field in ("offset", "operands", "stream"))
            for _ in range(cursor.count(f"{path}.kernels", 3))
        ]
        results = tuple(
            cursor.index(len(uses), "register", f"{path}.results") for _ in head.result_types
        )
        cursor.align(KERNEL_ALIGNMENT, f"{path}.padding")
        if not table:
            raise cursor.fail(f"{path}.kernels", "the pseudo kernel is missing", start)
        if self.names is not None:
            self.check_kernel_count(self.names, len(table), path)
        self.budget -= cursor.position - start
        kernels = [
            self.kernel(cursor, entry, len(uses), len(table), f"{path}.kernels[{number}]", number)
            for number, entry in enumerate(table)
        ]
        entry = kernels[0]
        body = Body(
            location,
            tuple(map(Register, uses, types)),
            entry.stream,
            entry.used_by,
            tuple(kernels[1:]),
            results,
            location_offset,
        )
        check_registers(cursor, head, body, entry, path, start)
        return replace(head, body=body)

    def location(self, offset: int, cursor: Cursor, field: str, at: int) -> Location | None:
        locations = self.reader.locations
        return None if locations is None else locations.read(offset, cursor, field, at)

    def types_of_registers(self, count: int, path: str) -> list[str | None]:
        cursor, types = self.register_types, self.reader.types
        if cursor is None:
            return [None] * count
        start = cursor.position
        stated = cursor.integer(path)
        if stated != count:
            raise cursor.fail(path, f"{stated} registers, the function has {count}", start)
        return [types[cursor.index(len(types), "type", path)] for _ in range(count)]

    def check_kernel_count(self, cursor: Cursor, count: int, path: str) -> None:
        start = cursor.position
        stated = cursor.integer(path)
        if stated != count:
            raise cursor.fail(path, f"{stated} kernels, the function has {count}", start)

    def kernel(
        self,
        base: Cursor,
        entry: tuple[int, ...],
        registers: int,
        kernels: int,
        path: str,
        number: int,
    ) -> Kernel:
        offset, ready_count, stream = entry
        if offset % KERNEL_ALIGNMENT:
            raise base.fail(path, f"offset {offset} is not a multiple of {KERNEL_ALIGNMENT}")
        cursor = base.at(base.position - base.start + offset, path)
        start = cursor.position
        if cursor.remaining < _KERNEL_HEADER_BYTES:
            raise cursor.fail(path, "the kernel ends after the data")
        code, location_offset = cursor.words(2, path)
        counts = [cursor.fixed_count(path, _WORD) for _ in range(4)]
        users = cursor.words(counts[3], f"{path}.users")

        def words(count: int, limit: int, what: str) -> tuple[int, ...]:
            field, begin = f"{path}.{what}", cursor.position
            values = cursor.words(count, field)
            for index, value in enumerate(values):
                if value >= limit:
                    cursor.below(value, limit, what, field, begin + _WORD * index)
            return values

        arguments = words(counts[0], registers, "register")
        attribute_at = cursor.position
        offsets = words(counts[1], 1 << 32, "attribute")
        attributes = tuple(
            self.reader.attribute(
                offset, cursor, f"{path}.attributes[{index}]", attribute_at + _WORD * index
            )
            for index, offset in enumerate(offsets)
        )
        functions = words(counts[2], self.count, "function")
        # The first result of the pseudo kernel is no register: it is one past the last.
        results = words(counts[3], registers + (number == 0), "register")
        used_by = tuple(words(count, kernels, "kernel") for count in users)
        self.budget -= cursor.position - start
        if self.budget < 0:
            raise cursor.fail(path, "kernels overlap", start)
        pseudo = number == 0
        if pseudo != (code == PSEUDO_KERNEL_CODE):
            reason = "is the pseudo kernel" if code == PSEUDO_KERNEL_CODE else "is no pseudo kernel"
            raise cursor.fail(path, f"kernel {number} {reason}", start)
        if pseudo:
            self.check_pseudo_kernel(cursor, location_offset, counts, ready_count, path, start)
            return Kernel("", None, (), (), None, (), results, used_by, 0, stream)
        names = self.reader.kernel_names
        name = names[cursor.below(code, len(names), "kernel name", f"{path}.code", start)]
        location = self.location(location_offset, cursor, f"{path}.location", start + _WORD)
        attribute_names = None
        if self.names is not None:
            attribute_names = tuple(self.reader.string(self.names, path) for _ in attributes)
        return Kernel(
            name,
            location,
            arguments,
            attributes,
            attribute_names,
            functions,
            results,
            used_by,
            ready_count,
            stream,
            location_offset,
        )

    @staticmethod
    def check_pseudo_kernel(
        cursor: Cursor, location: int, counts: list[int], ready_count: int, path: str, start: int
    ) -> None:
        if location != PSEUDO_KERNEL_LOCATION:
            raise cursor.fail(path, "location of the pseudo kernel", start + _WORD)
        if any(counts[:3]) or ready_count:
            raise cursor.fail(path, "the pseudo kernel has operands or attributes", start)
