"""Load DarwiNN files: packages, Edge TPU .tflite models, bare instruction streams; write packages.

What a file is shows in its content: the identifier TFL3 or DWN1 at byte 4, or the start of an
instruction chunk. The name of the file plays no part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from darwinn_formats import flatbuffer as fb
from darwinn_formats import tflite
from darwinn_formats.brief import brief
from darwinn_formats.darwinn import schema
from darwinn_formats.darwinn.bundle import chunk_bytes
from darwinn_formats.darwinn.schema import Executable, ExecutableType, Package, figure_of
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, errors_name, name_of
from darwinn_formats.flatbuffer import flexbuffer

CUSTOM_OPERATOR = "edgetpu-custom-op"
"""Name of the operator of a .tflite model that holds packages."""


@brief
@dataclass(frozen=True, slots=True)
class CustomOperator:
    """An ``edgetpu-custom-op`` of a .tflite model: where it is, and its options.

    ``chip_versions`` has one entry for each package, or none in the older kind of file, which
    has one package. ``deprecated_bytes`` is the size of a deprecated parameter-caching
    executable, which is ignored, as the runtime ignores it.
    """

    subgraph: int
    operator: int
    version: int
    packages: tuple[Package, ...]
    execution_preference: int | None = None
    chip_versions: tuple[int, ...] = ()
    deprecated_chip_name: str | None = None
    deprecated_bytes: int = 0


@brief
@dataclass(frozen=True, slots=True)
class CompiledModel:
    """What runs one model: ``inference``, after ``caching`` was run once if there is one.

    ``caching`` is None for a STAND_ALONE executable, and for an EXECUTION_ONLY one whose
    parameters are cached by an executable of another file (see ``pair``). ``number`` and
    ``caching_number`` are their places among ``executables`` of the files that they are in.
    """

    inference: Executable
    caching: Executable | None
    file: str
    number: int = 0
    caching_number: int = 0

    @property
    def token(self) -> int:
        """Parameter-caching token of the model."""
        return self.inference.parameter_caching_token

    def figure(self) -> str:
        """What the bytes of its executables are, as SVG."""
        return figure_of([*filter(None, [self.caching]), self.inference])

    @property
    def lacks_caching(self) -> bool:
        """Whether the parameters have to come from an executable that was not found."""
        return self.inference.type is ExecutableType.EXECUTION_ONLY and self.caching is None


@brief
@dataclass(frozen=True, slots=True)
class DarwinnFile:
    """A loaded file.

    Attributes:
        file: its name, ``<bytes>`` if it was given as bytes.
        kind: what it is.
        content: its bytes.
        packages: its packages, in file order, multi-chip packages not flattened.
        models: its executables in pairs, those of one package first.
        operators: the custom operators of a .tflite model.
        shell: the .tflite model around the packages, else None.
    """

    file: str
    kind: Literal["package", "tflite", "stream"]
    content: bytes | memoryview = field(repr=False)
    packages: tuple[Package, ...] = ()
    models: tuple[CompiledModel, ...] = field(default=(), repr=False)
    operators: tuple[CustomOperator, ...] = ()
    shell: tflite.Model | None = field(default=None, repr=False)

    @property
    def sha256(self) -> str:
        """The checksum of the whole file, in hexadecimal; each access computes it again."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self.content)

    @property
    def stream(self) -> bytes | None:
        """The instructions of a bare stream, else None."""
        return bytes(self.content) if self.kind == "stream" else None

    @property
    def executables(self) -> tuple[Executable, ...]:
        """All executables in file order, those of multi-chip packages included."""
        return tuple(entry for package in flatten(self.packages) for entry in package.executables)

    def figure(self) -> str:
        """What the bytes of its executables are, as SVG."""
        return figure_of(self.executables)


def load(source: Source) -> DarwinnFile:
    """Load a package, an Edge TPU .tflite model or a bare instruction stream.

    Raises:
        FormatError: with file, offset and field, for anything else.
        OSError: when the file cannot be read.
    """
    with errors_name(source):
        return _load(name_of(source), content_of(source))


def load_operator(
    options: fb.Span, *, subgraph: int = 0, operator: int = 0, budget: fb.Budget | None = None
) -> CustomOperator:
    """Load what a custom operator has as its options; where the operator is the caller says.

    Raises:
        FormatError: the options are not valid, or a package among them.
    """
    return _Options(options, budget or fb.Budget(len(options))).operator(subgraph, operator)


def dump(package: Package) -> bytes:
    """Write a package; ``load`` of the result gives an equal package.

    Raises:
        FormatError: naming the field, when a value does not fit its type.
    """
    return fb.write(package)


def pair(files: Sequence[DarwinnFile]) -> tuple[CompiledModel, ...]:
    """Compiled models of several files, of which one may cache the parameters of another.

    An EXECUTION_ONLY executable belongs to the PARAMETER_CACHING executable of its token: of its
    own package if there is one, else of its file, else of the other files.

    Raises:
        FormatError: when there is none, or when two differ.
    """
    models = _pair([(file.file, file.packages) for file in files])
    for model in models:
        if model.lacks_caching:
            reason = f"no executable caches the parameters of token {model.token:#x}"
            offset = model.inference.file_offset
            raise FormatError("parameter_caching_token", reason, offset=offset, file=model.file)
    return models


def flatten(packages: Sequence[Package]) -> Iterator[Package]:
    """Packages and the packages of their single chips, each after what holds it."""
    for package in packages:
        yield package
        yield from flatten(package.multi_chip)


def _load(name: str, data: bytes) -> DarwinnFile:
    identifier = data[4:8]
    if identifier == tflite.IDENTIFIER:
        shell, operators = _load_tflite(data)
        packages = tuple(package for entry in operators for package in entry.packages)
        models = _pair([(name, packages)])
        return DarwinnFile(name, "tflite", data, packages, models, operators=operators, shell=shell)
    if identifier == schema.IDENTIFIER:
        packages = (fb.read(data, Package),)
        return DarwinnFile(name, "package", data, packages, _pair([(name, packages)]))
    _check_stream(data)
    return DarwinnFile(name, "stream", data)


def _check_stream(data: bytes) -> None:
    if not data:
        raise FormatError("file identifier", "the file is empty", offset=0)
    start = 0
    while start < len(data):
        size = chunk_bytes(data, start)
        if size is None and start == 0:
            reason = "neither a .tflite model, nor a DarwiNN package, nor an instruction stream"
            raise FormatError("file identifier", reason, offset=0)
        if size is None or size > len(data) - start:
            what = "is not an instruction chunk" if size is None else "ends after the data"
            raise FormatError("stream", f"chunk at {start} {what}", offset=start)
        start += size


def _load_tflite(data: bytes) -> tuple[tflite.Model, tuple[CustomOperator, ...]]:
    budget = fb.Budget(len(data))
    model = fb.verify(data, tflite.Model, budget=budget).read()
    tflite.check(model)
    codes = {
        index
        for index, code in enumerate(model.operator_codes)
        if code.operator is tflite.BuiltinOperator.CUSTOM and code.custom_code == CUSTOM_OPERATOR
    }
    operators = tuple(
        _load_operator(graph_index, index, operator, budget)
        for graph_index, graph in enumerate(model.subgraphs)
        for index, operator in enumerate(graph.operators)
        if operator.opcode_index in codes
    )
    if not operators:
        reason = (
            f"no operator of the model is an {CUSTOM_OPERATOR}: it is not compiled: "
            "darwinn compile or edgetpu_compiler compiles it, darwinn explain says what of it "
            "would run on the chip"
        )
        raise FormatError("Model.subgraphs", reason, offset=0)
    return model, operators


def _load_operator(
    graph: int, index: int, operator: tflite.Operator, budget: fb.Budget
) -> CustomOperator:
    path = f"Model.subgraphs[{graph}].operators[{index}].custom_options"
    options = operator.custom_options
    if options is None:
        raise FormatError(path, "the options are absent", offset=operator.file_offset)
    try:
        return load_operator(options, subgraph=graph, operator=index, budget=budget)
    except FormatError as error:
        raise error.within(path) from None


_KNOWN_KEYS = frozenset("1234567")


class _Options:
    """The options map of a custom operator: docs/formats-darwinn.md, "Custom operator"."""

    def __init__(self, span: fb.Span, budget: fb.Budget) -> None:
        self.offset = span.offset
        self.budget = budget
        options = flexbuffer.read(span.data, base=span.offset, budget=budget)
        if not isinstance(options, dict):
            raise FormatError("", "the options are not a map", offset=span.offset)
        unknown = sorted(options.keys() - _KNOWN_KEYS)
        if unknown:
            raise self.fault(unknown[0], "options of this key are not supported")
        self.options = options

    def fault(self, key: str, reason: str) -> FormatError:
        return FormatError(f'["{key}"]', reason, offset=self.offset)

    def operator(self, graph: int, index: int) -> CustomOperator:
        serialized = [self.text("4"), *self.texts("7")]
        if serialized[0] is None:
            raise self.fault("4", "the package is absent")
        if self.options.get("6") is None and len(serialized) > 1:
            raise self.fault("6", "several packages, but no chip versions")
        chip_versions = self.chip_versions()
        if chip_versions and len(chip_versions) != len(serialized):
            reason = f"{len(chip_versions)} chip versions for {len(serialized)} packages"
            raise self.fault("6", reason)
        chip_name, deprecated = self.text("2"), self.text("3")
        return CustomOperator(
            graph,
            index,
            self.integer("1") or 0,
            tuple(
                self.package("4" if number == 0 else f"7[{number - 1}]", span)
                for number, span in enumerate(serialized)
                if span is not None
            ),
            self.integer("5"),
            chip_versions,
            # The name is for people only: it need not be UTF-8.
            None if chip_name is None else bytes(chip_name.data).decode("utf-8", "replace"),
            0 if deprecated is None else len(deprecated),
        )

    def integer(self, key: str) -> int | None:
        value = self.options.get(key)
        if value is not None and type(value) is not int:
            raise self.fault(key, "not an integer")
        return value

    def text(self, key: str) -> fb.Span | None:
        value = self.options.get(key)
        if value is not None and not isinstance(value, fb.Span):
            raise self.fault(key, "not a string")
        return value

    def texts(self, key: str) -> list[fb.Span]:
        value = self.options.get(key, ())
        if isinstance(value, tuple):
            spans = [entry for entry in value if isinstance(entry, fb.Span)]
            if len(spans) == len(value):
                return spans
        raise self.fault(key, "not a vector of strings")

    def chip_versions(self) -> tuple[int, ...]:
        value = self.options.get("6")
        if value is None:
            return ()
        if isinstance(value, tuple) and value:
            versions = tuple(entry for entry in value if type(entry) is int)
            if len(versions) == len(value):
                return versions
        raise self.fault("6", "not a vector of integers with at least one entry")

    def package(self, key: str, span: fb.Span) -> Package:
        try:
            return fb.verify(span.data, Package, base=span.offset, budget=self.budget).read()
        except FormatError as error:
            raise error.within(f'["{key}"]') from None


def _pair(files: Sequence[tuple[str, tuple[Package, ...]]]) -> tuple[CompiledModel, ...]:
    by_file = [_numbered(name, packages) for name, packages in files]
    everywhere = [package for packages in by_file for package in packages]
    return tuple(
        _model(name, number, executable, [[package], packages, everywhere])
        for (name, _), packages in zip(files, by_file, strict=True)
        for package in packages
        for number, executable in package.executables
        if executable.type is not ExecutableType.PARAMETER_CACHING
    )


_Numbered = tuple[int, Executable]
"""An executable, and which of its file it is."""


@dataclass(frozen=True, slots=True)
class _Caching:
    """Executables of one package."""

    file: str
    executables: tuple[_Numbered, ...]


def _numbered(file: str, packages: tuple[Package, ...]) -> list[_Caching]:
    """The packages of a file, whose executables are counted through all of them."""
    numbers = count()
    return [
        _Caching(file, tuple((next(numbers), each) for each in package.executables))
        for package in flatten(packages)
    ]


def _model(
    file: str, number: int, inference: Executable, scopes: Sequence[Sequence[_Caching]]
) -> CompiledModel:
    found = _caching(inference, scopes)
    if found is None:
        return CompiledModel(inference, None, file, number)
    caching_number, caching = found
    return CompiledModel(inference, caching, file, number, caching_number)


def _caching(inference: Executable, scopes: Sequence[Sequence[_Caching]]) -> _Numbered | None:
    """The executable that caches the parameters of another, from the nearest scope that has it."""
    if inference.type is not ExecutableType.EXECUTION_ONLY:
        return None
    token = inference.parameter_caching_token
    for packages in scopes:
        candidates = [
            (package.file, (number, executable))
            for package in packages
            for number, executable in package.executables
            if executable.type is ExecutableType.PARAMETER_CACHING
            and executable.parameter_caching_token == token
        ]
        for file, (_, candidate) in candidates[1:]:
            if candidate != candidates[0][1][1]:
                reason = f"two different executables cache the parameters of token {token:#x}"
                raise FormatError(
                    "parameter_caching_token", reason, offset=candidate.file_offset, file=file
                )
        if candidates:
            return candidates[0][1]
    return None
