"""How a survey runs the models that it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from darwinn_testbench.request import settings
from darwinn_testbench.request.records import Seeded
from darwinn_testbench.request.setting import Setting

DEFAULT_TIMEOUT = 600.0
"""Seconds for one row."""


@dataclass(frozen=True, kw_only=True)
class Options(Seeded):
    """How the models are run, as ``verify`` is told; without ``references`` they are only run.

    ``runs`` is the number of inferences; None is one with each kind of inputs.
    """

    references: Annotated[
        bool,
        Setting("--no-reference", "Only run the models, and compare them with nothing."),
    ] = True
    runs: settings.Runs = None
    hazards: settings.Hazards = None
    strict: settings.Strict = False
    assumptions: settings.Assumptions = True
    require_reference: settings.RequireReference = False
    chip_only: settings.ChipOnly = False
    timeout: Annotated[
        float, Setting("--timeout S", "Seconds for one row; beyond them it is a fault.", least=1)
    ] = DEFAULT_TIMEOUT
