"""Predicted times: of what the chip computes by the event model, of the CPU by an estimate.

The estimate has to be the same on every machine, because it decides what the compiler writes: it
counts products and bytes, at the rates of a small core that runs one thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.darwinn import Executable, ExecutableType
from darwinn_sim import timing
from darwinn_sim.machine.lowering import lower_executable

from darwinn_testbench.compiler.stages.build import Piece
from darwinn_testbench.explain.graph import Graph, Node, graph_of

CHIP = "beagle-max"
"""The chip that times are predicted for."""
PRODUCTS_A_SECOND = 4e9
"""Products of 8 bits that the CPU makes in a second, by estimate."""
BYTES_A_SECOND = 1e9
"""Bytes of tensors that it reads and writes in a second, by estimate."""

_WINDOWED = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "TRANSPOSE_CONV": 0, "FULLY_CONNECTED": 0}
"""Operators with weights: the axis of results in these."""


def timed(executable: Executable) -> timing.Timing:
    """An inference on the chip at the fastest clock, on its usual link.

    Raises:
        SimulationError: the program fails.
    """
    chip = timing.chip_description(CHIP)
    program = lower_executable(executable, assumptions=False, addresses=False)
    return timing.simulate(executable, chip, usual_link(), assumptions=False, program=program)


def usual_link() -> timing.HostLink:
    """The usual host link of the chip that times are predicted for."""
    return timing.host_link(timing.chip_description(CHIP).host)


def inference_of(piece: Piece) -> Executable:
    """The executable that runs for every input."""
    caching = ExecutableType.PARAMETER_CACHING
    return next(each for each in piece.package.executables if each.type is not caching)


def phase_cycles(piece: Piece, result: timing.Timing) -> list[int]:
    """Cycles of each phase: from the end of all before it to its own; 0 if it ends before.

    The first one includes the request, the last one does not include the interrupt.
    """
    starts = np.cumsum([0, *(len(chunk.opcode) for chunk in result.program.chunks)])
    found = []
    now = 0
    for (chunk, first), (last_chunk, behind) in piece.places:
        low, high = starts[chunk] + first, starts[last_chunk] + behind
        ends = result.executions[low:high, 2]
        end = int(ends.max()) if len(ends) else -1
        found.append(max(end - now, 0))
        now = max(now, end)
    return found


def cpu_milliseconds(graph: Graph, numbers: Iterable[int]) -> float:
    """Estimated time of operators on the CPU."""
    return 1e3 * sum(_seconds(graph.nodes[number]) for number in numbers)


def chip_milliseconds(pieces: Sequence[Piece]) -> float:
    """Predicted time of the pieces of a model, a request for each."""
    return 1e3 * sum(timed(inference_of(piece)).seconds for piece in pieces)


def _seconds(node: Node) -> float:
    size = sum(each.bytes for each in (*node.data, *node.outputs))
    products = 0
    if node.name in _WINDOWED and len(node.given) > 1 and node.outputs:
        weights = node.given[1].shape
        results = max(weights[_WINDOWED[node.name]], 1)
        products = math.prod(node.outputs[0].shape) * math.prod(weights) // results
    return products / PRODUCTS_A_SECOND + size / BYTES_A_SECOND


class Predicted:
    """A further piece is worth it if it takes less time than its operators on the CPU.

    What a request costs differs from host to host, so this has to hold at the slow end of the
    interval of times.
    """

    def may_be(self, model: tflite.Model, operators: frozenset[int]) -> bool:
        """Whether the CPU takes longer for them than the host for a request."""
        fixed = usual_link().fixed_seconds.value
        return cpu_milliseconds(graph_of(model), operators) > 1e3 * fixed

    def against(self, model: tflite.Model, piece: Piece) -> str:
        """Both times, if the CPU's is less.

        Raises:
            SimulationError: the program fails.
        """
        chip = 1e3 * timing.interval(timed(inference_of(piece)))[1]
        cpu = cpu_milliseconds(graph_of(model), piece.operators)
        if chip < cpu:
            return ""
        return f"a further piece may take {chip:.2f} ms, the CPU some {cpu:.2f} (-a makes it)"


class Always:
    """Every further piece is worth it (``--enable_multiple_subgraphs``)."""

    def may_be(self, model: tflite.Model, operators: frozenset[int]) -> bool:
        """Yes."""
        del model, operators
        return True

    def against(self, model: tflite.Model, piece: Piece) -> str:
        """Nothing."""
        del model, piece
        return ""
