"""A bare stream becomes the executable whose instructions it is."""

from __future__ import annotations

from types import SimpleNamespace

import averaging_program as sample
import pytest
from averaging_program import ADDRESS_REGISTERS, INPUT_BYTES, OUTPUT_BYTES, issue
from darwinn_formats.darwinn import Description, ExecutableType
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.bare_stream import StreamError, descriptors, executable_of
from darwinn_sim.errors import NotEnded


def chunks_of(program: list[sample.Operation] | None = None, split: int = 0) -> list[bytes]:
    bitstreams = sample.executable(program, split=split).instruction_bitstreams
    return [bytes(each.bitstream) for each in bitstreams]


def test_what_a_stream_asks_the_host_to_move() -> None:
    assert descriptors(chunks_of()) == [(1, 0, INPUT_BYTES), (3, 0, OUTPUT_BYTES), (4, 0, 0)]


@pytest.mark.parametrize("split", [0, 14])
def test_a_stream_is_linked_where_the_executable_is(split: int) -> None:
    whole = sample.executable(split=split)
    made = executable_of(chunks_of(split=split))
    assert (made.name, made.type, made.batch_size) == ("stream", ExecutableType.STAND_ALONE, 1)
    assert [
        (layer.name, layer.size_bytes, layer.y_dim, layer.x_dim, layer.z_dim)
        for layer in (*made.input_layers, *made.output_layers)
    ] == [
        ("input0", INPUT_BYTES, 1, 1, INPUT_BYTES),
        ("output0", OUTPUT_BYTES, 1, 1, OUTPUT_BYTES),
    ]
    names = {
        Description.BASE_ADDRESS_INPUT_ACTIVATION: "input0",
        Description.BASE_ADDRESS_OUTPUT_ACTIVATION: "output0",
    }
    for own, its in zip(made.instruction_bitstreams, whole.instruction_bitstreams, strict=True):
        assert bytes(own.bitstream) == bytes(its.bitstream)
        assert [
            (field.offset_bit, field.meta.desc, field.meta.name, field.meta.position)
            for field in own.field_offsets
        ] == [
            (field.offset_bit, field.meta.desc, names[field.meta.desc], field.meta.position)
            for field in its.field_offsets
        ]
    image = sample.images()()
    expected = Accelerator().run(whole, {"image": image}).outputs["averages"]
    assert Accelerator().run(made, {"input0": image}).outputs["output0"] == expected


def test_a_buffer_is_as_long_as_what_is_moved_of_it() -> None:
    """A second descriptor reads less of the same buffer: it is the same layer."""
    program = sample.operations()
    first = next(k for k, (name, _) in enumerate(program) if name == "RingInfeed")
    program[first:first] = issue(1, INPUT_BYTES // 2, ADDRESS_REGISTERS[sample.INPUT])
    made = executable_of(chunks_of(program))
    assert [layer.size_bytes for layer in made.input_layers] == [INPUT_BYTES]


def test_a_buffer_that_is_read_and_written_is_refused() -> None:
    output = ADDRESS_REGISTERS[sample.OUTPUT]
    program = [*sample.operations(), *issue(1, OUTPUT_BYTES, output)]
    with pytest.raises(StreamError, match="output0 is read and written"):
        executable_of(chunks_of(program))


def test_an_address_that_no_linker_could_fill_in_is_refused() -> None:
    program = [*sample.operations(), *issue(1, 8, None)]
    with pytest.raises(StreamError, match="not made of two immediates"):
        executable_of(chunks_of(program))


def with_moves(*more: sample.Operation) -> list[sample.Operation]:
    """The program with further registers that a linker could fill in, 7 to 12, and ``more``."""
    move = {"alu_op": 15, "alu_immediate": 1}
    moves = [("Scalar", move | {"alu_destination": register}) for register in range(7, 13)]
    return [*moves, *sample.operations(), *more]


def test_a_half_of_two_addresses_is_refused() -> None:
    program = with_moves(*issue(1, 8, (7, 8)), *issue(1, 8, (9, 8)))
    with pytest.raises(StreamError, match="is part of several addresses"):
        executable_of(chunks_of(program))


def test_buffers_are_counted_by_what_they_are() -> None:
    program = with_moves(
        *issue(3, 8, (7, 8)),
        *issue(2, 24, (9, 10)),
        *issue(1, 40, (11, 12)),
        *issue(2, 32, (9, 10)),
    )
    made = executable_of(chunks_of(program))
    assert [(each.name, each.size_bytes) for each in made.input_layers] == [
        ("input0", INPUT_BYTES),
        ("parameters0", 32),
        ("input1", 40),
    ]
    assert [(each.name, each.size_bytes) for each in made.output_layers] == [
        ("output0", OUTPUT_BYTES),
        ("output1", 8),
    ]
    (bitstream,) = made.instruction_bitstreams
    fields = [
        (each.offset_bit, each.meta.name, each.meta.position) for each in bitstream.field_offsets
    ]
    names = ["output1", "parameters0", "input1", "input0", "output0"]
    assert fields == [
        (128 * (1 + 2 * k + half) + 70, name, half)
        for k, name in enumerate(names)
        for half in (0, 1)
    ]


def test_immediates_are_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that has passed its limit; that of the runs themselves is another.
    late = SimpleNamespace(passed=lambda: "1 s (--max-seconds)")
    monkeypatch.setattr("darwinn_sim.bare_stream.Clock", lambda: late)
    with pytest.raises(NotEnded, match=r"1 s \(--max-seconds\).*one after another"):
        executable_of(chunks_of())


def test_an_immediate_that_is_no_address_is_left_alone() -> None:
    count = {"alu_op": 15, "alu_immediate": 1, "alu_destination": 13}
    program = [("Scalar", count), *sample.operations()]
    made = executable_of(chunks_of(program))
    (bitstream,) = made.instruction_bitstreams
    assert [each.offset_bit for each in bitstream.field_offsets] == [
        128 * bundle + 70 for bundle in (2, 3, 4, 5)
    ]


def test_an_immediate_with_which_the_stream_fails_is_no_address() -> None:
    """A place in scalar memory: with more, it is beyond."""
    place = {"alu_op": 15, "alu_immediate": 1, "alu_destination": 13, "alu_b": 100}
    store = {"store_op": 2, "store_address": 13, "store_register": 13}
    program = [("Scalar", place), ("Scalar", store), *sample.operations()]
    (bitstream,) = executable_of(chunks_of(program)).instruction_bitstreams
    assert [each.offset_bit for each in bitstream.field_offsets] == [
        128 * bundle + 70 for bundle in (3, 4, 5, 6)
    ]
