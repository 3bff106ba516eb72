"""Which input or output of one program is which of another, and in which order of dimensions.

By ``--map`` where it says so; else by equal names; else by shape, where only one way of pairing
fits; else, between two programs, by order. The order of a device's layers is the compiler's choice
and says nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Port

from darwinn_testbench.errors import InputError

Shape = tuple[int | None, ...]

_IMAGE_RANKS = (3, 4)
"""Dimensions of an image without and with its batch."""
_MATRIX_RANK = 2
"""Dimensions of an image of one row, where another program has all four."""

_MANY = 8
"""Ports of one kind beyond which only names, maps and order are looked at."""


class Layout(Enum):
    """How dimensions of the left side are brought to those of the right side.

    The value is the transposition of (batch, y, x, z) or (batch, z, y, x).
    """

    SAME = (0, 1, 2, 3)
    TO_NCHW = (0, 3, 1, 2)
    TO_NHWC = (0, 2, 3, 1)

    @property
    def back(self) -> Layout:
        """From the right side to the left side."""
        return {Layout.TO_NCHW: Layout.TO_NHWC, Layout.TO_NHWC: Layout.TO_NCHW}.get(self, self)

    def __str__(self) -> str:
        return _LAYOUT_TEXTS[self]


_LAYOUT_TEXTS = {
    Layout.SAME: "",
    Layout.TO_NCHW: "NHWC to NCHW",
    Layout.TO_NHWC: "NCHW to NHWC",
}


@dataclass(frozen=True)
class Pair:
    """A port of the left side and the one of the right side that it is.

    ``position`` is that of the right port among its kind; ``shape`` is what the right side is to
    see, if that was said.
    """

    left: Port
    right: Port
    position: int
    layout: Layout = Layout.SAME
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Said:
    """What a map says of a left port: the right one, and the layout or shape of the right one."""

    right: str
    channels_last: bool | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Maps:
    """What the maps say of inputs and of outputs, by names of the left side."""

    inputs: Mapping[str, Said]
    outputs: Mapping[str, Said]


_SUFFIX = re.compile(r"(?P<right>.*):(?:(?P<layout>nchw|nhwc)|(?P<shape>\d+(?:x\d+)*))", re.DOTALL)
_CHANNELS_LAST = {"nchw": False, "nhwc": True, None: None}


def parse_maps(texts: Sequence[str], inputs: Sequence[Port], outputs: Sequence[Port]) -> Maps:
    """Read maps ``LEFT=RIGHT``, ``LEFT=RIGHT:nchw`` and ``LEFT=RIGHT:1x2x3``.

    ``inputs`` and ``outputs`` are those of the left side; RIGHT is a name or an index.

    Raises:
        InputError: a map that cannot be read, or whose left side is neither input nor output.
    """
    found: dict[str, dict[str, Said]] = {"inputs": {}, "outputs": {}}
    names = {"inputs": {p.name for p in inputs}, "outputs": {p.name for p in outputs}}
    for text in texts:
        parts = text.split("=")
        left = next(
            (
                name
                for count in range(len(parts) - 1, 0, -1)
                if any((name := "=".join(parts[:count])) in known for known in names.values())
            ),
            None,
        )
        if left is None:
            raise InputError(
                f"--map {text}: expected NAME=OTHER, with NAME one of the inputs "
                f"{_names(inputs)} or of the outputs {_names(outputs)}"
            )
        said = _said(text[len(left) + 1 :])
        for kind, known in names.items():
            if left in known:
                found[kind][left] = said
    return Maps(found["inputs"], found["outputs"])


def _said(text: str) -> Said:
    match = _SUFFIX.fullmatch(text)
    if match is None:
        return Said(text)
    shape = match["shape"] and tuple(map(int, match["shape"].split("x")))
    return Said(match["right"], _CHANNELS_LAST[match["layout"]], shape or None)


def _layout_to(channels_last: bool, usual: Layout) -> Layout:
    """To a right side that stores images so; the left side is NHWC unless NHWC is what it is
    usually brought to."""
    if usual is Layout.TO_NHWC:
        return usual if channels_last else Layout.SAME
    return Layout.SAME if channels_last else Layout.TO_NCHW


def pair(
    left: Sequence[Port],
    right: Sequence[Port],
    said: Mapping[str, Said],
    *,
    kind: str,
    files: tuple[str, str],
    device: bool,
    all_right: bool,
    usual: Layout = Layout.SAME,
) -> tuple[Pair, ...]:
    """Pair every port of the left side with one of the right side.

    Args:
        left, right: the ports, of one kind.
        said: what maps say of them.
        kind: ``input`` or ``output``.
        files: names of both sides.
        device: the left side is a compiled model, whose order of layers says nothing.
        all_right: every right port has to be paired too.
        usual: the layout of an image that fits in several; with a device it has to be said.

    Raises:
        InputError: there is no such port, nothing fits, or several ways do; lists both sides.
    """
    return _Pairing(left, right, said, kind, files, device, all_right, usual).run()


@dataclass(frozen=True)
class _Pairing:
    left: Sequence[Port]
    right: Sequence[Port]
    said: Mapping[str, Said]
    kind: str
    files: tuple[str, str]
    device: bool
    all_right: bool
    usual: Layout

    def run(self) -> tuple[Pair, ...]:
        pairs = self._declared()
        pairs |= self._named(pairs)
        pairs |= self._rest(
            [k for k in range(len(self.left)) if k not in pairs],
            [k for k in range(len(self.right)) if k not in {p.position for p in pairs.values()}],
        )
        return tuple(pairs[k] for k in range(len(self.left)))

    def _declared(self) -> dict[int, Pair]:
        pairs: dict[int, Pair] = {}
        for index, port in enumerate(self.left):
            if port.name not in self.said:
                continue
            said = self.said[port.name]
            position = self._position(said.right)
            if position in {each.position for each in pairs.values()}:
                raise InputError(f"--map {port.name}={said.right}: {said.right} is already paired")
            other = self.right[position]
            if said.channels_last is not None:
                layout = _layout_to(said.channels_last, self.usual)
            else:
                layout = Layout.SAME if said.shape else self._layout(port, other) or Layout.SAME
            pairs[index] = Pair(port, other, position, layout, said.shape)
        return pairs

    def _position(self, text: str) -> int:
        names = [port.name for port in self.right]
        if text in names:
            return names.index(text)
        if text.isdigit() and int(text) < len(names):
            return int(text)
        known = ", ".join(f"{k} {name}" for k, name in enumerate(names)) or "none"
        raise InputError(f"--map: {self.files[1]} has no {self.kind} {text}, only {known}")

    def _named(self, taken: Mapping[int, Pair]) -> dict[int, Pair]:
        positions = {port.name: k for k, port in enumerate(self.right)}
        used = {each.position for each in taken.values()}
        pairs: dict[int, Pair] = {}
        for index, port in enumerate(self.left):
            position = positions.get(port.name)
            if index in taken or position is None or position in used:
                continue
            layout = self._layout(port, self.right[position])
            if layout is not None:
                pairs[index] = Pair(port, self.right[position], position, layout)
        return pairs

    def _rest(self, left: Sequence[int], right: Sequence[int]) -> dict[int, Pair]:
        if not left and (not right or not self.all_right):
            return {}
        if len(left) > len(right) or (self.all_right and len(left) != len(right)):
            raise self._failure("their numbers differ", None)
        own, others = [self.left[k] for k in left], [self.right[k] for k in right]
        first = (own[0], others[0]) if own else None
        if not self.device and len(left) == len(right):
            together = zip(left, right, strict=True)
            fits = [self._layout(self.left[a], self.right[b]) is not None for a, b in together]
            chosen = [list(right)] if all(fits) else []
        elif len(left) > _MANY or len(right) > _MANY:
            raise self._failure("there are too many to pair by shape", first)
        else:
            chosen = [way for _, way in zip(range(2), self._ways(left, right), strict=False)]
        if not chosen:
            alike = ((a, b) for a in own for b in others if _same_size(a.shape, b.shape))
            raise self._failure("no pairing fits the shapes", next(alike, None))
        if len(chosen) > 1:
            raise self._failure("several pairings fit the shapes", first)
        return {a: self._pair(a, b) for a, b in zip(left, chosen[0], strict=True)}

    def _pair(self, index: int, position: int) -> Pair:
        port, other = self.left[index], self.right[position]
        layout = self._layout(port, other)
        assert layout is not None
        return Pair(port, other, position, layout)

    def _ways(self, left: Sequence[int], right: Sequence[int]) -> Iterator[list[int]]:
        """Every way to give each left port a right one that fits."""
        if not left:
            yield []
            return
        for position in right:
            if self._layouts(self.left[left[0]], self.right[position]):
                rest = [each for each in right if each != position]
                yield from ([position, *way] for way in self._ways(left[1:], rest))

    def _layouts(self, left: Port, right: Port) -> list[Layout]:
        return layouts(left.shape, right.shape, device=self.device)

    def _layout(self, left: Port, right: Port) -> Layout | None:
        """The layout that fits; None if there is none."""
        found = self._layouts(left, right)
        if self.device and len(found) > 1 and left.name not in self.said:
            raise InputError(
                f"{self.kind} {left} may be {right} as it is or as NCHW: say which, as in "
                f"--map {left.name}={right.name}:nchw or :nhwc"
            )
        # Of three dimensions nobody says that they are an image: a sequence has two and its batch.
        if self.usual in found and left.shape is not None and len(left.shape) == max(_IMAGE_RANKS):
            return self.usual
        return found[0] if found else None

    def _failure(self, reason: str, example: tuple[Port, Port] | None) -> InputError:
        """The error; ``example`` is a pair that a map could name, if a map can help."""
        hint = ""
        if example is not None:
            left, right = example
            hint = f"; say which is which, as in --map {left.name}={right.name}"
        return InputError(
            f"{self.kind}s cannot be paired: {reason}: {self.files[0]} has "
            f"{_list(self.left)}; {self.files[1]} has {_list(self.right)}{hint}"
        )


def _list(ports: Sequence[Port]) -> str:
    return ", ".join(map(str, ports)) or "none"


def _names(ports: Sequence[Port]) -> str:
    return ", ".join(port.name for port in ports) or "(none)"


def layouts(left: Shape | None, right: Shape | None, *, device: bool) -> list[Layout]:
    """The layouts in which a left shape can be a right one; dimensions of 1 may be missing.

    Those in which the first ones are missing at most come first. A device's tensors are NHWC.
    """
    if left is None or right is None:
        return [Layout.SAME]
    found = {Layout.SAME: left} if _equal(left, right) else {}
    if _are_images(left, right):
        full = _padded(left)
        for layout in (Layout.TO_NCHW, Layout.TO_NHWC)[: 1 if device else 2]:
            moved = tuple(full[axis] for axis in layout.value)
            if _equal(moved, right) and _moves(full, layout):
                found[layout] = moved
    return sorted(found, key=lambda layout: _padded(found[layout]) != _padded(right))


def _padded(shape: Shape) -> Shape:
    """A shape with the dimensions of 1 that an image has before it."""
    return (1,) * (max(_IMAGE_RANKS) - len(shape)) + shape


def _are_images(left: Shape, right: Shape) -> bool:
    """Whether both sides may be images, one of them perhaps as a matrix of its pixels."""
    ranks = {len(left), len(right)}
    return ranks <= {*_IMAGE_RANKS} or ranks == {_MATRIX_RANK, max(_IMAGE_RANKS)}


def _moves(full: Shape, layout: Layout) -> bool:
    """Whether a transposition moves data: of a single pixel or channel it does not."""
    channels = 1 if layout is Layout.TO_NHWC else 3
    pixels = [size for axis, size in enumerate(full) if axis not in (0, channels)]
    return full[channels] != 1 and any(size != 1 for size in pixels)


def _equal(left: Shape, right: Shape) -> bool:
    if None in left or None in right:
        return len(left) == len(right) and all(
            a is None or b is None or a == b for a, b in zip(left, right, strict=True)
        )
    return [size for size in left if size != 1] == [size for size in right if size != 1]


def _same_size(left: Shape | None, right: Shape | None) -> bool:
    """Whether the elements of one shape can be arranged in the other."""
    if left is None or right is None:
        return True
    own, other = ([size for size in shape if size is not None] for shape in (left, right))
    is_open = len(own) < len(left) or len(other) < len(right)
    return is_open or math.prod(own) == math.prod(other)


def arrange(values: AnyArray, layout: Layout, shape: Shape | None, *, where: str) -> AnyArray:
    """``values`` with its dimensions in the other layout and in ``shape``, as far as that is known.

    Raises:
        InputError: it does not fit the shape.
    """
    if layout is not Layout.SAME:
        full = values.reshape((1,) * (4 - values.ndim) + values.shape)
        moved = np.transpose(full, layout.value)
        values = (
            moved if values.ndim == _MATRIX_RANK else moved.reshape(moved.shape[4 - values.ndim :])
        )
    if shape is None or values.shape == shape:
        return values
    known = [size for size in shape if size is not None]
    if len(known) == len(shape) and int(np.prod(known, dtype=np.int64)) == values.size:
        return values.reshape(known)
    if len(known) < len(shape) and _equal(values.shape, shape):
        return values
    sizes = "x".join("?" if size is None else str(size) for size in shape) or "scalar"
    raise InputError(
        f"{where}: {'x'.join(map(str, values.shape)) or 'scalar'} does not fit {sizes}"
    )
