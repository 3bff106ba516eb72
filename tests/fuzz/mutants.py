"""Mutants: a seed with edits, drawn from a number, so that the number says it all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from tests.fuzz import mutation
from tests.fuzz.formats import BY_NAME, FORMATS, Format
from tests.fuzz.mutation import Edit, Inapplicable

_BYTES_ONLY = 0.1
_BYTES_TOO = 0.1
_ATTEMPTS = 20
_COUNTS = (1, 1, 1, 2, 3, 8)


class Mutant(msgspec.Struct, frozen=True, omit_defaults=True):
    """``edits`` of the tree that the seed is read into, then ``patches`` of the written bytes."""

    format: str
    seed: str
    edits: tuple[Edit, ...] = ()
    patches: tuple[Edit, ...] = ()

    @property
    def suffix(self) -> str:
        """The ending of a file's name by which it is known what it is."""
        return BY_NAME[self.format].suffix or Path(self.seed).suffix


class Seed:
    """A file, and the tree it is read into."""

    def __init__(self, form: Format, data: bytes) -> None:
        self.form = form
        self.data = data

    @cached_property
    def tree(self) -> Any:
        """What the file says; None if only its bytes are changed."""
        return None if self.form.read is None else self.form.read(self.data)

    @cached_property
    def streams(self) -> tuple[mutation.Path, ...]:
        """Where in the tree instructions are."""
        return tuple(mutation.streams_in(self.tree))

    def changed(self, mutant: Mutant) -> bytes:
        """The bytes of the mutant.

        Raises:
            Inapplicable: the seed has not what an edit is for, or the edited cannot be written.
        """
        data = self.data
        if mutant.edits:
            tree = mutation.applied(self.tree, mutant.edits)
            try:
                data = self.form.write(tree) if self.form.write else data
            except Exception as error:
                # Whatever a writer says of a tree that no reader gives: it is not what is tested.
                raise Inapplicable(str(error)) from error
        patched: bytes = mutation.applied(data, mutant.patches)
        return patched


class Seeds:
    """All seeds, by format and name, made from the samples in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seeds = {
            form.name: {name: Seed(form, data) for name, data in form.seeds(folder).items()}
            for form in FORMATS
        }

    def all(self) -> list[Mutant]:
        """Each seed as it is, which is a mutant too."""
        return [Mutant(form, name) for form, seeds in self._seeds.items() for name in seeds]

    def changed(self, mutant: Mutant) -> bytes:
        """The bytes of a mutant; Inapplicable if the seed is another one by now."""
        seed = self._seeds[mutant.format].get(mutant.seed)
        if seed is None:
            raise Inapplicable(mutant.seed)
        return seed.changed(mutant)

    def drawn(self, number: int, forms: tuple[str, ...] = (), endless_share: float = 0.0) -> Mutant:
        """The mutant of a number, of one of some formats, or of all by their shares; of those that
        hold instructions such a share are programs without end.
        """
        draw = Random(number)
        if endless_share and draw.random() < endless_share:
            return self._endless(draw, forms)
        chosen = [BY_NAME[name] for name in forms] or FORMATS
        (form,) = draw.choices(chosen, [each.share for each in chosen])
        name = draw.choice(list(self._seeds[form.name]))
        seed = self._seeds[form.name][name]
        for _ in range(_ATTEMPTS):
            try:
                mutant = self._attempt(draw, form, name, seed)
                if seed.changed(mutant) != seed.data:
                    return mutant
            except Inapplicable:
                continue
        return Mutant(form.name, name, (), self._patches(draw, seed.data))

    def every_byte(self, forms: tuple[str, ...] = ()) -> Iterator[Mutant]:
        """Each seed with one byte changed, every one of its bytes, in all bits or one of them."""
        for form, seeds in self._seeds.items():
            for name, seed in seeds.items() if form in (forms or BY_NAME) else ():
                for at, byte in enumerate(seed.data):
                    mask = Random(at).choice((0xFF, *(1 << bit for bit in range(8))))
                    edit = Edit((), "put", (at, bytes((byte ^ mask,)).hex()))
                    yield Mutant(form, name, (), (edit,))

    def _endless(self, draw: Random, forms: tuple[str, ...]) -> Mutant:
        """A seed of which only that was changed: further edits often keep it from beginning."""
        places = [
            (form, name, seed)
            for form, seeds in self._seeds.items()
            for name, seed in seeds.items()
            if form in (forms or BY_NAME) and seed.tree is not None and seed.streams
        ]
        while True:
            form, name, seed = draw.choice(places)
            edit = mutation.drawn_endless(draw, seed.tree, seed.streams)
            mutant = Mutant(form, name, (edit,))
            try:
                seed.changed(mutant)
            except Inapplicable:
                continue
            return mutant

    def _attempt(self, draw: Random, form: Format, name: str, seed: Seed) -> Mutant:
        if seed.tree is None or draw.random() < _BYTES_ONLY:
            return Mutant(form.name, name, (), self._patches(draw, seed.data))
        edits: list[Edit] = []
        tree = seed.tree
        for _ in range(draw.choice(_COUNTS)):
            edit = mutation.drawn(draw, tree, seed.streams)
            if edit is not None:
                try:
                    tree = mutation.applied(tree, [edit])
                except Inapplicable:
                    continue
                edits.append(edit)
        mutant = Mutant(form.name, name, tuple(edits))
        if draw.random() < _BYTES_TOO:
            patches = self._patches(draw, seed.changed(mutant))
            mutant = msgspec.structs.replace(mutant, patches=patches)
        return mutant

    def _patches(self, draw: Random, data: bytes) -> tuple[Edit, ...]:
        patches: list[Edit] = []
        for _ in range(draw.choice(_COUNTS)):
            edit = mutation.drawn(draw, data)
            if edit is not None:
                patches.append(edit)
                data = mutation.applied(data, [edit])
        return tuple(patches)
