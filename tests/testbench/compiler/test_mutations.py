"""What is wrong with a compiled model is found, and called by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import (
    DmaDescriptorHint,
    DmaHints,
    Executable,
    Package,
)
from darwinn_formats.errors import FormatError
from darwinn_sim.errors import Deadlock
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.codes import ScalarFlag
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense, uncompiled
from darwinn_testbench.compiler.network import Sample
from darwinn_testbench.report import Report, Verdict
from sample_runs import Chip, change, flip_parameter, random_input, set_field

# Four rows of input and three of output words a tile, so that two places for rows have to be
# freed again: then every signal matters.
DENSE = random_dense([1000, 160, 72], 0)
CONVOLUTION = random_convolution(16, 64, 8, 20, 0)
INFERENCE, CACHING = 0, 1
ROW_BYTES = 256

Edit = Callable[[Executable], Executable]


def judged(
    network: Sample, package: Package, folder: Path, *, referenced: bool = True
) -> Report[OutputRow]:
    reference = folder / "model.tflite"
    reference.write_bytes(uncompiled(network))
    given = reference if referenced else None
    return verify(darwinn.dump(package), given, strict=True, runs=1)


@pytest.mark.parametrize("network", [DENSE, CONVOLUTION], ids=lambda network: network.name)
def test_unchanged_models_pass(network: Sample, tmp_path: Path) -> None:
    assert judged(network, compile_network(network), tmp_path).verdict is Verdict.PROVED


# The blob begins with the rows of tile 0: scales, biases, zero points, weights. One layer, so that
# no ReLU hides a difference.
@pytest.mark.parametrize(
    ("what", "position"),
    [
        ("scale", 4 * 5 + 3),
        ("bias", ROW_BYTES + 4 * 5 + 2),
        ("zero point", 2 * ROW_BYTES + 4 * 5),
        ("weight", 3 * ROW_BYTES + 4 * 5 + 1),
    ],
)
def test_a_wrong_parameter_byte_is_a_mismatch(what: str, position: int, tmp_path: Path) -> None:
    network = random_dense([16, 70], 0)
    package = change(compile_network(network), CACHING, flip_parameter(position))
    report = judged(network, package, tmp_path)
    assert report.verdict is Verdict.MISMATCH, what
    (row,) = report.rows
    assert row.chip_arithmetic is not None
    assert row.chip_arithmetic.differing > 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("output_scale", 0x3F800000),
        ("high_clip", 0x42000000),
        ("activation_zero_point", 0),
        ("output_zero_point", 1),
    ],
)
def test_a_wrong_constant_of_an_instruction_is_a_mismatch(
    field: str, value: int, tmp_path: Path
) -> None:
    package = change(compile_network(CONVOLUTION), INFERENCE, set_field("TensorMac", field, value))
    report = judged(CONVOLUTION, package, tmp_path)
    assert report.verdict is Verdict.MISMATCH


def fault(network: Sample, which: int, edit: Edit) -> str:
    """The deadlock that a change leads to."""
    package = change(compile_network(network), which, edit)
    (model,) = darwinn.load(darwinn.dump(package)).models
    with pytest.raises(Deadlock) as info:
        Chip(model).infer(random_input(network, 0))
    return str(info.value)


def producers(network: Sample, which: int) -> list[tuple[str, str, int]]:
    """Every producer of an executable that signals: instruction, field, number."""
    (chunk,) = compile_network(network).executables[which].instruction_bitstreams
    return [
        (INSTRUCTIONS[opcode].name, f"{producer}_increment", index)
        for opcode, columns in decode(chunk.bitstream).columns.items()
        for producer in INSTRUCTIONS[opcode].producers
        for index, increments in enumerate(columns[f"{producer}_increment"])
        if increments
    ]


# One of each kind and network. The infeed frees places that only inputs beyond the buffer need,
# and the tiles of the dense network send one row each, for which nobody needs a free place.
UNNEEDED = {
    ("dense", "RingInfeed", "producer_increment"),
    ("dense", "RingProducer", "row_producer_increment"),
    ("convolution", "RingInfeed", "producer_increment"),
}
PROGRAMS: list[tuple[Sample, int]] = [
    (DENSE, INFERENCE),
    (CONVOLUTION, INFERENCE),
    (DENSE, CACHING),
]
SIGNALS = [
    (network, which, *one)
    for network, which in PROGRAMS
    for one in {one[:2]: one for one in producers(network, which)}.values()
    if (network.name, *one[:2]) not in UNNEEDED
]


@pytest.mark.parametrize(
    ("network", "which", "name", "field", "index"),
    SIGNALS,
    ids=[f"{network.name}-{which}-{name}-{field}" for network, which, name, field, _ in SIGNALS],
)
def test_a_missing_signal_is_a_deadlock(
    network: Sample, which: int, name: str, field: str, index: int
) -> None:
    text = fault(network, which, set_field(name, field, 0, index=index))
    assert "expected" in text or "tile fence" in text


def test_every_flag_that_is_signalled_is_awaited() -> None:
    for network in (DENSE, CONVOLUTION):
        for executable in compile_network(network).executables:
            (chunk,) = executable.instruction_bitstreams
            signalled, awaited = set(), set()
            for opcode, columns in decode(chunk.bitstream).columns.items():
                instruction = INSTRUCTIONS[opcode]
                kind = "scalar core" if instruction.opcode >= BY_NAME["Scalar"].opcode else "tile"
                for signal in instruction.signals:
                    applies = columns[f"{signal.producer}_increment"] == 1
                    if signal.field:
                        applies &= columns[signal.field] == signal.value
                    if applies.any():
                        place = "tile" if signal.scope == "all tiles" else signal.scope
                        signalled.add((place, int(signal.flag)))
                if "watcher_valid" in columns:
                    flags = columns["watcher_flag"][columns["watcher_valid"] == 1]
                    awaited |= {(kind, int(flag)) for flag in flags}
                if "expected_valid" in columns:
                    awaited |= {
                        ("scalar core", int(flag))
                        for valid in columns["expected_valid"]
                        for flag in ScalarFlag
                        if valid >> flag & 1
                    }
            assert signalled <= awaited


@pytest.mark.parametrize("index", [0, -1])
def test_a_fence_that_counts_too_far_is_a_deadlock(index: int) -> None:
    text = fault(DENSE, INFERENCE, set_field("ScalarFence", "tile_fence_count", 2, index=index))
    assert "tile fence 2 of tiles" in text


def test_a_turn_that_nobody_takes_is_a_deadlock(tmp_path: Path) -> None:
    def edit(executable: Executable) -> Executable:
        (chunk,) = executable.instruction_bitstreams
        fences = decode(chunk.bitstream).columns[BY_NAME["ScalarFence"].opcode]
        (index,) = fences["expected_valid"].nonzero()[0]
        expected = fences["expected"][index].copy()
        expected[ScalarFlag.RING_PRODUCER_A] += 1
        return set_field("ScalarFence", "expected", expected, index=int(index))(executable)

    assert "ring_producer_a is 5, expected 6" in fault(DENSE, INFERENCE, edit)
    package = change(compile_network(DENSE), INFERENCE, edit)
    report = judged(DENSE, package, tmp_path)
    assert report.verdict is Verdict.FAULT
    assert report.message.startswith("deadlock")


def resize(old: int, new: int) -> Edit:
    """An edit: the size of a descriptor, which a scalar move loads."""

    def edit(executable: Executable) -> Executable:
        (chunk,) = executable.instruction_bitstreams
        moves = decode(chunk.bitstream).columns[BY_NAME["Scalar"].opcode]["alu_b"]
        (index,) = (moves == old).nonzero()[0]
        return set_field("Scalar", "alu_b", new, index=int(index))(executable)

    return edit


@pytest.mark.parametrize(
    ("old", "new", "verdict", "message"),
    [
        (1000, 992, Verdict.FAULT, "deadlock"),
        (1000, 1008, Verdict.FAULT, "that nothing has written"),
        (72, 80, Verdict.FAULT, "8 bytes not delivered"),
        (72, 64, Verdict.FAULT, "8 bytes wait for a descriptor"),
    ],
)
def test_a_wrong_transfer_size_is_caught(
    old: int, new: int, verdict: Verdict, message: str, tmp_path: Path
) -> None:
    report = judged(DENSE, change(compile_network(DENSE), INFERENCE, resize(old, new)), tmp_path)
    assert report.verdict is verdict
    assert message in report.message


def test_wrong_hints_are_a_mismatch_of_the_dma(tmp_path: Path) -> None:
    def edit(executable: Executable) -> Executable:
        first, source, *rest = executable.dma_hints.hints
        assert isinstance(source.any_hint, DmaDescriptorHint)
        wrong = replace(source, any_hint=replace(source.any_hint, size_in_bytes=996))
        return replace(executable, dma_hints=DmaHints((first, wrong, *rest), True))

    package = change(compile_network(DENSE), INFERENCE, edit)
    report = judged(DENSE, package, tmp_path, referenced=False)
    assert report.verdict is Verdict.MISMATCH
    assert "the DMA of 1 runs differs from the hints" in report.message


def test_another_network_is_refused_as_reference(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="is not the model before compilation"):
        judged(random_dense([1000, 160, 72], 1), compile_network(DENSE), tmp_path)


@pytest.mark.parametrize("value", [0, -1, 1 << 29, 2**31 - 1])
@pytest.mark.parametrize(
    "field", ["y_dim", "x_dim", "z_dim", "size_bytes", "execution_count_per_inference"]
)
@pytest.mark.parametrize("side", ["input_layers", "output_layers"])
def test_a_wrong_size_of_a_layer_is_found_before_memory_of_that_size_is_taken(
    side: str, field: str, value: int, tmp_path: Path
) -> None:
    def edit(executable: Executable) -> Executable:
        (layer,) = getattr(executable, side)
        layers: dict[str, Any] = {side: (replace(layer, **{field: value}),)}
        return replace(executable, **layers)

    package = change(compile_network(CONVOLUTION), INFERENCE, edit)
    with pytest.raises(FormatError, match=r"size_bytes"):
        judged(CONVOLUTION, package, tmp_path, referenced=False)
