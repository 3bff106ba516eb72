"""Buffers, which an allocator makes, and views of them as tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from darwinn_formats.errors import ExecutionError

from darwinn_reference.iree.hal.objects import (
    HAL,
    HAL_INLINE,
    WHOLE_BUFFER,
    BufferView,
    HalBuffer,
    Host,
    buffer_of,
    source_of,
    text_of,
)
from darwinn_reference.iree.imports import expect
from darwinn_reference.iree.memory import Buffer, allocate, device_copy

_QUEUED = "device affinity wait signal pool types usage size"


@HAL.add("allocator.allocate", "0riiI_r", "allocator types usage size")
@HAL.add("allocator.allocate", "0rIiiI_r", "allocator affinity types usage size")
@HAL.add("device.queue.alloca", "0rIrriiiI_r", _QUEUED)
@HAL.add("device.queue.alloca", "0rIrrIiiII_r", f"{_QUEUED} flags")
def allocated(size: int) -> HalBuffer:
    """A buffer of zeros."""
    return HalBuffer(Buffer(allocate(size)))


@HAL.add(
    "allocator.allocate.initialized", "0riirII_r", "allocator types usage source offset length"
)
def _initialized(source: Any, offset: int, length: int) -> HalBuffer:
    buffer = allocated(length)
    buffer.contents.memory[:] = source_of(source).part(offset, length)
    return buffer


@HAL.add(
    "allocator.import",
    "0riIiirII_r",
    "allocator attempt affinity types usage source offset length",
)
@HAL.add(
    "allocator.map.byte_buffer",
    "0riiirII_r",
    "allocator attempt types usage source offset length",
)
def imported(source: Any, offset: int, length: int) -> HalBuffer:
    """Memory of the program as a buffer. The device may write to constants, as in the original."""
    found = opened(source, offset, length)
    memory = found.contents.memory
    return HalBuffer(Buffer(device_copy(memory))) if memory.readonly else found


@HAL.add("ex.file.from_memory", "0rIirIIi_r", "device affinity access source offset length flags")
def opened(source: Any, offset: int, length: int) -> HalBuffer:
    """Memory of the program as a file."""
    data = source_of(source)
    length = len(data) - offset if length == WHOLE_BUFFER else length
    return HalBuffer(Buffer(data.part(offset, length)))


@HAL.add("buffer.assert", "0rrrIii_v", "buffer message allocator minimum types usage")
def _assert_buffer(buffer: Any, message: Any, minimum: int) -> None:
    found = len(buffer_of(buffer).contents)
    if found < minimum:
        raise ExecutionError(f"{text_of(message)}: {found} bytes, {minimum} are needed")


@HAL.add("buffer.subspan", "0rII_r")
@HAL_INLINE.add("buffer.subspan", "0rII_r")
def _part(buffer: Any, offset: int, length: int) -> HalBuffer:
    return HalBuffer(Buffer(buffer_of(buffer).range(offset, length)))


_WORD = 4
"""Bytes of a number of the virtual machine that a buffer takes or gives, at most."""


@HAL.add("buffer.load", "0rIi_i")
def _load(buffer: Any, offset: int, length: int) -> int:
    """A number of 1, 2 or 4 bytes; smaller ones come without their sign."""
    data = buffer_of(buffer).contents.part(offset, _word(length))
    return int.from_bytes(data, "little", signed=length == _WORD)


@HAL.add("buffer.store", "0irIi_v")
def _store(value: int, buffer: Any, offset: int, length: int) -> None:
    data = (value % 2**32).to_bytes(_WORD, "little")[: _word(length)]
    buffer_of(buffer).contents.part(offset, length)[:] = data


def _word(length: int) -> int:
    if length not in (1, 2, _WORD):
        raise ExecutionError(f"a number of {length} bytes")
    return length


@HAL_INLINE.add("buffer.allocate", "0iI_rr", "alignment size")
def _allocated_inline(host: Host, size: int) -> tuple[HalBuffer, Buffer]:
    buffer = allocated(size)
    host.allocated(buffer.contents)
    return buffer, buffer.contents


@HAL_INLINE.add("buffer.allocate.initialized", "0irII_rr", "alignment source offset length")
def _initialized_inline(
    host: Host, source: Any, offset: int, length: int
) -> tuple[HalBuffer, Buffer]:
    buffer, storage = _allocated_inline(host, length)
    storage.memory[:] = source_of(source).part(offset, length)
    return buffer, storage


@HAL_INLINE.add("buffer.wrap", "0rII_r")
def _wrapped(source: Any, offset: int, length: int) -> HalBuffer:
    return HalBuffer(Buffer(source_of(source).part(offset, length)))


@HAL.add("buffer_view.create", "0rIIiiCID_r")
@HAL_INLINE.add("buffer_view.create", "0rIIiiCID_r")
def _create_view(
    buffer: Any,
    offset: int,
    length: int,
    element_type: int,
    encoding: int,
    dimensions: Sequence[tuple[int]],
) -> BufferView:
    contents = _part(buffer, offset, length)
    shape = tuple(size for (size,) in dimensions)
    if min(shape, default=0) < 0:
        raise ExecutionError(f"a view of shape {shape}")
    return BufferView(contents, shape, element_type, encoding)


@HAL.add("buffer_view.assert", "0rriiCID_v")
@HAL_INLINE.add("buffer_view.assert", "0rriiCID_v")
def _assert_view(
    view: Any, message: Any, element_type: int, encoding: int, dimensions: Sequence[tuple[int]]
) -> None:
    found = _view(view)
    shape = tuple(size for (size,) in dimensions)
    if found.element_type != element_type:
        raise ExecutionError(
            f"{text_of(message)}: element type {found.element_type:#x}, not {element_type:#x}"
        )
    if found.shape != shape:
        raise ExecutionError(f"{text_of(message)}: shape {found.shape}, not {shape}")
    if found.encoding != encoding:
        raise ExecutionError(f"{text_of(message)}: encoding {found.encoding}, not {encoding}")


@HAL.add("buffer_view.dim", "0ri_I")
@HAL_INLINE.add("buffer_view.dim", "0ri_I")
def _dimension(view: Any, index: int) -> int:
    shape = _view(view).shape
    if not 0 <= index < len(shape):
        raise ExecutionError(f"dimension {index} of {len(shape)}")
    return shape[index]


def _view(value: object) -> BufferView:
    return expect(value, BufferView, "the view")


_BOTH: Mapping[str, Callable[..., Any]] = {
    "buffer.length 0r_I": lambda buffer: len(buffer_of(buffer).contents),
    "buffer_view.buffer 0r_r": lambda view: _view(view).buffer,
    "buffer_view.element_type 0r_i": lambda view: _view(view).element_type,
    "buffer_view.encoding_type 0r_i": lambda view: _view(view).encoding,
    "buffer_view.rank 0r_i": lambda view: len(_view(view).shape),
    # The original prints the tensors to standard error; here taps show them.
    "buffer_view.trace 0rCrD_v key operands": lambda: None,
}
HAL.add_all(
    {
        **_BOTH,
        # Memory goes when nothing refers to it, so that no owner is the last one.
        "buffer.allocation.preserve 0r_v buffer": lambda: None,
        "buffer.allocation.discard 0r_i buffer": lambda: 0,
        "buffer.allocation.is_terminal 0r_i buffer": lambda: 0,
        "device.queue.dealloca 0rIrrr_v device affinity wait signal buffer": lambda: None,
        "device.queue.dealloca 0rIrrrI_v device affinity wait signal buffer flags": lambda: None,
    }
)
HAL_INLINE.add_all({**_BOTH, "buffer.storage 0r_r": lambda buffer: buffer_of(buffer).contents})
