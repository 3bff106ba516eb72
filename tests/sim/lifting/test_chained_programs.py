"""Random products that go on from each other's sums, biases and results: lifted, and run."""

from __future__ import annotations

import numpy as np
from chained_programs import AGAIN, FRESH, LAST, MAC, WHOLE, Chain, Step, chains
from darwinn_formats.darwinn import Executable, Layer, OutputLayer
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.output_check import differing_output
from darwinn_sim.lifting.program import lift
from darwinn_testbench.compiler.assembler import Assembler, walk
from darwinn_testbench.compiler.program import barrier, begin, end, request_input, send_output
from functional_coverage import Coverage
from hypothesis import given
from nightly import CASES, check_cases, nightly_too
from stimulus import constrained_random
from tensor_programs import INPUT_BYTES, INPUT_ROW, SCALE_ROW, TILE, fill, take
from unit_cases.tensor_unit import in_place

BINS = (
    "sums go on once",
    "sums go on twice",
    "sums go on with fewer lanes",
    "sums are other bytes",
    "sums go on with fewer lanes, put aside",
    "biases are computed",
    "parameters are computed",
    "several places",
)


def cover(coverage: Coverage, steps: list[Step]) -> None:
    rows: dict[int, tuple[int, int]] = {}
    for step in steps:
        lanes, depth = rows.get(step.sums, (step.lanes, -1))
        again = step.mode in (AGAIN, LAST)
        if again and depth >= 0:
            coverage.hit("sums go on once", when=depth == 0)
            coverage.hit("sums go on twice", when=depth == 1)
            coverage.hit("sums go on with fewer lanes", when=step.lanes < lanes)
            aside = step.mode == AGAIN and step.lanes < lanes
            coverage.hit("sums go on with fewer lanes, put aside", when=aside)
        coverage.hit("sums are other bytes", when=again and depth < 0)
        coverage.hit("biases are computed", when=step.biases not in (None, SCALE_ROW + 2))
        coverage.hit("parameters are computed", when=step.of_data)
        coverage.hit("several places", when=step.places > 1)
        if step.mode in (FRESH, AGAIN):
            rows[step.sums] = (step.lanes, depth + 1)


@nightly_too
def test_lifted_products_give_what_runs_give(*, nightly: bool) -> None:
    """All of them are lifted."""
    coverage = Coverage("lifted chains", BINS)

    def check(chain: Chain) -> None:
        executable, accelerator = chain.executable(), chain.chip()
        random = np.random.default_rng(chain.seed)
        given = [random.bytes(INPUT_BYTES), b"\xff" * INPUT_BYTES, bytes(INPUT_BYTES)]
        inputs = [{"image": each} for each in given]
        plain = [accelerator.run(executable, each).outputs for each in inputs]
        lifted = lift(accelerator, executable)
        for one, other in zip(plain, lifted.run(inputs), strict=True):
            assert differing_output(executable, one, other) is None
        cover(coverage, chain.steps)

    if nightly:
        check_cases("lifted chains", chains(), check, CASES, nightly=True)
        coverage.finish()
    else:
        coverage.close(constrained_random(12)(given(chains())(check)))


def test_products_of_the_same_data_with_other_constants() -> None:
    """They take the same bytes and compute alike; each lane is a position of its own."""
    lanes, count = 64, 3
    steps = [
        Step(
            {
                "main_limit": [count - 1] + [0] * 7,
                "reduction_loops": 1,
                "output_block_loop": 2,
                "block_lanes": lanes - 1,
                "last_block_lanes": lanes - 1,
                "activation_16bit": 0,
                "parameter_16bit": 0,
                "function": 0,
                "low_clip": float("-inf"),
                "high_clip": float("inf"),
                "output_scale": 2.0**-8,
                **walk("TensorMac", "narrow_read", reads, [(count, 4)]),
                **walk("TensorMac", "parameter_read", 4 * INPUT_ROW, [(count, 4)]),
            },
            mode=WHOLE,
            sums=1000,
            places=1,
            biases=None,
            table=0,
            packs=False,
        )
        for reads in (INPUT_BYTES + 8, INPUT_BYTES + 40)
    ]
    chain = Chain(steps, [{}], seed=3)
    executable, accelerator = chain.executable(), chain.chip()
    inputs = [{"image": np.random.default_rng(k).bytes(INPUT_BYTES)} for k in range(3)]
    plain = [accelerator.run(executable, each).outputs for each in inputs]
    assert len({each["results"] for each in plain}) == len(inputs)
    assert lift(accelerator, executable).run(inputs) == plain


def test_products_in_place() -> None:
    """The second time they read what the first has not written yet, as runs do."""
    octets, base = 32, 64
    program = Assembler()
    begin(program)
    request_input(program, "image", INPUT_BYTES)
    take(program, INPUT_ROW)
    barrier(program)
    fill(program, INPUT_ROW, base // 4, octets // 4)
    barrier(program)
    program.tile(MAC, 1 << TILE, in_place(octets, 2) | {"output_scale": 0.5})
    barrier(program)
    send_output(program, "results", base // 4, {TILE: octets // 4})
    end(program)
    executable = Executable(
        instruction_bitstreams=(program.chunk(),),
        batch_size=1,
        input_layers=(Layer(name="image", size_bytes=INPUT_BYTES),),
        output_layers=(Layer(name="results", size_bytes=octets, any_layer=OutputLayer()),),
    )
    accelerator = Accelerator()
    lanes = np.array([1 << 8 * lane for lane in range(4)], np.uint32)
    accelerator.preload_wide(TILE, 0, lanes.tobytes())
    inputs = [{"image": np.random.default_rng(k).bytes(INPUT_BYTES)} for k in range(3)]
    plain = [accelerator.run(executable, each).outputs for each in inputs]
    for each, outputs in zip(inputs, plain, strict=True):
        given = np.frombuffer(each["image"], np.uint8)[:octets].astype(int)
        assert list(outputs["results"]) == np.rint((given + 1) / 2).astype(int).tolist()
    assert lift(accelerator, executable).run(inputs) == plain
