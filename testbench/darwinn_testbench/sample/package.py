"""From a network to files: executables with their layers, packages, and the Edge TPU ``.tflite``.

A compiled model is a pair of executables that carry the same token. The parameter-caching one is
run once and leaves the parameters in the tiles; the other one is run for every input. A stand-alone
executable does both in one run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from darwinn_formats import darwinn, flatbuffer, tflite
from darwinn_formats.darwinn import (
    DataType,
    Executable,
    ExecutableType,
    InputLayer,
    Layer,
    NumericsConstants,
    OutputLayer,
    OutputLayout,
    OutputShapeInfo,
    Package,
    Range,
    SerializedPackage,
    TensorLayout,
    TensorShape,
)
from flatbuffers import flexbuffers

from darwinn_testbench.sample import dense_program
from darwinn_testbench.sample.assembler import Assembler
from darwinn_testbench.sample.network import DenseNetwork, Quantisation, Sample
from darwinn_testbench.sample.parameters import SIGN_OFFSET, Block, blob
from darwinn_testbench.sample.program import begin, end, load_parameters
from darwinn_testbench.sample.uncompiled import INPUT, OUTPUT
