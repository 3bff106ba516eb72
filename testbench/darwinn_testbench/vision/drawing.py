"""A picture with what was seen in it."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from darwinn_testbench.errors import InputError
from darwinn_testbench.vision.answers import KEYPOINTS, SURE, Answer, Box, Person, Region, Seen
from darwinn_testbench.vision.beside import agreement_of

_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".bmp": "BMP", ".webp": "WEBP"}
_SHARE = 0.55
"""Of the class's colour in a pixel of a region."""
_JOINTS = (
    ("left shoulder", "right shoulder"),
    ("left hip", "right hip"),
    *(
        (f"{side} {one}", f"{side} {other}")
        for side in ("left", "right")
        for one, other in (
            ("shoulder", "elbow"),
            ("elbow", "wrist"),
            ("shoulder", "hip"),
            ("hip", "knee"),
            ("knee", "ankle"),
        )
    ),
)


_STRIP = 1.6
"""Height of a strip with words, in letters."""
_DIFFERENT = (230, 0, 60)
"""Pixels to which two models give different classes."""


def annotated(image: Image.Image, seen: Seen) -> Image.Image:
    """The picture with boxes, regions, people, or a list of classes drawn into it.

    With a reference beside, one picture of both: the chip's, the reference's, of maps also the
    pixels that differ, and a line that says how far they agree.
    """
    beside = seen.beside
    if beside is None:
        return _drawn(image, seen)
    panels = {"chip": _drawn(image, seen), "reference": _drawn(image, beside)}
    one, other = seen.classes, beside.classes
    if one is not None and other is not None and one.shape == other.shape:
        panels["different"] = _marked(image.convert("RGB"), one != other)
    return _side_by_side(panels, str(agreement_of(seen, beside)))


def _side_by_side(panels: Mapping[str, Image.Image], text: str) -> Image.Image:
    """Pictures of one size under their names, and a line below all."""
    width, height = next(iter(panels.values())).size
    size = max(10, min(width, height) // 28)
    strip = round(_STRIP * size)
    font = ImageFont.load_default(size)
    lines = textwrap.wrap(text, max(len(panels) * width * 2 // size, 10))
    whole = Image.new("RGB", (len(panels) * width, height + strip * (1 + len(lines))), "white")
    pen = ImageDraw.Draw(whole)
    for place, (name, panel) in enumerate(panels.items()):
        pen.text((place * width + 4, 2), name, font=font, fill="black")
        whole.paste(panel, (place * width, strip))
    for number, line in enumerate(lines, 1):
        pen.text((4, height + strip * number + 2), line, font=font, fill="black")
    return whole


def _marked(image: Image.Image, places: NDArray[np.bool_]) -> Image.Image:
    """The picture with some pixels of a map in one colour."""
    mask = Image.fromarray(np.where(places, 255, 0).astype(np.uint8))
    mask = mask.resize(image.size, Image.Resampling.NEAREST)
    return Image.composite(Image.new("RGB", image.size, _DIFFERENT), image, mask)


def _drawn(image: Image.Image, seen: Seen) -> Image.Image:
    drawn = image.convert("RGB")
    if seen.classes is not None:
        drawn = _coloured(drawn, seen.classes)
    pen = ImageDraw.Draw(drawn)
    size = max(10, min(drawn.size) // 28)
    font = ImageFont.load_default(size)
    listed = [each for each in seen.answers if not isinstance(each, Box | Person)]
    for answer in reversed(seen.answers):
        if isinstance(answer, Box):
            colour = colour_of(answer.number + 1)
            box = _near(answer, drawn.size)
            pen.rectangle(box, outline=colour, width=max(2, size // 8))
            _write(pen, font, box[:2], _text(answer), colour)
        elif isinstance(answer, Person):
            _draw_person(pen, answer, max(2, size // 5))
    _list(pen, font, listed, size)
    return drawn


def encoded(image: Image.Image, suffix: str) -> bytes:
    """The picture as a file of that suffix.

    Raises:
        InputError: no picture is written like that.
    """
    kind = writable(suffix)
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


def writable(suffix: str) -> str:
    """How Pillow calls the form of a picture with that suffix.

    Raises:
        InputError: no picture is written like that.
    """
    if suffix.lower() not in _FORMATS:
        raise InputError(f"a picture is written as {', '.join(_FORMATS)}, not as {suffix or '?'}")
    return _FORMATS[suffix.lower()]


def colour_of(number: int) -> tuple[int, int, int]:
    """The colour of a class, as the PASCAL VOC data set has them: of class 0 black."""
    red = green = blue = 0
    for bit in range(8):
        red |= (number >> 3 * bit & 1) << 7 - bit
        green |= (number >> 3 * bit + 1 & 1) << 7 - bit
        blue |= (number >> 3 * bit + 2 & 1) << 7 - bit
    return red, green, blue


def _coloured(image: Image.Image, classes: NDArray[np.int64]) -> Image.Image:
    numbers, places = np.unique(classes, return_inverse=True)
    colours = np.array([colour_of(int(number)) for number in numbers], np.uint8)
    mask = Image.fromarray(colours[places.reshape(classes.shape)])
    mask = mask.resize(image.size, Image.Resampling.NEAREST)
    # Class 0 is the background, which stays as it is.
    there = Image.fromarray(np.where(classes, 255, 0).astype(np.uint8))
    there = there.resize(image.size, Image.Resampling.NEAREST)
    return Image.composite(Image.blend(image, mask, _SHARE), image, there)


def _draw_person(pen: ImageDraw.ImageDraw, person: Person, width: int) -> None:
    points = {each.name: (each.x, each.y) for each in person.keypoints if each.score >= SURE}
    for one, other in _JOINTS:
        if one in points and other in points:
            pen.line([points[one], points[other]], fill=(255, 220, 0), width=width)
    for name in KEYPOINTS:
        if name in points:
            x, y = points[name]
            pen.ellipse((x - width, y - width, x + width, y + width), fill=(0, 220, 255))


def _list(
    pen: ImageDraw.ImageDraw,
    font: ImageFont.ImageFont | ImageFont.FreeTypeFont,
    answers: Sequence[Answer],
    size: int,
) -> None:
    for line, answer in enumerate(answers):
        colour = colour_of(answer.number) if isinstance(answer, Region) else (0, 0, 0)
        _write(pen, font, (0, (line + 1) * (size + 6)), _text(answer), colour)


def _write(
    pen: ImageDraw.ImageDraw,
    font: ImageFont.ImageFont | ImageFont.FreeTypeFont,
    place: tuple[float, float],
    text: str,
    colour: tuple[int, int, int],
) -> None:
    """A line that ends above ``place``, on a strip of the colour."""
    left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
    x, y = max(place[0], 0), max(place[1] - (bottom - top) - 6, 0)
    pen.rectangle((x, y, x + right - left + 6, y + bottom - top + 6), fill=colour)
    light = sum(colour) > 3 * 140
    pen.text((x + 3 - left, y + 3 - top), text, font=font, fill=(0, 0, 0) if light else (255,) * 3)


def _text(answer: Answer) -> str:
    return f"{answer.label} {answer.score:.2f}"


def _near(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The corners in order, no farther outside than the picture is large: Pillow draws it all."""
    wide, high = size
    left, right = sorted(min(max(x, -wide), 2 * wide) for x in (box.left, box.right))
    top, bottom = sorted(min(max(y, -high), 2 * high) for y in (box.top, box.bottom))
    return left, top, right, bottom
