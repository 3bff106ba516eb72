"""One of the two files, with all that is found out of it, once and only when it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from darwinn_formats.darwinn import DarwinnFile, Executable, load
from darwinn_formats.files import Source
from darwinn_sim import timing
from darwinn_sim.isa.codec import DecodedChunk, decode

from darwinn_testbench.chip.cycles import CyclesRow, time_executable
from darwinn_testbench.chip.model import BoundModel, bind_file, choose_model
from darwinn_testbench.comparison.layer_names import named_layers, with_names
from darwinn_testbench.difference.rows import Aspect
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.layers.view import layers_of
from darwinn_testbench.request import settings
from darwinn_testbench.request.records import Drawn, LayerView, Naming, OfFiles, OfProgram
from darwinn_testbench.request.timing import Timed

INFERENCE, CACHING = "inference", "parameter caching"
"""The executables of a model, as rows call them."""


@dataclass(frozen=True)
class Comparing(Timed, OfFiles, Drawn, OfProgram):
    """Two compiled models, or two programs of one other format, A and B, and how they are compared.

    ``only`` are the aspects to look at; all of them by default. ``references`` are the models
    before compilation of A and of B, as ``.tflite``: layers have the names of their operators, and
    those of one tensor belong together. That takes an inference of each. ``inputs`` go by the names
    of A's; by default one set of each kind is drawn. With ``gates`` these alone decide.
    """

    a: Source
    b: Source
    _: KW_ONLY
    companions: settings.Companions = ()
    inputs: settings.Inputs = None
    chip_only: settings.ChipOnly = False
    strict: settings.Strict = False
    assumptions: settings.Assumptions = True
    only: Collection[Aspect] = ()
    references: tuple[Source | None, Source | None] = (None, None)
    gates: Sequence[str] = ()


class Side:
    """A compiled model; with ``reference``, the model before compilation, its layers have names.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: there is no such model, or a bare stream whose buffers cannot be told.
    """

    def __init__(
        self,
        source: Source,
        asked: Comparing,
        chip: timing.ChipDescription,
        link: timing.HostLink | None,
        reference: Source | None = None,
    ) -> None:
        self.source, self.asked, self.reference = source, asked, reference
        self.chip, self.link = chip, link
        self.file: DarwinnFile = load(source)
        self.bound: BoundModel = choose_model(bind_file(self.file, asked.others), asked.model)

    @cached_property
    def executables(self) -> Mapping[str, Executable]:
        """The executables of the model by the part that they play."""
        compiled = self.bound.compiled
        parts = {INFERENCE: compiled.inference, CACHING: compiled.caching}
        return {part: each for part, each in parts.items() if each is not None}

    @cached_property
    def streams(self) -> Mapping[str, tuple[bytes, ...]]:
        """The chunks of each executable, as bytes."""
        return {
            part: tuple(bytes(chunk.bitstream) for chunk in each.instruction_bitstreams)
            for part, each in self.executables.items()
        }

    @cached_property
    def chunks(self) -> Mapping[str, tuple[DecodedChunk, ...]]:
        """The chunks of each executable, decoded; DecodeError if one is not."""
        return {part: tuple(map(decode, each)) for part, each in self.streams.items()}

    @cached_property
    def layers(self) -> tuple[LayerRow, ...]:
        """What the inference computes, by the names of the reference if there is one.

        Raises:
            SimulationError: it does not run.
            FormatError, OSError, InputError, ModelError: the reference is none of this model.
        """
        rows = layers_of(self.asked.part(LayerView, source=self.source)).rows
        if self.reference is None:
            return rows
        names = self.asked.part(Naming, source=self.source, reference=self.reference)
        return with_names(rows, named_layers(names))

    @cached_property
    def timed(self) -> Mapping[str, CyclesRow]:
        """The event model's run of each executable; a row says why there is none."""
        assumptions = self.asked.assumptions
        return {
            part: time_executable(each, part, self.chip, self.link, assumptions)
            for part, each in self.executables.items()
        }
