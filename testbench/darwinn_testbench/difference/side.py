"""One of the two files, with all that is found out of it, once and only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from darwinn_formats.darwinn import DarwinnFile, Executable, load
from darwinn_formats.files import Source
from darwinn_sim import timing
from darwinn_sim.isa.codec import DecodedChunk, decode

from darwinn_testbench.chip.cycles import CyclesRow, time_executable
from darwinn_testbench.chip.model import BoundModel, bind_file, choose_model
from darwinn_testbench.comparison.layer_names import layer_names, with_names
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.layers.view import view_layers
from darwinn_testbench.report.progress import ProgressCallback

INFERENCE, CACHING = "inference", "parameter caching"
"""The executables of a model, as rows call them."""


@dataclass(frozen=True)
class Setting:
    """What both sides are looked at with; the arguments of ``difference``."""

    model: int
    seed: int
    chip_only: bool
    strict: bool
    assumptions: bool
    chip: timing.ChipDescription
    link: timing.HostLink | None
    progress: ProgressCallback = field(compare=False)


class Side:
    """A compiled model; with ``reference``, the model before compilation, its layers have names.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: there is no such model, or a bare stream whose buffers cannot be told.
    """

    def __init__(
        self,
        source: Source,
        companions: Sequence[Source],
        setting: Setting,
        reference: Source | None = None,
    ) -> None:
        self.reference = reference
        self.source, self.companions, self.setting = source, companions, setting
        self.file: DarwinnFile = load(source)
        self.bound: BoundModel = choose_model(bind_file(self.file, companions), setting.model)

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
        asked: dict[str, Any] = {
            "model": self.setting.model,
            "companions": self.companions,
            "seed": self.setting.seed,
            "assumptions": self.setting.assumptions,
            "progress": self.setting.progress,
        }
        rows = view_layers(self.source, **asked).rows
        if self.reference is None:
            return rows
        return with_names(rows, layer_names(self.source, self.reference, **asked))

    @cached_property
    def timed(self) -> Mapping[str, CyclesRow]:
        """The event model's run of each executable; a row says why there is none."""
        setting = self.setting
        return {
            part: time_executable(each, part, setting.chip, setting.link, setting.assumptions)
            for part, each in self.executables.items()
        }
