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
