"""Milliseconds of an inference where many go through one program: lifted, run, and in LiteRT.

    python -m benchmarks.many_inputs [--inputs N] [--repeat N] [MODEL...]

Reads the models (names, or files) from the folder that DARWINN_CORPUS names; MobileNet v1 1.0
without any. Times are processor time of this process, LiteRT's with one thread, each the best of N;
"lifting" is what is spent once, "peak" the most memory that the process has used. The outputs of
both ways are compared. All of it is on one core. A model with variables has no such figures: its
inferences follow from each other, so they are all run. Exits with 1 if an output differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from darwinn_sim.lifting.program import lift
from darwinn_sim.lifting.walk import NotLifted
from darwinn_testbench.chip.inputs import TensorMap, random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Session
from threadpoolctl import threadpool_limits

from benchmarks.common import (
    MIB,
    alone,
    corpus,
    machine_and_load,
    model_file,
    parser,
    peak_bytes,
    positive,
)

_DEFAULT = "mobilenet_v1_1.0_224_quant_embedding_extractor"
_RUN = 4
"""Inputs that are run one by one, to be compared."""


@dataclass(frozen=True)
class Result:
    """Seconds: of lifting, of an input among many, of one alone, and of a run."""

    lifting: float
    among_many: float
    single: float
    run: float
    equal: bool
    peak: int


def best(action: Callable[[], object], repeat: int) -> float:
    """Processor seconds of the quickest of some calls."""
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return min(times)


def refuse_variables(model: BoundModel) -> None:
    """Do not lift what no session or command lifts, though its program by itself could be."""
    if model.states:
        raise NotLifted(
            "it has variables, so each inference needs what the one before gave, and is run"
        )


def measure(path: Path, inputs: int, repeat: int) -> Result | str:
    """A model with as many inputs; a text if it is not lifted."""
    threadpool_limits(1)
    (model, *_) = open_models(path)
    session = Session(model, lifts=False)
    sets = [dict(each) for each in random_inputs(model.ports, seed=0, runs=inputs)]
    plain = [_infer_anew(session, each) for each in sets[:_RUN]]
    run = best(lambda: session.infer(sets[0]), repeat)
    executable = model.compiled.inference
    try:
        refuse_variables(model)
        # Once for what is compiled then.
        lift(session.accelerator, executable)
        begin = time.process_time()
        program = lift(session.accelerator, executable)
        lifting = time.process_time() - begin
    except NotLifted as error:
        return str(error)
    found: list[dict[str, bytes]] = []
    at_once = program.inputs_at_once(inputs)
    octets = [model.to_device(each) for each in sets]

    def all_of_them() -> None:
        found.clear()
        for first in range(0, inputs, at_once):
            found.extend(program.run(octets[first : first + at_once]))

    many = best(all_of_them, repeat) / inputs
    equal = all(map(_same(model), plain, found))
    single = best(lambda: program.run(octets[:1]), repeat + 1)
    return Result(lifting, many, single, run, equal, peak_bytes())


def _infer_anew(session: Session, tensors: TensorMap) -> TensorMap:
    """Outputs of an inference that is the first one, as all inputs of a lifted program are."""
    session.reset_states()
    return session.infer(tensors).outputs


def _same(model: BoundModel) -> Callable[[TensorMap, dict[str, bytes]], bool]:
    def same(one: TensorMap, other: dict[str, bytes]) -> bool:
        tensors = model.from_device(other)
        return all(np.array_equal(each, tensors[name]) for name, each in one.items())

    return same


def litert(path: Path, repeat: int) -> float | None:
    """Seconds of a model before compilation, if it is there and LiteRT executes it."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        return None
    if not path.exists():
        return None
    interpreter = Interpreter(str(path), num_threads=1)
    try:
        interpreter.allocate_tensors()
    except RuntimeError:
        return None  # an operator that only its own host has
    for each in interpreter.get_input_details():
        interpreter.set_tensor(each["index"], np.zeros(each["shape"], each["dtype"]))
    interpreter.invoke()
    return best(interpreter.invoke, repeat)


def main() -> int:
    """Print a line for each model."""
    options: argparse.ArgumentParser = parser(__doc__)
    options.add_argument("--inputs", type=positive, default=64, metavar="N")
    options.add_argument("models", nargs="*", default=[_DEFAULT], metavar="MODEL")
    chosen = options.parse_args()
    print(machine_and_load())
    print(f"{chosen.inputs} inputs")
    head = f"{'model':50}{'lifted':>9}{'one':>9}{'run':>9}{'LiteRT':>9}{'lifting':>9}{'peak':>10}"
    print(head)
    wrong = 0
    for name in chosen.models:
        path = model_file(name)
        result = alone(measure, path, chosen.inputs, chosen.repeat)
        if isinstance(result, str):
            print(f"{name:50} not lifted: {result}")
            continue
        original = path.name.removesuffix("_edgetpu.tflite") + ".tflite"
        other = alone(litert, corpus("tflite") / original, chosen.repeat)
        theirs = "-" if other is None else f"{1000 * other:.1f} ms"
        times = (result.among_many, result.single, result.run)
        shown = "".join(f"{1000 * each:6.1f} ms" for each in times)
        print(
            f"{name:50}{shown}{theirs:>9}{result.lifting:7.1f} s{result.peak / MIB:6.0f} MiB"
            f"{'' if result.equal else '  DIFFERS'}"
        )
        wrong += not result.equal
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
