"""No input makes the loader fail otherwise than with a FormatError, slowly, or by memory."""

from __future__ import annotations

from pathlib import Path

import damaged_files
import flatbuffers
import numpy as np
import pytest
from damaged_files import MEGABYTES_64, changes, drawn_by_night, peak_memory
from darwinn_formats import darwinn
from darwinn_formats.darwinn import FormatError
from darwinn_formats.flatbuffer import flexbuffer, view
from darwinn_formats.flatbuffer.writer import write_table

PARTS = 4
"""A sweep of a real file is cut so that it can run on several cores."""


def own_package() -> bytes:
    """A package under 4 KiB with everything in it that the schema has."""
    meta = darwinn.Meta(name="input", desc=darwinn.Description.BASE_ADDRESS_INPUT_ACTIVATION)
    move = (32 << 6 | 15 << 54 | 1 << 59).to_bytes(16, "little")
    scratch = darwinn.Meta(darwinn.Description.BASE_ADDRESS_SCRATCH)
    shape = darwinn.TensorShape((darwinn.Range(0, 0), darwinn.Range(0, 1), darwinn.Range(0, 3)))
    slices = darwinn.OutputShapeInfo((darwinn.TensorLayout(shape, (8, 4, 1)),), (0,))
    layout = darwinn.OutputLayout((0, 1), (0,), (0, 4), (0,), (0, 0), (4,))
    hints = tuple(
        darwinn.DmaHint(hint, darwinn.Direction.INFEED)
        for hint in (
            darwinn.InstructionHint(0),
            darwinn.DmaDescriptorHint(meta, 0, 8),
            darwinn.FenceHint(),
            darwinn.InterruptHint(darwinn.InterruptType.SCALAR_CORE_INT_0),
        )
    )
    numerics = darwinn.NumericsConstants(128, 0.5)
    signed = darwinn.DataType.SIGNED_FIXED_POINT8
    outputs = (
        darwinn.Layer("a", 8, 2, 1, 4, numerics, signed, darwinn.OutputLayer(layout)),
        darwinn.Layer(
            "b", 8, 1, 2, 4, numerics, signed, darwinn.OutputLayer(shape_info=slices), shape=shape
        ),
    )
    inference = darwinn.Executable(
        name="inference",
        serialized_model=b"model",
        batch_size=1,
        scratch_size_bytes=64,
        instruction_bitstreams=(
            darwinn.InstructionBitstream(
                move * 2, (darwinn.FieldOffset(meta, 70), darwinn.FieldOffset(scratch, 198))
            ),
        ),
        dma_hints=darwinn.DmaHints(hints, True),
        input_layers=(
            darwinn.Layer("input", 8, 1, 1, 8, numerics, any_layer=darwinn.InputLayer()),
        ),
        output_layers=outputs,
        chip="beagle",
        type=darwinn.ExecutableType.EXECUTION_ONLY,
        parameter_caching_token=7,
        estimated_cycles_64bit=2**40,
    )
    caching = darwinn.Executable(
        type=darwinn.ExecutableType.PARAMETER_CACHING,
        parameters=bytes(range(64)),
        parameter_caching_token=7,
    )
    inner = darwinn.Package.of(darwinn.Executable(name="alone"), compiler_version="1")
    package = darwinn.Package.of(
        inference,
        caching,
        virtual_chip_id=-1,
        multi_chip_package=(darwinn.SerializedPackage(inner),),
    )
    data = darwinn.dump(package)
    assert len(data) < 4096
    return data


@pytest.fixture(scope="module")
def gabor(corpus: Path) -> bytes:
    return (corpus / "darwinn" / "gabor_64x64_7k_4o_2s_edgetpu.tflite").read_bytes()


def check(data: bytes) -> darwinn.DarwinnFile | None:
    return damaged_files.check(darwinn.load, data)


def boundaries(data: bytes, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Where tables, vtables, vectors, strings and FlexBuffer values start and end."""
    found: set[int] = set()
    charge, extent, value = view.View.charge, view.View.extent, flexbuffer._Reader.value

    def charge_and_note(self: view.View, position: int, structure: int, memory: int) -> None:
        found.update((self.base + position, self.base + position + structure))
        charge(self, position, structure, memory)

    def extent_and_note(self: view.View, position: int) -> tuple[int, int]:
        start, end = extent(self, position)
        found.update((self.base + start, self.base + end))
        return start, end

    def value_and_note(
        self: flexbuffer._Reader, position: int, parent_width: int, packed_type: int, depth: int
    ) -> flexbuffer.Value:
        found.update((self.base + position, self.base + position + parent_width))
        return value(self, position, parent_width, packed_type, depth)

    with monkeypatch.context() as patch:
        patch.setattr(view.View, "charge", charge_and_note)
        patch.setattr(view.View, "extent", extent_and_note)
        patch.setattr(flexbuffer._Reader, "value", value_and_note)
        darwinn.load(data)
    return found


@pytest.mark.parametrize("source", ["own", "gabor"])
def test_every_truncation_is_refused_or_valid(
    source: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    data = own_package() if source == "own" else request.getfixturevalue("gabor")
    ends = set(range(0, len(data), 64)) | boundaries(data, monkeypatch)
    assert len(ends) > len(data) // 64 + 100
    for end in sorted(ends):
        loaded = check(data[:end])
        assert loaded is None or end == len(data)


@pytest.mark.parametrize("part", range(PARTS))
def test_bytes_of_a_real_file_may_be_changed(
    part: int, gabor: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte in and beside what the loader follows, and a sample of all the others.

    Those are parameters, instructions and padding, which the loader does not interpret.
    """
    followed = boundaries(gabor, monkeypatch)
    near = {place for end in followed for place in range(end - 4, end + 12)}
    near &= set(range(len(gabor)))
    far = [place for place in range(0, len(gabor), 7) if place not in near]
    assert len(near) > 2000
    changed = [*changes(gabor, 8, sorted(near)[part::PARTS]), *changes(gabor, 1, far[part::PARTS])]
    results = [check(each) is not None for each in changed]
    assert any(results)
    assert not all(results)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_every_byte_of_a_real_file_may_have_any_value(part: int, gabor: bytes) -> None:
    for changed in drawn_by_night(gabor, range(part, len(gabor), PARTS)):
        check(changed)


def test_every_byte_of_an_own_package_may_be_changed() -> None:
    results = [check(changed) is not None for changed in changes(own_package(), 3)]
    assert any(results)
    assert not all(results)


@pytest.mark.nightly
def test_every_byte_of_an_own_package_may_have_any_value() -> None:
    for changed in drawn_by_night(own_package()):
        check(changed)


def test_what_loads_can_be_used_or_is_refused() -> None:
    """A changed file that loads does not make linker, layouts or writer fail otherwise."""
    for changed in changes(own_package(), 1):
        loaded = check(changed)
        for package in loaded.packages if loaded else ():
            assert repr(darwinn.load(darwinn.dump(package)).packages) == repr((package,))
        for executable in loaded.executables if loaded else ():
            use(executable)


def use(executable: darwinn.Executable) -> None:
    try:
        buffers = darwinn.required_buffers(executable)
        darwinn.link(executable, dict.fromkeys(buffers, 2**63))
    except FormatError as error:
        assert error.offset is not None
    for layer in executable.output_layers:
        size = layer.size_bytes * layer.execution_count_per_inference
        if 0 <= size < 2**20:
            try:
                darwinn.to_tensor(layer, np.zeros(size, np.uint8))
            except FormatError as error:
                assert error.offset is not None


def test_memory_stays_within_its_bound(gabor: bytes) -> None:
    for data in [own_package(), *(gabor[:end] for end in range(0, len(gabor), 4096)), gabor]:
        assert peak_memory(darwinn.load, data) < MEGABYTES_64 + 2 * len(data)


@pytest.mark.parametrize(
    ("slot", "element", "count"),
    [
        # Instruction chunks of 1 MiB: read as often as they are named, they would fill 1 GiB.
        (5, darwinn.InstructionBitstream(bytes(2**20)), 1000),
        # Layers of little memory, but of much work.
        (8, darwinn.Layer(name="x" * 1000), 20000),
    ],
)
def test_aliases_do_not_make_a_small_file_large(slot: int, element: object, count: int) -> None:
    """Offsets that all lead to one place would be read over and over."""
    data = package_of_aliases(slot, element, count)
    assert check(data) is None
    assert peak_memory(darwinn.load, data) < MEGABYTES_64 + 2 * len(data)
    # The same with few offsets is a valid file.
    loaded = check(package_of_aliases(slot, element, 3))
    assert loaded is not None
    executable = loaded.executables[0]
    assert (executable.instruction_bitstreams or executable.input_layers) == (element,) * 3


def package_of_aliases(slot: int, element: object, count: int) -> bytes:
    """A package whose executable has a vector of ``count`` offsets that lead to one element."""
    builder = flatbuffers.Builder()
    offset = write_table(builder, element)
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(offset)
    vector = builder.EndVector()
    builder.StartObject(slot + 1)
    builder.PrependUOffsetTRelativeSlot(slot, vector, 0)
    builder.Finish(builder.EndObject())
    executable = bytes(builder.Output())

    text = flatbuffers.Builder()
    held = text.CreateString(executable)
    text.StartVector(4, 1, 4)
    text.PrependUOffsetTRelative(held)
    entries = text.EndVector()
    text.StartObject(1)
    text.PrependUOffsetTRelativeSlot(0, entries, 0)
    text.Finish(text.EndObject())
    package = flatbuffers.Builder()
    multi = package.CreateByteVector(bytes(text.Output()))
    package.StartObject(2)
    package.PrependUOffsetTRelativeSlot(1, multi, 0)
    package.Finish(package.EndObject(), file_identifier=b"DWN1")
    return bytes(package.Output())


def test_packages_are_not_nested_without_end() -> None:
    package = darwinn.Package()
    for _ in range(40):
        package = darwinn.Package(multi_chip_package=(darwinn.SerializedPackage(package),))
    with pytest.raises(FormatError, match="nested more than 64 deep"):
        darwinn.load(darwinn.dump(package))
