"""Records of the tensor unit: its instruction, and what the plan says of it."""

from __future__ import annotations

from darwinn_sim.kernel import instructions, traversal
from darwinn_sim.kernel.structure import Int16, Int32, Record, Uint8

KEEP_SUMS = 2
"""Bit of ``partial_sum_read``: sums stay in the accumulator, and none goes to wide memory."""


class Parameters(instructions.Tensor):
    """A tensor instruction. ``main``: the main loops as a traversal; ``working``: the products that
    an iteration makes (bit k: product k), and ``products`` the places up to the last of those;
    ``scale_watcher``: the index of the watcher of flag 12, whose count selects the half of the
    scale/bias buffer (-1: none). ``plain``: which iterations of a TensorMac are added up in vectors
    (``tensor_products``).
    """

    main: traversal.Parameters
    working: int
    products: int
    scale_watcher: int
    plain: int


class Segment(Record, align=True):
    """Iterations ``first`` to ``first + count - 1``.

    ``waits``: blocks that begin, where a watcher is tested, else 0. A run of sums ``starts``
    (``continues``: from wide memory) and ``ends`` here; the sums leave through the output stage
    (``outputs``). The last word of these may be ``late``: in its place only when the next segment
    has read (``tensor_late``). ``parameter_reads`` and ``sum_writes`` are increments of flags 1
    and 2.
    ``fault``: what is wrong with its addresses (``tensor_reach``), which a plan by itself lacks.
    """

    first: Int32
    count: Int32
    waits: Int32
    sum_row: Int32
    zero_point_row: Int32
    parameter_reads: Int32
    sum_writes: Int32
    lanes: Int16
    starts: Uint8
    continues: Uint8
    ends: Uint8
    outputs: Uint8
    late: Uint8
    fault: Uint8


class Place(Record):
    """Where an instruction's part of the plan begins in each array, and how long it is; ``cells``
    are the valid lanes of all its iterations together."""

    iteration: int
    iterations: int
    segment: int
    segments: int
    write: int
    writes: int
    cells: int
