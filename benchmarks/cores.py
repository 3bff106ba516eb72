"""How many times as fast as one core all cores make inferences, in the threads of one process.

    python -m benchmarks.cores [--inputs N] [--repeat N] [MODEL...]

"run": one inference that is run, and "after": one like those that follow when a session has made
64, on the lifted program; both on one core. "runs": a session for each core, of the same model,
each in its own thread, against one. "lifted": as many inputs for each core, N in all for one. By
the clock, the best of N; one core makes its matrices in one thread, too. Reads the models (names,
or files) from the folder that DARWINN_CORPUS names. Outputs of all threads are compared. Exits with
1 if one differs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from darwinn_sim.lifting.program import lift
from darwinn_sim.lifting.walk import NotLifted
from darwinn_testbench.chip.inputs import TensorMap, random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Session
from threadpoolctl import threadpool_limits

from benchmarks.common import alone, machine_and_load, model_file, parser, positive, seconds_of
from benchmarks.many_inputs import refuse_variables

_MODELS = (
    "mobilenet_v1_1.0_224_quant_embedding_extractor",
    "mobilenet_v2_1.0_224_quant",
    "mobilenet_v1_0.25_128_quant",
    "dense_1024",
    "bright_16x16",
)
_SECONDS = 0.5
"""How long one core is measured, at least."""


@dataclass(frozen=True)
class Result:
    """Seconds of one inference, and of one on the lifted program; how many times as fast all cores
    are; ``lifted`` may be why the model is not."""

    run: float
    after: float | None
    runs: float
    lifted: float | str
    equal: bool


def measure(path: Path, inputs: int, repeat: int) -> Result:
    """Both ways of a model."""
    threadpool_limits(1)
    cores = len(os.sched_getaffinity(0))
    (model, *_) = open_models(path)
    sets = [dict(each) for each in random_inputs(model.ports, seed=0, runs=inputs)]
    sessions = [Session(model, lifts=False) for _ in range(cores)]
    found: list[TensorMap] = [each.infer(sets[0]).outputs for each in sessions]
    run = min(seconds_of(lambda: sessions[0].infer(sets[0]), repeat))
    count = max(2, round(_SECONDS / run))

    def infer(session: Session) -> TensorMap:
        for _ in range(count):
            # Variables as at first: sessions make different numbers of inferences.
            session.reset_states()
            outputs = session.infer(sets[0]).outputs
        return outputs

    with ThreadPoolExecutor(cores) as pool:
        one = min(seconds_of(lambda: infer(sessions[0]), repeat))
        of_all = min(seconds_of(lambda: found.extend(pool.map(infer, sessions)), repeat))
    equal = all(_bytes(each) == _bytes(found[0]) for each in found)
    try:
        after, lifted, same = _lifted(model, sessions[0], sets, repeat)
    except NotLifted as error:
        return Result(run, None, cores * one / of_all, str(error), equal)
    return Result(run, after, cores * one / of_all, lifted, equal and same)


def _lifted(
    model: BoundModel, session: Session, sets: Sequence[TensorMap], repeat: int
) -> tuple[float, float, bool]:
    """Seconds of one inference, how many times as fast all cores are, and whether they give the
    same."""
    refuse_variables(model)
    cores = len(os.sched_getaffinity(0))
    program = lift(session.accelerator, model.compiled.inference)
    octets = [model.to_device(each) for each in sets]
    at_once = program.inputs_at_once(len(octets))
    found: list[dict[str, bytes]] = []

    def make(threads: int) -> Callable[[], None]:
        def made() -> None:
            found.clear()
            for first in range(0, len(octets), at_once):
                found.extend(program.run(octets[first : first + at_once] * threads, threads))

        return made

    # The first call makes room.
    after = min(seconds_of(lambda: program.run(octets[:1]), repeat + 1))
    one = min(seconds_of(make(1), repeat + 1))
    expected = {tuple(each.items()) for each in found}
    of_all = min(seconds_of(make(cores), repeat + 1))
    return after, cores * one / of_all, {tuple(each.items()) for each in found} == expected


def _bytes(outputs: TensorMap) -> dict[str, bytes]:
    return {name: np.asarray(each).tobytes() for name, each in outputs.items()}


def main() -> int:
    """Print a line for each model."""
    options = parser(__doc__)
    options.add_argument("--inputs", type=positive, default=64, metavar="N")
    options.add_argument("models", nargs="*", default=_MODELS, metavar="MODEL")
    chosen = options.parse_args()
    print(machine_and_load())
    print(f"{'model':50}{'run':>10}{'after':>10}{'runs':>7}{'lifted':>8}")
    wrong = 0
    for name in chosen.models:
        path = model_file(name)
        result = alone(measure, path, chosen.inputs, chosen.repeat)
        lifted = result.lifted if isinstance(result.lifted, str) else f"{result.lifted:8.2f}"
        different = "" if result.equal else "  DIFFERS"
        after = "-" if result.after is None else f"{1000 * result.after:.1f} ms"
        runs = f"{1000 * result.run:7.1f} ms{after:>10}{result.runs:7.2f}"
        print(f"{name:50}{runs}  {lifted}{different}")
        wrong += not result.equal
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
