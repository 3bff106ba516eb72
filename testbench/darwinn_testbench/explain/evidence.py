"""Evidence that the vendor's compiler gives an operator to the chip.

The vendor's list is the table of supported operations on coral.ai/docs/edgetpu/models-intro. Two
sources of it can be read:

- the edition of 2019, in a copy (github.com/dgist-datalab/Datalab_Intern,
  Edge_TPU/convert_model_for_Edge_TPU.md); each row was compared with the conditions;
- of later editions, quotes and remarks in issues of github.com/google-coral/edgetpu.

The available copies of the later page end before the table. A row that neither source gives is not
confirmed, and a doubt says so (``conditions``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from darwinn_testbench.report import counted


class Basis(StrEnum):
    """How it is known that an operator runs where it is said to run."""

    FILES = "compiled files"
    VENDOR = "the vendor's word"
    REPORT = "a report"
    NOT_CONFIRMED = "not confirmed"


TABLE_2019 = "2019"
SEEN = "seen"
"""A compiled model of those that tests read has it on the chip."""

_BOTH = (TABLE_2019, SEEN)

EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "ADD": _BOTH,
    "AVERAGE_POOL_2D": _BOTH,
    "CONCATENATION": _BOTH,
    "CONV_2D": _BOTH,
    "DEPTHWISE_CONV_2D": _BOTH,
    "EXPAND_DIMS": (),
    "FULLY_CONNECTED": _BOTH,
    "L2_NORMALIZATION": (TABLE_2019,),
    "LOGISTIC": _BOTH,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (SEEN,),
    "MAXIMUM": (TABLE_2019,),
    "MAX_POOL_2D": _BOTH,
    "MEAN": (*_BOTH, "issue 461"),
    "MINIMUM": (TABLE_2019,),
    "MUL": _BOTH,
    "PACK": (),
    "PAD": _BOTH,
    "PRELU": ("issue 597",),
    "QUANTIZE": (SEEN,),
    "REDUCE_MAX": (SEEN,),
    "REDUCE_MIN": (),
    "RELU": (TABLE_2019,),
    "RELU6": (TABLE_2019,),
    "RELU_N1_TO_1": (TABLE_2019,),
    "RESHAPE": (*_BOTH, "issue 512"),
    "RESIZE_BILINEAR": (*_BOTH, "issue 597"),
    "RESIZE_NEAREST_NEIGHBOR": (*_BOTH, "issue 597"),
    "RSQRT": ("issue 384",),
    "SLICE": (TABLE_2019,),
    "SOFTMAX": _BOTH,
    "SPACE_TO_DEPTH": (TABLE_2019,),
    "SPLIT": _BOTH,
    "SPLIT_V": (),
    "SQUARED_DIFFERENCE": (),
    "SQUEEZE": (TABLE_2019,),
    "STRIDED_SLICE": _BOTH,
    "SUB": _BOTH,
    "SUM": (),
    "TANH": (TABLE_2019,),
    "TILE": (SEEN,),
    "TRANSPOSE": (SEEN, "issue 193"),
    "TRANSPOSE_CONV": ("issue 684", "issue 686"),
}
"""Of each operator with conditions: the edition of 2019, compiled models, issues of
google-coral/edgetpu; nothing of one that is not confirmed.

In issue 193 the vendor answers that compiler 16 has TRANSPOSE; in 384 that RSQRT is to be tried
with it, which compiler 15 did not know; 597 goes by the row of PRELU, with its shared axes; 684
shows that of TRANSPOSE_CONV and one that is on the CPU, and in 686 three of four are on the chip.
"""

FILES: Mapping[str, int] = {
    "ADD": 16,
    "AVERAGE_POOL_2D": 12,
    "CONCATENATION": 11,
    "CONV_2D": 48,
    "DEPTHWISE_CONV_2D": 24,
    "FULLY_CONNECTED": 15,
    "LOGISTIC": 7,
    "MAX_POOL_2D": 5,
    "MEAN": 6,
    "MUL": 7,
    "PAD": 13,
    "QUANTIZE": 18,
    "REDUCE_MAX": 1,
    "RESHAPE": 20,
    "RESIZE_BILINEAR": 2,
    "RESIZE_NEAREST_NEIGHBOR": 2,
    "SOFTMAX": 18,
    "SPLIT": 2,
    "STRIDED_SLICE": 3,
    "SUB": 1,
    "TILE": 1,
    "TRANSPOSE": 2,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": 1,
}
"""How many compiled models have each operator on the chip, of those that tests read."""


def basis_of(operator: str) -> Basis:
    """The best evidence that the chip runs an operator."""
    sources = EVIDENCE[operator]
    if SEEN in sources:
        return Basis.FILES
    if TABLE_2019 in sources:
        return Basis.VENDOR
    return Basis.REPORT if sources else Basis.NOT_CONFIRMED


def told_of(operator: str) -> str:
    """The evidence in words: how many files, which edition of the vendor's table, which issues."""
    words = {SEEN: counted(FILES.get(operator, 0), "compiled file"), TABLE_2019: "vendor's table"}
    return ", ".join(words.get(each, each) for each in sorted(EVIDENCE[operator], key=_WORTH.index))


_WORTH = (SEEN, TABLE_2019, *sorted({each for told in EVIDENCE.values() for each in told}))
"""Kinds of evidence, the best first."""
