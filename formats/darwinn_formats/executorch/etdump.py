"""What ExecuTorch's runtime notes of a run: ETDump files (.etdp), read into times of instructions.

The schema is the public ``etdump_schema_flatcc.fbs`` of pytorch/executorch, version 1.5.1; what the
runtime calls its events was seen in dumps of that version. Values that a dump may hold besides
(``DebugEvent``) and allocations are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass

from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, errors_name

IDENTIFIER = b"ED00"
"""Of an ETDump; behind the size that stands before it."""
_PREFIX = 4
_NOWHERE = -1


@fb.open_table
@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """Something that took time: ticks from ``start_time`` to ``end_time``.

    ``instruction_id`` counts instructions of the chain, ``delegate_debug_id_int`` and ``_str`` what
    a delegate calls its own parts by; -1 and the empty text for none.
    """

    name: str = fb.string()
    chain_index: int = fb.int32()
    instruction_id: int = fb.int32(_NOWHERE)
    delegate_debug_id_int: int = fb.int32(_NOWHERE)
    delegate_debug_id_str: str = fb.string()
    delegate_debug_metadata: bytes = fb.byte_vector()
    start_time: int = fb.uint64()
    end_time: int = fb.uint64()

    @property
    def ticks(self) -> int:
        """What it took."""
        return self.end_time - self.start_time

    @property
    def part(self) -> str:
        """The name of a delegate's part; empty of all other events."""
        if self.delegate_debug_id_str:
            return self.delegate_debug_id_str
        return "" if self.delegate_debug_id_int == _NOWHERE else str(self.delegate_debug_id_int)


@fb.open_table
@dataclass(frozen=True, slots=True)
class Event:
    """An event: one that took time, or another one."""

    profile_event: ProfileEvent | None = fb.table(ProfileEvent, slot=0)


@fb.open_table
@dataclass(frozen=True, slots=True)
class RunData:
    """A block of events: what loading a method did, and what a call of it did."""

    name: str = fb.string(slot=0)
    bundled_input_index: int = fb.int32(_NOWHERE, slot=1)
    events: tuple[Event, ...] = fb.table_vector(Event, slot=3)

    @property
    def profiled(self) -> tuple[ProfileEvent, ...]:
        """The events that took time, in the order of their ends."""
        return tuple(each.profile_event for each in self.events if each.profile_event is not None)


@fb.file_identifier(IDENTIFIER)
@dataclass(frozen=True, slots=True)
class Dump:
    """The root table."""

    version: int = fb.uint32()
    run_data: tuple[RunData, ...] = fb.table_vector(RunData)


def is_dump(data: bytes) -> bool:
    """Whether the content starts as an ETDump does, with or without its size before it."""
    return IDENTIFIER in (data[4:8], data[8:12])


def load_dump(source: Source) -> Dump:
    """Load an ETDump.

    Raises:
        FormatError: it is not valid.
        OSError: the file cannot be read.
    """
    with errors_name(source):
        data = memoryview(content_of(source))
        prefix = _PREFIX if bytes(data[8:12]) == IDENTIFIER else 0
        if not is_dump(bytes(data[:12])):
            raise FormatError("identifier", f"is not {IDENTIFIER.decode()}: no ETDump", offset=4)
        dump = fb.verify(data[prefix:], Dump, base=prefix, prefix=prefix).read()
        for run in dump.run_data:
            for event in run.profiled:
                if event.end_time < event.start_time:
                    reason = f"is {event.end_time}, before the start at {event.start_time}"
                    raise FormatError("end_time", reason)
        return dump
