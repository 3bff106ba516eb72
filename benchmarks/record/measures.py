"""What is kept of the project's speed: actions, each with a fixed calibration loop beside it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import compiled
from benchmarks.speed import Action, disassembling, inferring, loading, viewing

_TURN = 0.25
"""Processor seconds of a turn: what is shorter is done again until they are over."""


def sample(prepare: Callable[[Path], Action]) -> Callable[[], Action]:
    """``prepare`` of the sample's dense model, which needs no corpus."""

    def prepared() -> Action:
        from darwinn_testbench.compiler import sample

        folder = Path(tempfile.mkdtemp())
        sample(folder)
        return prepare(folder / "dense_edgetpu.tflite")

    return prepared


def counting_cycles(path: Path) -> Action:
    from darwinn_formats.darwinn import load
    from darwinn_sim import timing

    host = timing.host_link("usb3")
    (model, *_) = load(path).models
    return lambda: timing.simulate(model.inference, host=host)


def verifying(path: Path) -> Action:
    from darwinn_testbench.comparison.verify import verify

    reference = path.with_name(path.name.replace("_edgetpu", ""))
    return lambda: verify(path, reference)


def profiling(path: Path) -> Action:
    from darwinn_testbench.profile.profile import profile

    return lambda: profile(path, operations=False)


def inferring_in_rtl(path: Path) -> Action:
    from darwinn_rtl.chip.engine import RtlAccelerator
    from darwinn_testbench.chip.inputs import random_inputs
    from darwinn_testbench.chip.model import open_models
    from darwinn_testbench.chip.session import Device, Session

    (model,) = open_models(path)
    session = Session(model, device=Device(accelerator=RtlAccelerator()))
    session.load_parameters()
    (tensors,) = random_inputs(model.ports, seed=0, runs=1)
    return lambda: session.infer(tensors)


def of_many(inputs: int, path: Path) -> Action:
    """Runs of ``inputs`` inputs of a program that is lifted once."""
    from darwinn_sim.lifting.program import lift
    from darwinn_testbench.chip.inputs import random_inputs
    from darwinn_testbench.chip.model import open_models
    from darwinn_testbench.chip.session import Session

    (model, *_) = open_models(path)
    session = Session(model)
    sets = random_inputs(model.ports, seed=0, runs=inputs)
    octets = [model.to_device(dict(each)) for each in sets]
    session.infer(dict(next(iter(random_inputs(model.ports, seed=0, runs=1)))))
    program = lift(session.accelerator, model.compiled.inference)
    at_once = program.inputs_at_once(inputs)
    return lambda: [program.run(octets[k : k + at_once]) for k in range(0, inputs, at_once)]


def has_corpus() -> bool:
    return bool(os.environ.get("DARWINN_CORPUS"))


def has_rtl_toolchain() -> bool:
    from darwinn_rtl import toolchain

    return not toolchain.missing()


def always() -> bool:
    return True


@dataclass(frozen=True)
class Measure:
    """``prepare`` sets up what is not measured, and returns what is; where it ``can_be`` done."""

    name: str
    prepare: Callable[[], Action]
    can_be: Callable[[], bool] = always


def _real(name: str, model: str, prepare: Callable[[Path], Action]) -> Measure:
    return Measure(name, lambda: prepare(compiled(model)), has_corpus)


_V1 = "mobilenet_v1_1.0_224_quant_embedding_extractor"
_V2 = "mobilenet_v2_1.0_224_quant"

MEASURES = (
    Measure("sample: load", sample(loading)),
    Measure("sample: inference", sample(inferring)),
    Measure("sample: cycles", sample(counting_cycles)),
    Measure("sample: verify with reference", sample(verifying)),
    Measure("sample: profile", sample(profiling)),
    Measure("sample: inference in RTL", sample(inferring_in_rtl), has_rtl_toolchain),
    _real("mobilenet_v2: load", _V2, loading),
    _real("mobilenet_v2: disassembly", _V2, disassembling),
    _real("dense_1024: inference", "dense_1024", inferring),
    _real("mobilenet_v1: inference", _V1, inferring),
    _real("mobilenet_v1: lifted inference", _V1, partial(of_many, 1)),
    _real("mobilenet_v1: 16 inputs", _V1, partial(of_many, 16)),
    _real("mobilenet_v1: cycles", _V1, counting_cycles),
    _real("mobilenet_v2: inference", _V2, inferring),
    _real("mobilenet_v2: cycles", _V2, counting_cycles),
    _real("mobilenet_v2: layers", _V2, viewing),
    _real("deeplabv3: cycles", "deeplabv3_mnv2_dm05_pascal_quant", counting_cycles),
)


def calibration() -> None:
    """A fixed loop of what the project's work is made of: products, copies, and plain Python."""
    factor = np.ones((192, 192), np.float32)
    for _ in range(6):
        factor = factor @ factor * np.float32(1 / 192)
    octets = np.zeros(1 << 22, np.uint8)
    for _ in range(4):
        octets = octets[::-1].copy()
    total = 0
    for number in range(100_000):
        total += number & 7


def _turn(action: Action) -> float:
    """Processor seconds of the quickest call within a turn."""
    least, end = float("inf"), time.process_time() + _TURN
    while True:
        begin = time.process_time()
        action()
        now = time.process_time()
        least = min(least, now - begin)
        if now >= end:
            return least


def turns(action: Action, repeat: int) -> Iterator[tuple[float, float]]:
    """Seconds of the calibration loop and of the action, in turn."""
    action()
    for _ in range(repeat):
        yield _turn(calibration), _turn(action)


def measured(number: int, repeat: int) -> tuple[float, float]:
    """Least processor seconds of the calibration loop and of measure ``number``.

    By one thread: those of the library of matrices wait for each other where the machine is busy,
    and that is processor time too. The loop took eight times as long.
    """
    threadpool_limits(1)
    loops, actions = zip(*turns(MEASURES[number].prepare(), repeat), strict=True)
    return min(loops), min(actions)
