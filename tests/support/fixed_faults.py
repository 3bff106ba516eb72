"""A fixed list of faulty executables, with what is known of each, for tests of what finds them.

The same of every call, and of nobody's seed but ``SEED``: a MobileNet with ``OF_THE_FIRST`` faults
of each kind, and one of each kind of three small models, where they have a place for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from darwinn_testbench.chip.model import open_models
from equivalence import Truth, computed, truth
from executable_faults import DATA_KINDS, Subject, drawn, faulty, faulty_file

FIRST = "mobilenet_v1_0.25_128_quant"
OTHERS = ("looming_64x64_3x3", "color_red_64x64", "bright_16x16")
SEED = "fixed"
OF_THE_FIRST = 4


@dataclass(frozen=True)
class FixedFault:
    """A faulty executable: ``data`` is its file, ``reference`` the model before compilation.

    ``equivalent``: True by the argument ``why``, False by the input or failure that it names, None
    if neither is known.
    """

    model: str
    reference: Path
    data: bytes
    kind: str
    where: str
    equivalent: bool | None
    why: str


_KNOWN = {Truth.EQUIVALENT: True, Truth.DIFFERENT: False, Truth.UNDECIDED: None}


def fixed_faults(corpus: Path, model: str | None = None) -> Iterator[FixedFault]:
    """All of them, or those of a model."""
    for name in (FIRST, *OTHERS) if model is None else (model,):
        path = corpus / "darwinn" / f"{name}_edgetpu.tflite"
        data = path.read_bytes()
        (bound,) = open_models(path)
        subject, right = Subject(bound.compiled), computed(bound.compiled)
        for kind in DATA_KINDS:
            number = OF_THE_FIRST if name == FIRST else 1
            for fault in drawn(subject, kind, f"{SEED}/{name}", number):
                known, why = truth(right, faulty(bound.compiled, fault))
                yield FixedFault(
                    model=name,
                    reference=corpus / "tflite" / f"{name}.tflite",
                    data=faulty_file(data, bound.compiled, fault),
                    kind=kind.name,
                    where=fault.where,
                    equivalent=_KNOWN[known],
                    why=why,
                )
