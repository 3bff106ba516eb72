"""A lowered program as the kernels of the units see it."""

from __future__ import annotations

from typing import NamedTuple

from darwinn_sim.kernel import instructions
from darwinn_sim.kernel.structure import Numbers, Record, Records
from darwinn_sim.units import narrow_to_wide
from darwinn_sim.units.tensor_plan import TensorPlan
from darwinn_sim.units.tensor_records import Parameters


class Dispatch(Record):
    """What instructions other than scalar bundles have in common.

    The gate, the host interrupt that is raised (-1: none), where a tile instruction goes, and the
    registers that may replace its tile set and base.
    """

    gate: int
    predicate: int
    polarity: int
    interrupt: int
    tiles: int
    tiles_override: int
    tiles_register: int
    base_override: int
    base_register: int


class Tables(NamedTuple):
    """A program as the kernels see it: all chunks of an executable, one after another.

    ``at`` maps a program counter (bundles through all chunks) to an instruction, -1 inside one.
    ``opcode``, ``row`` (in the table of its kind), ``unit`` (of a tile; -1: none), ``pc`` and
    ``dispatch`` are indexed by instruction.
    """

    at: Numbers
    opcode: Numbers
    row: Numbers
    unit: Numbers
    pc: Numbers
    scalar: Records[instructions.Scalar]
    branch: Records[instructions.Branch]
    loop: Records[instructions.Loop]
    scalar_fence: Records[instructions.ScalarFence]
    dispatch: Records[Dispatch]
    pop: Records[instructions.PopInput]
    infeed: Records[instructions.RingInfeed]
    outfeed: Records[instructions.RingOutfeed]
    tensor: Records[Parameters]
    tensor_plan: TensorPlan
    function_table: Records[instructions.CoefficientTable]
    ring_producer: Records[instructions.RingProducer]
    ring_consumer: Records[instructions.RingConsumer]
    narrow_to_wide: Records[narrow_to_wide.Parameters]
    wide_to_narrow: Records[instructions.WideToNarrow]
    mesh: Records[instructions.Mesh]
    tile_fence: Records[instructions.TileFence]
