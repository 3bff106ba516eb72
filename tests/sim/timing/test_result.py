"""What the event model says of a run agrees with itself, and with what the program holds."""

from __future__ import annotations

import averaging_program as sample
import numpy as np
import pytest
from darwinn_formats.darwinn import Executable
from darwinn_sim import timing
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.timing import stations
from darwinn_sim.timing.result import Timing
from darwinn_sim.timing.stations import Cause
from darwinn_testbench.compiler.network import Sample, random_convolution, random_dense
from darwinn_testbench.compiler.package import compile_network
from slow_model import tensor_unit as slow

ROW_WORDS = 64
SETTINGS = (("beagle-max", None), ("beagle-max", "usb3"), ("harness", None))


def parts_of(network: Sample) -> tuple[Executable, ...]:
    return tuple(compile_network(network).executables)


PROGRAMS = {
    "averages": sample.executable(),
    "in two chunks": sample.executable(split=20),
    **dict(zip(("dense", "its parameters"), parts_of(random_dense([20, 70, 10], 0)), strict=True)),
    "convolution": parts_of(random_convolution(4, 6, 8, 20, 1))[0],
}


def test_rows_and_words_on_the_ring() -> None:
    """A row of inputs to the tile, and a row of outputs from it."""
    result = timing.simulate(sample.executable())
    assert (result.ring_rows, result.ring_words) == (2, 2 * ROW_WORDS)


@pytest.mark.parametrize(("chip", "link"), SETTINGS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_result(name: str, chip: str, link: str | None) -> None:
    executable = PROGRAMS[name]
    description, host = timing.chip_description(chip), timing.host_link(link) if link else None
    result = timing.simulate(executable, description, host, spans=True)
    assert (result.chip, result.host) == (description, host)
    check_stations(result)
    check_transfers(result, executable)
    check_executions(result)
    check_layers(result)
    check_seconds(result)
    check_bound(result)
    plain = timing.simulate(executable, description, host)
    assert (plain.cycles, len(plain.spans)) == (result.cycles, 0)
    assert np.array_equal(plain.executions, result.executions)


def check_stations(result: Timing) -> None:
    """Each has spent every cycle, once."""
    assert (result.tile_usage.sum(axis=2) == result.cycles).all()
    assert (result.chip_usage.sum(axis=1) == result.cycles).all()
    assert (result.tile_usage >= 0).all()
    assert (result.chip_usage >= 0).all()
    # The writer has no instructions: where the tensor unit has none, it computes nothing either.
    assert not result.tile_usage[:, stations.WRITER, Cause.FINISHED].any()
    assert 0 < result.ring_busy < result.cycles
    assert result.ring_rows <= result.ring_words <= ROW_WORDS * result.ring_rows
    totals = {cause: int(result.tile_usage[:, 1, cause].sum()) for cause in Cause}
    assert result.waiting() == totals


def check_transfers(result: Timing, executable: Executable) -> None:
    """All bytes of the program, its layers and parameters, one interrupt; the last one ends it."""
    moved = dict.fromkeys(TransferKind, 0)
    by_direction = dict.fromkeys(TransferDirection, 0)
    for transfer in result.transfers:
        moved[transfer.kind] += transfer.size
        by_direction[transfer.direction] += transfer.size
        assert 0 <= transfer.start <= transfer.end <= result.cycles
        # The host may send data before they are asked for.
        begins = transfer.direction is TransferDirection.OUTFEED
        assert -1 <= transfer.issued <= (transfer.start if begins else result.cycles)
        outbound = transfer.kind in (TransferKind.OUTPUT, TransferKind.INTERRUPT)
        assert (transfer.direction is TransferDirection.OUTFEED) is outbound
        asked_by_host = transfer.kind is TransferKind.INSTRUCTION
        assert (transfer.issued < 0) is asked_by_host
    chunks = [t.number for t in result.transfers if t.kind is TransferKind.INSTRUCTION]
    assert chunks == list(range(len(executable.instruction_bitstreams)))
    sizes = [len(each.bitstream) for each in executable.instruction_bitstreams]
    assert moved[TransferKind.INSTRUCTION] == sum(sizes)
    assert moved[TransferKind.PARAMETER] == len(executable.parameters)
    given = sum(each.size_bytes for each in executable.input_layers)
    assert given <= moved[TransferKind.INPUT] < given + 256
    taken = sum(each.size_bytes for each in executable.output_layers)
    assert moved[TransferKind.OUTPUT] == taken
    interrupts = [t for t in result.transfers if t.kind is TransferKind.INTERRUPT]
    assert [(each.number, each.size) for each in interrupts] == [(0, 0)]
    assert max(transfer.end for transfer in result.transfers) == result.cycles
    links = [int(result.chip_elements[k]) for k in (stations.LINK_IN, stations.LINK_OUT)]
    assert links == [by_direction[each] for each in TransferDirection]


def check_executions(result: Timing) -> None:
    """They are the spans, without those of whoever hands an instruction on."""
    spans = result.spans
    assert (np.diff(spans["start"]) >= 0).all()
    assert (spans["end"] <= result.cycles).all()
    own = spans[spans["station"] != 0]
    assert (own["start"] < own["end"]).all()
    for number, (count, start, end) in enumerate(result.executions.tolist()):
        found = own[own["instruction"] == number]
        assert count == len(found)
        expected = (int(found["start"].min()), int(found["end"].max())) if count else (-1, -1)
        assert (start, end) == expected
    used = np.zeros_like(result.tile_usage)
    for span in spans[spans["tile"] >= 0]:
        used[span["tile"], span["station"]] += span["spent"]
    assert (used >= 0).all()
    assert (used <= result.tile_usage)[:, :, : Cause.FINISHED].all()
    iterations = result.tile_elements[:, stations.TENSOR]
    assert result.tensor_iterations == iterations.sum()


def check_layers(result: Timing) -> None:
    """What their instructions are, by the decoded program."""
    operations = [chunk[k] for chunk in result.program.chunks for k in range(len(chunk))]
    tensor = [
        k
        for k, each in enumerate(operations)
        if each.instruction.name.startswith("Tensor") and result.executions[k, 0]
    ]
    assert sum(each.iterations for each in result.layers) == result.tensor_iterations
    iterations = products = 0
    for k in tensor:
        runs = int(result.executions[k, 0])
        fields = dict(operations[k].values)
        elements = slow.main_elements(fields)
        wide = operations[k]["parameter_16bit"] + operations[k]["activation_16bit"]
        lanes = sum(slow.lanes(fields, each.index) for each in elements)
        iterations += runs * len(elements)
        products += runs * lanes * len(slow.working(fields, wide))
    assert result.tensor_iterations == iterations
    assert sum(each.products for each in result.layers) == products
    peak = 16 * 64 * 4 * result.cycles
    assert result.utilisation == products / peak
    if tensor:
        executed = result.executions[tensor]
        assert min(each.start for each in result.layers) == executed[:, 1].min()
        assert max(each.end for each in result.layers) == executed[:, 2].max()
    cycles = sum((each.cycles for each in result.layers), np.zeros(len(Cause), np.int64))
    assert np.array_equal(cycles, result.instructions[tensor].sum(axis=0))
    for number, each in enumerate(result.layers):
        assert each.number == number
        assert 0 <= each.start < each.end <= result.cycles
        assert 0 < each.busiest <= each.cycles[Cause.BUSY]


def check_seconds(result: Timing) -> None:
    clock = result.chip.clock.value
    fixed = result.host.fixed_seconds.value if result.host else 0.0
    assert result.device_seconds == result.cycles / clock
    assert result.fixed_seconds == fixed
    copying = result.host.output_copy_seconds.value if result.host else 0.0
    assert result.copy_seconds == copying * result.output_copies
    assert result.seconds == result.cycles / clock + fixed + result.copy_seconds
    assert result.fixed_share == pytest.approx(fixed / result.seconds)


def check_bound(result: Timing) -> None:
    """Parts of a run, each by itself, are what the run has of them."""
    bound = timing.static_bound(result.program, result.program.sizes, result.chip, result.host)
    assert bound.tensor == result.tile_elements[:, stations.TENSOR].max()
    # Without loops: all bundles, but the first and the last of a chunk, and those behind its halt.
    assert bound.scalar == sum(chunk.bundles - 6 for chunk in result.program.chunks)
    sizes = dict.fromkeys(TransferKind, 0)
    for transfer in result.transfers:
        sizes[transfer.kind] += transfer.size
    inwards = outwards = 0.0
    if result.host:
        inwards = result.chip.clock.value / result.host.bytes_per_second_in.value
        outwards = result.chip.clock.value / result.host.bytes_per_second_out.value
    assert bound.instructions == pytest.approx(sizes[TransferKind.INSTRUCTION] * inwards)
    moved = sizes[TransferKind.INPUT] + sizes[TransferKind.PARAMETER]
    assert bound.inputs == pytest.approx(moved * inwards)
    assert bound.outputs == pytest.approx(sizes[TransferKind.OUTPUT] * outwards)
    computing = max(bound.tensor, bound.scalar, bound.inputs)
    assert bound.lower == max(bound.instructions + computing, bound.outputs) <= result.cycles
    on_chip = bound.tensor + bound.scalar
    assert bound.estimate == pytest.approx(1.29 * on_chip + bound.instructions + bound.inputs)


def test_a_run_of_no_time_has_no_shares() -> None:
    """As a program that is stopped before its first cycle."""
    whole = timing.simulate(sample.executable())
    fields = {name: getattr(whole, name) for name in Timing.__dataclass_fields__}
    nothing = Timing(**fields | {"cycles": 0})
    assert (nothing.seconds, nothing.fixed_share, nothing.utilisation) == (0.0, 0.0, 0.0)
