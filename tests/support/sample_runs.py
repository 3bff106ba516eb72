"""Running compiled samples in tests, and changing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from darwinn_formats import darwinn, tflite
from darwinn_formats.darwinn import CompiledModel, Executable, Package, to_device_input, to_tensor
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.dma_trace import compare_with_hints
from darwinn_sim.isa.codec import decode, encode
from darwinn_sim.isa.table import BY_NAME
from darwinn_testbench.compiler import uncompiled
from darwinn_testbench.compiler.network import Sample
from numpy.typing import NDArray

Array = NDArray[Any]


def random_input(network: Sample, seed: int) -> Array:
    """A random input of the network, in the shape of its tensor."""
    graph = tflite.load(uncompiled(network)).subgraphs[0]
    tensor = graph.tensors[graph.inputs[0]]
    limits = np.iinfo(tflite.DTYPES[tensor.type])
    random = np.random.default_rng(seed)
    return random.integers(limits.min, limits.max + 1, tensor.shape, limits.dtype)


def expected(network: Sample, image: Array) -> Array:
    """The output by the chip-arithmetic reference, flat."""
    reference = ChipArithmetic(tflite.load(uncompiled(network)))
    values = reference.run([image])
    assert not values.missing
    return values[reference.network.outputs[0]].ravel()


@dataclass
class Chip:
    """A simulated chip, strict, on which a compiled model was loaded."""

    model: CompiledModel

    def __post_init__(self) -> None:
        self.accelerator = Accelerator(strict=True)
        if self.model.caching is not None:
            self._run(self.model.caching, {})

    def infer(self, image: Array) -> Array:
        """The output, flat, after checking the DMA."""
        executable = self.model.inference
        (source,), (result,) = executable.input_layers, executable.output_layers
        tensor = image.reshape(source.y_dim, source.x_dim, source.z_dim)
        outputs = self._run(executable, {source.name: to_device_input(source, tensor)})
        return to_tensor(result, outputs[result.name]).ravel()

    def _run(self, executable: Executable, inputs: dict[str, bytes]) -> dict[str, bytes]:
        run = self.accelerator.run(executable, inputs)
        assert compare_with_hints(executable.dma_hints, run.transfers).equal
        assert run.interrupts == [0]
        return run.outputs


def chips(package: Package) -> list[Chip]:
    """A chip for each model of a package, read back from its bytes."""
    return [Chip(model) for model in darwinn.load(darwinn.dump(package)).models]


def change(package: Package, which: int, edit: Callable[[Executable], Executable]) -> Package:
    """The package with executable number ``which`` changed."""
    executables = list(package.executables)
    executables[which] = edit(executables[which])
    return Package.of(*executables, min_runtime_version=package.min_runtime_version)


def set_field(
    name: str, field: str, value: int | Sequence[int], *, index: int = 0
) -> Callable[[Executable], Executable]:
    """An edit: field of the ``index``-th instruction of that name (negative: from the end)."""

    def edit(executable: Executable) -> Executable:
        (chunk,) = executable.instruction_bitstreams
        program = decode(chunk.bitstream)
        column = program.columns[BY_NAME[name].opcode][field]
        assert not np.array_equal(column[index], value), "the mutation changes nothing"
        column[index] = value
        return replace(
            executable, instruction_bitstreams=(replace(chunk, bitstream=encode(program)),)
        )

    return edit


def flip_parameter(position: int) -> Callable[[Executable], Executable]:
    """An edit: all bits of one byte of the parameters."""

    def edit(executable: Executable) -> Executable:
        data = bytearray(executable.parameters)
        data[position] ^= 0xFF
        return replace(executable, parameters=bytes(data))

    return edit
