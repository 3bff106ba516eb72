"""Load ExecuTorch programs (.pte), external data (.ptd) and bundled programs (.bpte).

What a file is shows in its identifier at byte 4. Everything is checked before it is handed out;
segments and payloads stay views of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from darwinn_formats import darwinn, signatures, tflite
from darwinn_formats import flatbuffer as fb
from darwinn_formats.darwinn.schema import IDENTIFIER as DARWINN_IDENTIFIER
from darwinn_formats.errors import FormatError
from darwinn_formats.executorch import check, container, schema, xnnpack
from darwinn_formats.executorch.container import ExtendedHeader
from darwinn_formats.executorch.schema import (
    BackendDelegate,
    BundledProgram,
    DataLocation,
    ExecutionPlan,
    FlatTensor,
    Program,
    Tensor,
)
from darwinn_formats.files import Source, content_of, errors_name, name_of
from darwinn_formats.remarks import remark
from darwinn_formats.signatures import Buffer


@dataclass(frozen=True, slots=True)
class DataFile:
    """A loaded file of external data (.ptd).

    Attributes:
        file: its name, ``<bytes>`` if it was given as bytes.
        header: its header.
        root: what is where.
    """

    file: str
    header: ExtendedHeader
    root: FlatTensor
    _data: memoryview = field(repr=False, compare=False)

    def segment(self, index: int) -> memoryview:
        """Bytes of a segment."""
        return _segment(self._data, self.header, self.root.segments[index])


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A loaded program, alone or out of a bundle.

    Attributes:
        file: name of the file, ``<bytes>`` if it was given as bytes.
        kind: what the file is.
        sha256: of the whole file, in hexadecimal.
        size: bytes of the file.
        program: the program.
        header: its extended header, None if it has none.
        base: byte of the file at which the program starts: not 0 in a bundle.
        bundle: the bundle with its test cases, else None.
        external: files of external data, in the order in which they are searched.
    """

    file: str
    kind: Literal["program", "bundle"]
    sha256: str
    size: int
    program: Program
    header: ExtendedHeader | None
    base: int = 0
    bundle: BundledProgram | None = field(default=None, repr=False)
    external: tuple[DataFile, ...] = ()
    _data: memoryview = field(default=memoryview(b""), repr=False, compare=False)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods in file order."""
        return tuple(plan.name for plan in self.program.execution_plan)

    def method(self, name: str) -> ExecutionPlan:
        """The method of a name; KeyError if there is none."""
        for plan in self.program.execution_plan:
            if plan.name == name:
                return plan
        raise KeyError(name)

    @property
    def absent(self) -> tuple[str, ...]:
        """Names of tensors whose external data was in no file (``load(..., incomplete=True)``)."""
        return _absent(self.program, self.external)

    @property
    def segments(self) -> tuple[memoryview, ...]:
        """Bytes of all segments."""
        return tuple(_segment(self._data, self.header, entry) for entry in self.program.segments)

    def data(self, tensor: Tensor) -> memoryview | None:
        """Bytes of a constant, or initial bytes of a mutable tensor, in its order of dimensions.

        None for a tensor that has none.
        """
        if tensor.is_external:
            return self._external_data(tensor.name)[: tensor.size_bytes]
        if not tensor.data_buffer_idx:
            return None
        program, size = self.program, tensor.size_bytes
        pieces = program.constant_segment
        if tensor.allocation_info is not None:
            info = tensor.extra_tensor_info
            pieces = program.mutable_data_segments[
                0 if info is None else info.mutable_data_segments_idx
            ]
        elif not program.has_constant_segment or pieces is None:
            return memoryview(program.constant_buffer[tensor.data_buffer_idx].storage)[:size]
        start = pieces.offsets[tensor.data_buffer_idx]
        segment = program.segments[pieces.segment_index]
        return _segment(self._data, self.header, segment)[start : start + size]

    def named_data(self, key: str) -> memoryview:
        """Bytes that a delegate asks for by name, here or in external data; KeyError if absent."""
        for entry in self.program.named_data:
            if entry.key == key:
                segment = self.program.segments[entry.segment_index]
                return _segment(self._data, self.header, segment)
        return self._external_data(key)

    def payload(self, delegate: BackendDelegate) -> memoryview:
        """What a delegate was compiled to."""
        return self.payload_span(delegate).data

    def darwinn(self, delegate: BackendDelegate) -> darwinn.DarwinnFile | None:
        """A payload for the Edge TPU, by its content; None for other payloads.

        Raises:
            FormatError: the payload starts as a DarwiNN package or an Edge TPU model but is none;
                ``offset`` counts in this file.
        """
        span = self.payload_span(delegate)
        if bytes(span.data[4:8]) not in (DARWINN_IDENTIFIER, tflite.IDENTIFIER):
            return None
        try:
            return replace(darwinn.load(bytes(span.data)), file=f"{self.file}[{delegate.id}]")
        except FormatError as error:
            offset = None if error.offset is None else error.offset + span.offset
            raise FormatError(
                f"delegate {delegate.id}: {error.field}", error.reason, offset=offset
            ).with_file(self.file) from None

    def xnnpack(self, delegate: BackendDelegate) -> xnnpack.XnnpackGraph | None:
        """The graph of an XNNPACK delegate, by its content; None for other payloads.

        Raises:
            FormatError: the payload starts as a graph but is none; ``offset`` counts in this file.
        """
        span = self.payload_span(delegate)
        if not xnnpack.is_xnnpack(span.data):
            return None
        try:
            return xnnpack.load(span.data, self.named_data, base=span.offset)
        except FormatError as error:
            raise error.within(f"delegate {delegate.id}").with_file(self.file) from None

    def payload_span(self, delegate: BackendDelegate) -> fb.Span:
        """What a delegate was compiled to, and where in the file that starts."""
        place = delegate.processed
        assert place is not None
        if place.location is DataLocation.INLINE:
            return self.program.backend_delegate_data[place.index].data or fb.Span(_EMPTY)
        segment = self.program.segments[place.index]
        start = 0 if self.header is None else self.header.segment_base
        view = _segment(self._data, self.header, segment)
        return fb.Span(view, self.base + start + segment.offset)

    def _external_data(self, key: str) -> memoryview:
        for file in self.external:
            for entry in file.root.named_data:
                if entry.key == key:
                    return file.segment(entry.segment_index)
        raise KeyError(key)


_EMPTY = memoryview(b"")

DEFAULT_DATA = "_default_external_constant.ptd"
"""What the exporter calls the file of external data that is given no name."""


def load(
    source: Source, *, external: Sequence[Source] = (), incomplete: bool = False
) -> ProgramFile:
    """Load a program or a bundled program.

    ``external`` are files of external data. Without any, those beside the program are taken: a .ptd
    of its own name, and where that does not have what a tensor needs, the one that ExecuTorch's
    exporter writes (``DEFAULT_DATA``). An ``incomplete`` program may lack external data
    (``ProgramFile.absent``): it can be shown, but not run.

    Raises:
        FormatError: with file, offset and field, for anything that is not a valid program.
        OSError: when a file cannot be read.
    """
    given = tuple(map(load_data, external))
    beside = () if given or isinstance(source, bytes) else _beside(Path(source))
    with errors_name(source):
        return _load(name_of(source), content_of(source), _Data(given, beside, incomplete))


@dataclass(frozen=True)
class _Data:
    """Where external data may be: files that are given, or beside; ``incomplete``: or nowhere."""

    given: tuple[DataFile, ...]
    beside: Sequence[Path]
    incomplete: bool


def _beside(path: Path) -> tuple[Path, ...]:
    """The files beside a program that may have external data, that of its own name first."""
    places = (path.with_suffix(".ptd"), path.with_name(DEFAULT_DATA))
    return tuple(place for place in dict.fromkeys(places) if place.is_file())


def _data_of(
    program: Program, given: tuple[DataFile, ...], beside: Sequence[Path]
) -> tuple[DataFile, ...]:
    """The files of external data of a program: those given, or as many beside it as it needs."""
    wanted = _wanted(program)
    found = list(given)
    for place in beside:
        have = {entry.key for file in found for entry in file.root.named_data}
        # A file of the program's own name may also be for its delegates, which do not say.
        if wanted - have or place.name != DEFAULT_DATA:
            found.append(load_data(place))
    return tuple(found)


def _wanted(program: Program) -> set[str]:
    """Names of the tensors of a program whose data is external."""
    return {
        value.val.name
        for plan in program.execution_plan
        for value in plan.values
        if isinstance(value.val, Tensor) and value.val.is_external
    }


def _absent(program: Program, files: Sequence[DataFile]) -> tuple[str, ...]:
    have = {entry.key for file in files for entry in file.root.named_data}
    return tuple(sorted(_wanted(program) - have))


def _remark_absent(program: Program, files: Sequence[DataFile]) -> None:
    names = _absent(program, files)
    if names:
        remark(
            f"external data of {len(names)} tensors is not at hand ({names[0]} ...): it is in a "
            f"file of the program's name that ends in .ptd, or in {DEFAULT_DATA}; --data FILE "
            "gives another"
        )


def load_data(source: Source) -> DataFile:
    """Load a file of external data (.ptd); raises as ``load`` does."""
    data = content_of(source)
    view = memoryview(data)
    with errors_name(source):
        container.check_identifier(view, signatures.EXECUTORCH_DATA, 0)
        header = container.read_data_header(view)
        flat = view[: header.program_size]
        container.check_root(flat, 0)
        root = fb.read(flat, FlatTensor)
        container.check_segments(root.segments, header, len(data))
        check.check_data(root)
    return DataFile(name_of(source), header, root, view)


def dump(program: Program, segments: Sequence[Buffer] = ()) -> bytes:
    """Write a program; ``dump(file.program, file.segments)`` loads as an equal program.

    Offsets and sizes in ``Program.segments`` are set to where the segments are written.

    Raises:
        FormatError: naming the field, when a value does not fit its type.
    """
    placed = container.place_segments(segments) if segments else program.segments
    return container.write_program(replace(program, segments=placed), segments)


def dump_data(root: FlatTensor, segments: Sequence[Buffer]) -> bytes:
    """Write a file of external data; raises as ``dump`` does."""
    placed = container.place_segments(segments)
    return container.write_data(replace(root, segments=placed), segments)


def _load(name: str, data: bytes, external: _Data) -> ProgramFile:
    sha256, size = hashlib.sha256(data).hexdigest(), len(data)
    if not signatures.has_identifier(data, signatures.EXECUTORCH_BUNDLE):
        view, budget = memoryview(data), fb.Budget(size)
        program, header, files = _load_program(view, 0, budget, external)
        return ProgramFile(name, "program", sha256, size, program, header, 0, None, files, view)
    container.check_identifier(data, signatures.EXECUTORCH_BUNDLE, 0)
    budget = fb.Budget(size)
    bundle = fb.verify(data, BundledProgram, budget=budget).read()
    if bundle.program is None:
        raise FormatError("BundledProgram.program", "the program is absent", offset=0)
    span = bundle.program
    try:
        program, header, files = _load_program(span.data, span.offset, budget, external)
        check.check_bundle(bundle, program)
    except FormatError as error:
        raise error.within("BundledProgram") from None
    return ProgramFile(
        name, "bundle", sha256, size, program, header, span.offset, bundle, files, span.data
    )


def _load_program(
    data: memoryview,
    base: int,
    budget: fb.Budget,
    places: _Data,
) -> tuple[Program, ExtendedHeader | None, tuple[DataFile, ...]]:
    container.check_identifier(data, signatures.EXECUTORCH_PROGRAM, base)
    header = container.read_program_header(data, base)
    flat = data if header is None else data[: header.program_size]
    container.check_root(flat, base)
    program = fb.verify(flat, Program, base=base, budget=budget).read()
    files = _data_of(program, places.given, places.beside)
    if places.incomplete:
        _remark_absent(program, files)
    external = {entry.key: entry for file in reversed(files) for entry in file.root.named_data}
    try:
        container.check_segments(program.segments, header, len(data))
        check.check_program(check.Stores(program, external, places.incomplete))
    except FormatError as error:
        raise error.within("Program") from None
    return program, header, files


def _segment(
    data: memoryview, header: ExtendedHeader | None, segment: schema.DataSegment
) -> memoryview:
    start = (0 if header is None else header.segment_base) + segment.offset
    return data[start : start + segment.size]
