"""The compiled kernels of the model of the chip, before somebody has to wait for them.

- ``parts``: what calls all kernels of a part of the model, on the project's own sample.
- ``warm``: compiles them for this processor, into the cache of the user: `darwinn warm-up`.
- ``build``: compiles them for any processor of a level, to be part of an installation.

How they are kept is in ``darwinn_sim.kernel.store``.
"""

from darwinn_testbench.kernels.parts import Part
from darwinn_testbench.kernels.warm import KernelsRow, warm_up

__all__ = ["KernelsRow", "Part", "warm_up"]
