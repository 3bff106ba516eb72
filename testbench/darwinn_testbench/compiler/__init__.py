"""A compiler of small networks: the project's own DarwiNN programs.

Real compiled models cannot be part of this repository, so it makes its own, in the same format and
with the same idioms; docs/sample.md is the guide. In the order in which to read:

- ``network``: the networks, quantised, from a seed; ``uncompiled``: the same as ``.tflite``.
- ``classifier``: a classifier of pictures with operators on the CPU around one such network.
- ``executorch``, ``bef``: the same as ``.pte`` and as BEF, whose layers are ``natives``.
- ``fixed_point``: a matrix product of an integer runtime as a network.
- ``parameters``: how weights, biases and scales are laid out for the tiles.
- ``assembler``: instructions of a chunk, with their relocations and DMA hints.
- ``program``: what every program is made of; ``dense_program``, ``convolution_program``: the two.
- ``package``: executables, packages, the Edge TPU ``.tflite``; ``files``: all of it in a folder.
"""

from darwinn_testbench.compiler.bef import bef_file, bef_text
from darwinn_testbench.compiler.executorch import executorch_program
from darwinn_testbench.compiler.files import SampleRow, sample
from darwinn_testbench.compiler.fixed_point import matrix_product
from darwinn_testbench.compiler.natives import NATIVES
from darwinn_testbench.compiler.network import (
    Convolution,
    DenseNetwork,
    random_convolution,
    random_dense,
)
from darwinn_testbench.compiler.package import (
    compile_network,
    compile_stand_alone,
    edgetpu_model,
    multi_chip,
)
from darwinn_testbench.compiler.uncompiled import uncompiled

__all__ = [
    "NATIVES",
    "Convolution",
    "DenseNetwork",
    "SampleRow",
    "bef_file",
    "bef_text",
    "compile_network",
    "compile_stand_alone",
    "edgetpu_model",
    "executorch_program",
    "matrix_product",
    "multi_chip",
    "random_convolution",
    "random_dense",
    "sample",
    "uncompiled",
]
