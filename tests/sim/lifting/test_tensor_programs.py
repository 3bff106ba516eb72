"""Random tensor instructions of all kinds: lifted they give what runs give, or are not lifted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from darwinn_sim.host.output_check import differing_output
from darwinn_sim.lifting.program import LiftedProgram, lift
from darwinn_sim.lifting.walk import NotLifted
from functional_coverage import Coverage
from hypothesis import given
from slow_model import tensor_unit as slow
from stimulus import constrained_random
from tensor_programs import INPUT_BYTES, TensorProgram, programs, reads_sums_back

REFUSED = {
    "zero points change within a sum",
    "data in wide memory have zero points of each lane",
    "sums over data in wide memory have biases or scales of each lane",
    "sums over data in wide memory go on in other instructions",
    "lanes change within a sum",
}
"""What a single instruction may be that has no stage; it has a table, and constant parameters."""

ENDS = ("table", "16-bit results", "raw results")
BINS = {
    slow.MAC: (*ENDS, "zero points of lanes", "sums put aside and read back", "16-bit activations"),
    slow.MAXIMUM: (*ENDS, "16-bit values"),
    slow.SUM: (*ENDS, "16-bit values"),
    slow.INTERPOLATE: ("nearest pixel", "four pixels"),
}


def cover(coverage: Coverage, program: TensorProgram) -> None:
    fields, operation = program.fields, program.operation
    if operation == slow.INTERPOLATE:
        nearest = fields["main_limit"][:2] == [0, 0]
        coverage.hit("nearest pixel" if nearest else "four pixels")
        return
    coverage.hit("raw results", when=np.isinf(fields["high_clip"]))
    coverage.hit("table", when=fields["function"] & 1)
    coverage.hit("16-bit results", when=fields["function"] & 4)
    if operation != slow.MAC:
        coverage.hit("16-bit values", when=fields["parameter_16bit"])
        return
    coverage.hit("sums put aside and read back", when=reads_sums_back(fields))
    coverage.hit("zero points of lanes", when=fields["load_parameter_zero_point"])
    coverage.hit("16-bit activations", when=fields["activation_16bit"])


def inputs(seed: int) -> Sequence[dict[str, bytes]]:
    random = np.random.default_rng(seed)
    given = [random.bytes(INPUT_BYTES), b"\xff" * INPUT_BYTES, bytes(INPUT_BYTES)]
    return [{"image": each} for each in given]


def lifted(program: TensorProgram) -> LiftedProgram | None:
    """A program that gives what runs of it give; None if it is not lifted."""
    executable, accelerator = program.executable(), program.chip()
    plain = [accelerator.run(executable, each).outputs for each in inputs(program.seed)]
    try:
        found = lift(accelerator, executable)
    except NotLifted as error:
        assert str(error) in REFUSED
        return None
    for one, other in zip(plain, found.run(inputs(program.seed)), strict=True):
        assert differing_output(executable, one, other) is None
    return found


@pytest.mark.parametrize("operation", BINS)
def test_a_lifted_instruction_gives_what_runs_give(operation: str) -> None:
    coverage = Coverage(f"lifted {operation}", BINS[operation])

    @constrained_random(8)
    @given(programs(operation))
    def check(drawn: list[TensorProgram]) -> None:
        for program in drawn:
            if lifted(program) is not None:
                cover(coverage, program)

    coverage.close(check)
