"""What ExecuTorch's exporter notes of a program: ETRecord files, read into names of instructions.

A record is a zip archive of JSON texts and of tensors; the tensors are passed over. What is in it
is that of ``devtools/etrecord`` of pytorch/executorch, version 1.5.1: by instruction the handles of
the nodes that it came from (``debug_handle_map``), of delegates those of their parts
(``delegate_map``), and the graph with its nodes' places in the sources.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, errors_name
from darwinn_formats.limits import refuse_size

IDENTIFIER = "ETRECORD_V0"
"""Name of a member that every record has."""

_HANDLES, _DELEGATES = "debug_handle_map", "delegate_map"
_GRAPH = re.compile(r"edge_dialect_exported_program/(?P<method>.+)")
_NO_GRAPH = ("_state_dict", "_constants", "_example_inputs")
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>\S+)')
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages)[/\\]")
_DAMAGED = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)


@dataclass(frozen=True, slots=True)
class Origin:
    """What an instruction came from: the operation, the module, and the line of source."""

    operation: str
    module: str
    location: str

    def __str__(self) -> str:
        """The place in one line."""
        return " ".join(filter(None, (self.location, self.module and f"({self.module})")))


@dataclass(frozen=True)
class Record:
    """Handles of nodes by method and instruction, of parts of delegates by their names besides, and
    what nodes came from by method and handle.
    """

    instructions: Mapping[str, Mapping[int, tuple[int, ...]]]
    parts: Mapping[str, Mapping[int, Mapping[str, tuple[int, ...]]]]
    origins: Mapping[str, Mapping[int, Origin]]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(self.instructions)

    def origins_of(self, method: str, instruction: int, part: str = "") -> tuple[Origin, ...]:
        """What an instruction of a method, or a part of the delegate that it calls, came from."""
        if part:
            parts = self.parts.get(method, {}).get(instruction, {})
            handles = parts.get(part, ())
        else:
            handles = self.instructions.get(method, {}).get(instruction, ())
        known = self.origins.get(method, {})
        return tuple(known[handle] for handle in handles if handle in known)


def is_record(data: bytes) -> bool:
    """Whether the content is that of a record."""
    if data[:2] != b"PK":
        return False
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return IDENTIFIER in archive.namelist()
    except _DAMAGED:
        return False


def load_record(source: Source) -> Record:
    """Load a record.

    Raises:
        FormatError: it is not valid.
        OSError: the file cannot be read.
    """
    with errors_name(source):
        try:
            with zipfile.ZipFile(BytesIO(content_of(source))) as archive:
                return _read(archive)
        except _DAMAGED as error:
            raise FormatError("archive", str(error) or "is damaged") from None


def _read(archive: zipfile.ZipFile) -> Record:
    names = archive.namelist()
    if IDENTIFIER not in names:
        raise FormatError("archive", f"has no member {IDENTIFIER}: no ETRecord")
    handles = _table(archive, _HANDLES) if _HANDLES in names else {}
    delegates = _table(archive, _DELEGATES) if _DELEGATES in names else {}
    origins: dict[str, Mapping[int, Origin]] = {}
    for name in names:
        found = _GRAPH.fullmatch(name)
        if found is not None and not name.endswith(_NO_GRAPH):
            origins[found["method"]] = _origins(_table(archive, name), name)
    return Record(
        {method: _by_instruction(each, _HANDLES) for method, each in handles.items()},
        {method: _parts(each) for method, each in delegates.items()},
        origins,
    )


def _table(archive: zipfile.ZipFile, name: str) -> Mapping[str, Any]:
    """A JSON object of the archive."""
    refuse_size(archive.getinfo(name).file_size, name)
    try:
        value = json.loads(archive.read(name))
    except (ValueError, RecursionError) as error:
        raise FormatError(name, f"is no JSON: {error}") from None
    return _mapping(value, name)


def _mapping(value: Any, field: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(field, f"has a {type(value).__name__} where a table belongs")
    return value


def _by_instruction(value: Any, field: str) -> dict[int, tuple[int, ...]]:
    return {
        _number(key, field): _numbers(each, field) for key, each in _mapping(value, field).items()
    }


def _parts(value: Any) -> dict[int, Mapping[str, tuple[int, ...]]]:
    found: dict[int, Mapping[str, tuple[int, ...]]] = {}
    for key, each in _mapping(value, _DELEGATES).items():
        parts = _mapping(each, _DELEGATES).get("delegate_map")
        table = _mapping({} if parts is None else parts, _DELEGATES)
        found[_number(key, _DELEGATES)] = {
            part: _numbers(handles, _DELEGATES) for part, handles in table.items()
        }
    return found


def _number(value: Any, field: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise FormatError(field, f"has {value!r} where a number belongs") from None


def _numbers(value: Any, field: str) -> tuple[int, ...]:
    return tuple(_number(each, field) for each in (value if isinstance(value, list) else [value]))


def _origins(graph: Mapping[str, Any], field: str) -> dict[int, Origin]:
    """What nodes came from, by handle; of several of one the last."""
    nodes: Any = graph
    for key in ("graph_module", "graph", "nodes"):
        nodes = _mapping(nodes, field).get(key)
    if not isinstance(nodes, list):
        raise FormatError(field, "has no list of nodes")
    found: dict[int, Origin] = {}
    for node in nodes:
        table = _mapping(node, field)
        metadata = _mapping(table.get("metadata", {}), field)
        if "debug_handle" in metadata:
            handle = _number(metadata["debug_handle"], field)
            found[handle] = Origin(
                str(table.get("target", "")).rpartition("ops.")[2],
                _module_of(str(metadata.get("nn_module_stack", ""))),
                _location_of(str(metadata.get("stack_trace", ""))),
            )
    return found


def _module_of(stack: str) -> str:
    """The innermost module with its class, ``layers.0 Linear``, of ``key,path,class;...``."""
    parts: Sequence[str] = stack.split(";")[-1].split(",") if stack else ()
    if len(parts) < 3 or not parts[1]:
        return ""
    return f"{parts[1]} {parts[-1].rpartition('.')[2]}"


def _location_of(trace: str) -> str:
    """The innermost line that is not a library's."""
    frames = list(_FRAME.finditer(trace))
    own = [each for each in frames if not _LIBRARY.search(each["file"])] or frames
    return f"{own[-1]['file']}:{own[-1]['line']} {own[-1]['function']}" if own else ""
