"""Lifted programs beside runs of them."""

from __future__ import annotations

import numpy as np
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Executable
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.buffers import batches_of, layer_bytes
from darwinn_sim.host.output_check import differing_output
from darwinn_sim.lifting import program
from darwinn_sim.lifting.program import LiftedProgram
from darwinn_testbench.compiler.network import Sample
from darwinn_testbench.compiler.package import compile_network, compile_stand_alone
from pytest import MonkeyPatch


def inputs_of(executable: Executable, number: int, seed: int) -> list[dict[str, bytes]]:
    """Random bytes of the input layers, and at last what makes all sums large."""
    random = np.random.default_rng(seed)
    batches = batches_of(executable)
    sizes = {each.name: layer_bytes(each) * batches for each in executable.input_layers}
    drawn = [{name: random.bytes(size) for name, size in sizes.items()} for _ in range(number)]
    return [*drawn, {name: b"\xff" * size for name, size in sizes.items()}]


def assert_same(
    accelerator: Accelerator, executable: Executable, lifted: LiftedProgram, seed: int
) -> None:
    inputs = inputs_of(executable, 3, seed)
    plain = [accelerator.run(executable, each).outputs for each in inputs]
    alone = lifted.run(inputs[:1])
    for threads in (1, 3, 5):
        with MonkeyPatch.context() as patch:
            patch.setattr(program, "_SHARED", 1)
            found = [*lifted.run(inputs, threads), *alone]
        for one, other in zip([*plain, plain[0]], found, strict=True):
            assert differing_output(executable, one, other) is None


def ready(network: Sample, stands_alone: bool) -> tuple[Accelerator, Executable]:
    """A chip that has done one inference."""
    package = compile_stand_alone(network) if stands_alone else compile_network(network)
    (model,) = darwinn.load(darwinn.dump(package)).models
    accelerator = Accelerator()
    if model.caching is not None:
        accelerator.run(model.caching, {})
    accelerator.run(model.inference, inputs_of(model.inference, 0, 0)[0])
    return accelerator, model.inference
