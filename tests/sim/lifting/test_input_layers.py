"""Programs of several input layers, of any size, and of more bytes than those."""

from __future__ import annotations

import pytest
from darwinn_formats.darwinn import Description, DmaHints, Executable, Layer, OutputLayer
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.lifting.program import lift
from darwinn_sim.lifting.walk import NotLifted
from darwinn_testbench.compiler.assembler import Assembler, Transfer, signal, walk
from darwinn_testbench.compiler.program import (
    barrier,
    begin,
    end,
    request_input,
    send_input,
    send_output,
)
from lifted_runs import assert_same

ROW = 5
WORDS = chip.LANES // chip.WORD_BYTES


class _Divided(Assembler):
    """Asks for several layers in place of one input."""

    def __init__(self, moved: dict[str, int]) -> None:
        super().__init__()
        self._moved = moved

    def transfer(self, transfer: Transfer) -> None:
        kind = Description.BASE_ADDRESS_INPUT_ACTIVATION
        if transfer.buffer != kind:
            super().transfer(transfer)
            return
        for name, size in self._moved.items():
            super().transfer(Transfer(kind, name, size, DescriptorTag.INPUT))


def summed(moved: dict[str, int], sizes: dict[str, int], *, hinted: bool = True) -> Executable:
    """A program that moves a row of several layers, of ``sizes``, and sums the bytes of a lane."""
    program = _Divided(moved)
    begin(program)
    request_input(program, "", chip.ROW_BYTES)
    program.tile("RingConsumerA", 1, {"wide_write_base": ROW}, signal())
    send_input(program, 0, chip.ROW_BYTES, 1)
    barrier(program)
    program.tile(
        "TensorSum",
        1,
        walk("TensorSum", "narrow_write", 0, [(WORDS, chip.WORD_BYTES)]),
        {"parameter_read_base": 4 * ROW, "partial_sum_read": 3, "last_block_lanes": 63},
        {"output_scale": 0.25, "high_clip": 255.0, "low_clip": 0.0},
    )
    barrier(program)
    send_output(program, "results", 0, {0: WORDS})
    end(program)
    return Executable(
        instruction_bitstreams=(program.chunk(),),
        batch_size=1,
        input_layers=tuple(Layer(name=name, size_bytes=size) for name, size in sizes.items()),
        output_layers=(Layer(name="results", size_bytes=chip.LANES, any_layer=OutputLayer()),),
        dma_hints=program.hints() if hinted else DmaHints(),
    )


@pytest.mark.parametrize(
    ("moved", "sizes"),
    [
        ({"a": 8, "b": 248}, {"a": 8, "b": 248}),
        ({"a": 6, "b": 250}, {"a": 6, "b": 250}),
        ({"a": 8, "b": 248}, {"a": 5, "b": 248}),
        ({"a": 8, "b": 8, "c": 240}, {"a": 1, "b": 1, "c": 239}),
    ],
)
def test_layers_of_any_size_are_told_apart(moved: dict[str, int], sizes: dict[str, int]) -> None:
    """A program may take more bytes than a layer has, which are 0."""
    accelerator, executable = Accelerator(), summed(moved, sizes)
    accelerator.run(executable, {name: bytes(size) for name, size in sizes.items()})
    assert_same(accelerator, executable, lift(accelerator, executable), 1)


def test_what_lies_around_a_buffer_is_no_input() -> None:
    """Without a hint nobody knows that the program takes more."""
    sizes = {"a": 5, "b": 248}
    accelerator = Accelerator()
    executable = summed({"a": 8, "b": 248}, sizes, hinted=False)
    accelerator.run(executable, {name: bytes(size) for name, size in sizes.items()})
    with pytest.raises(NotLifted, match="bytes that are another's in each run"):
        lift(accelerator, executable)
