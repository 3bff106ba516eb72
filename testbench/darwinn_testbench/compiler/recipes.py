"""Networks by chance as lists of steps, so that a network that shows a fault can be made smaller.

A seed determines a recipe, and a recipe a network. Each step draws what it needs by itself, from
the seed and its own number: a step that is left out changes nothing in what the others draw, but
for the shapes that they see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from darwinn_testbench.compiler.random_networks import OPERATORS, Operator, RandomNetwork

LEAST_OPERATORS, MOST_OPERATORS = 4, 18
"""Operators of a network, if nobody says how many."""

Shape = tuple[int, int, int]
"""Height, width and channels."""

_SIDES = (1, 2, 3, 5, 8, 13, 16, 24, 31, 32, 33)
_CHANNELS = (1, 2, 3, 4, 7, 16, 32)
_INPUTS = (1, 1, 1, 1, 2, 2, 3)
_RECENT = 5
"""Values that a step reads mostly: the last ones."""
_ANY = 8
"""One step in so many reads any value."""
_VECTORS = 3
"""One step in so many reads any of the last values, the others an image, if there is one."""
_SHOWN = 8
"""One result in so many is an output though others may read it."""
_MOST_ELEMENTS = 1 << 16
"""Elements of a value; a step that would make a larger one is left out."""
_MOST_TRIES = 100
"""Times that inputs are drawn, until an operator fits them."""


@dataclass(frozen=True)
class Step:
    """An operator of a network.

    ``number`` decides what it draws; ``source`` is the number of the step that it reads, or -1 - k
    for input k. What further operands it takes, it draws.
    """

    number: int
    operator: str
    source: int


@dataclass(frozen=True)
class Recipe:
    """What a network is made of; ``signed`` is int8 with a scale for each channel, else uint8."""

    seed: int
    signed: bool
    inputs: tuple[Shape, ...]
    steps: tuple[Step, ...]

    def without(self, numbers: frozenset[int]) -> Recipe:
        """The same without some steps: who read one of them reads what it has read."""
        source = {step.number: step.source for step in self.steps}

        def origin(number: int) -> int:
            while number in numbers:
                number = source[number]
            return number

        steps = (step for step in self.steps if step.number not in numbers)
        return replace(self, steps=tuple(replace(s, source=origin(s.source)) for s in steps))

    def only(self, numbers: Sequence[int]) -> Recipe:
        """The same with these steps alone.

        Raises:
            KeyError: there is no step of a number.
        """
        known = {step.number for step in self.steps}
        for number in numbers:
            if number not in known:
                raise KeyError(number)
        return self.without(frozenset(known.difference(numbers)))


def recipe(seed: int, size: int | None = None, names: Sequence[str] = ()) -> Recipe:
    """The recipe of a seed.

    Args:
        seed: decides everything.
        size: number of operators; without it the seed decides.
        names: operators to choose from; without them all of ``OPERATORS``.

    Raises:
        KeyError: there is no operator of a name.
    """
    random = np.random.default_rng((seed, 1))
    count = int(random.integers(LEAST_OPERATORS, MOST_OPERATORS + 1)) if size is None else size
    chosen = {name: OPERATORS[name] for name in names or sorted(OPERATORS)}
    signed = bool(random.integers(2))
    for _ in range(_MOST_TRIES):
        made = _drawn(random, Recipe(seed, signed, _inputs(random), ()), count, chosen)
        if made.steps:
            break
    return made


def _drawn(
    random: np.random.Generator, drawn: Recipe, count: int, chosen: Mapping[str, Operator]
) -> Recipe:
    """A recipe of at most ``count`` steps for these inputs; without any if none fits them."""
    maker = _Maker(drawn)
    chain = float(random.random())
    steps: list[Step] = []
    # A step that fits nowhere is not made, so there may be fewer.
    for number in range(2 * count):
        if len(steps) == count:
            break
        source = _source(random, maker, chain)
        value = maker.values[source]
        fitting = [name for name, (fits, _) in chosen.items() if fits(value)]
        if not fitting:
            continue
        step = Step(number, str(random.choice(fitting)), source)
        if maker.take(step):
            steps.append(step)
    return replace(drawn, steps=tuple(steps))


def network_of(made: Recipe) -> RandomNetwork | None:
    """The network of a recipe; None if a step does not fit what it reads, or there is none."""
    maker = _Maker(made)
    if not made.steps or not all(map(maker.take, made.steps)):
        return None
    return maker.network


def reduced(
    made: Recipe,
    fails: Callable[[Recipe], bool],
    *,
    most_tries: int = 120,
) -> Recipe:
    """The smallest recipe found that still ``fails``: fewer steps first, then smaller inputs.

    ``fails`` is asked ``most_tries`` times at the most, and only about recipes that are networks.
    """
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(made):
            if tries == most_tries:
                return made
            if network_of(candidate) is None:
                continue
            tries += 1
            if fails(candidate):
                made, smaller = candidate, True
                break
    return made


def _smaller(made: Recipe) -> Iterator[Recipe]:
    """Recipes that are smaller, the smallest first."""
    numbers = [step.number for step in made.steps]
    size = len(numbers) // 2
    while size:
        for first in range(len(numbers) - size, -1, -size):
            yield made.without(frozenset(numbers[first : first + size]))
        size //= 2
    for k, shape in enumerate(made.inputs):
        for axis, extent in enumerate(shape):
            for less in dict.fromkeys((1, extent // 2, extent - 1)):
                if 0 < less < extent:
                    extents = [*shape[:axis], less, *shape[axis + 1 :]]
                    changed = extents[0], extents[1], extents[2]
                    inputs = (*made.inputs[:k], changed, *made.inputs[k + 1 :])
                    yield replace(made, inputs=inputs)


def _inputs(random: np.random.Generator) -> tuple[Shape, ...]:
    """Shapes of inputs: a further one is as the first, or like it but for channels, or any."""

    def drawn() -> Shape:
        return (
            int(random.choice(_SIDES)),
            int(random.choice(_SIDES)),
            int(random.choice(_CHANNELS)),
        )

    first = drawn()
    found = [first]
    for _ in range(int(random.choice(_INPUTS)) - 1):
        height, width, channels = drawn()
        found.append((first, (*first[:2], channels), (height, width, channels))[random.integers(3)])
    return tuple(found)


def _source(random: np.random.Generator, maker: _Maker, chain: float) -> int:
    """What a step reads: what nothing reads yet, or one of the last values, or any."""
    if random.random() < chain:
        unread = [
            number for number in maker.made if not maker.network.is_read(maker.values[number])
        ]
        return int((unread or maker.made)[-1])
    if random.integers(_ANY) == 0:
        return int(random.choice(maker.made))
    recent = maker.made[-_RECENT:]
    images = [number for number in recent if maker.values[number].is_image]
    return int(random.choice(images if images and random.integers(_VECTORS) else recent))


class _Maker:
    """Makes a network step by step; ``values`` are what there is, by the number of the step."""

    def __init__(self, made: Recipe) -> None:
        self._seed = made.seed
        first, *others = ((1, *shape) for shape in made.inputs)
        self.network = RandomNetwork(made.seed, first, signed=made.signed)
        for shape in others:
            self.network.add_input(shape)
        self.values = {-1 - k: value for k, value in enumerate(self.network.values)}
        self.made = list(self.values)

    def take(self, step: Step) -> bool:
        """Add the operator of a step; False if it does not fit."""
        fits, make = OPERATORS[step.operator]
        source = self.values[step.source]
        if not fits(source) or source.elements > _MOST_ELEMENTS:
            return False
        self.network.draw_again((self._seed, 2, step.number))
        shown = not self.network.random.integers(_SHOWN)
        value = make(self.network, source)
        if shown:
            self.network.show(value)
        self.values[step.number] = value
        self.made.append(step.number)
        return True
