"""ExecuTorch files: everything survives, and each thing that must be refused is, at its place."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import executorch_files as files
import numpy as np
import pytest
from darwinn_formats import executorch
from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.executorch import schema
from darwinn_formats.signatures import EXECUTORCH_PROGRAM, is_executorch

# --- reading and writing --------------------------------------------------------------------------


def test_a_program_survives_with_its_segments() -> None:
    root, segments = files.parts()
    loaded = executorch.load(files.program_bytes())
    assert loaded.kind == "program"
    assert loaded.methods == ("forward", "get")
    assert [bytes(entry) for entry in loaded.segments] == list(segments)
    assert loaded.program == replace(root, segments=loaded.program.segments)
    assert loaded.header is not None
    assert loaded.header.length == 32
    assert executorch.dump(loaded.program, loaded.segments) == files.program_bytes()


def test_data_of_tensors_delegates_and_names() -> None:
    loaded = executorch.load(files.program_bytes())
    plan = loaded.method("forward")
    data = {
        entry.val.name: loaded.data(entry.val)
        for entry in plan.values
        if isinstance(entry.val, schema.Tensor)
    }
    assert bytes(data["state"] or b"") == files.STATE.tobytes()
    constants = [
        loaded.data(entry.val)
        for entry in plan.values
        if isinstance(entry.val, schema.Tensor) and entry.val.allocation_info is None
    ]
    assert [bytes(entry or b"") for entry in constants] == [files.WEIGHTS.tobytes()]
    assert bytes(loaded.payload(plan.delegates[1])) == b"blob"
    assert bytes(loaded.named_data("weights")) == files.package()
    with pytest.raises(KeyError):
        loaded.named_data("nothing")
    with pytest.raises(KeyError):
        loaded.method("nothing")


def test_the_payload_of_a_delegate_for_the_chip_opens_as_a_package() -> None:
    loaded = executorch.load(files.program_bytes())
    first, second = loaded.method("forward").delegates
    compiled = loaded.darwinn(first)
    assert compiled is not None
    assert [entry.name for entry in compiled.executables] == ["on the chip"]
    assert loaded.darwinn(second) is None


def test_a_damaged_payload_is_refused_at_its_place_in_the_file() -> None:
    root, segments = files.parts()
    damaged = bytearray(segments[2])
    struct.pack_into("<I", damaged, 0, 0xFFFFFF)
    loaded = executorch.load(executorch.dump(root, (*segments[:2], bytes(damaged))))
    assert loaded.header is not None
    with pytest.raises(FormatError, match="delegate EdgeTpuBackend") as caught:
        loaded.darwinn(loaded.method("forward").delegates[0])
    assert caught.value.offset == loaded.header.segment_base + loaded.program.segments[2].offset


@pytest.mark.parametrize("length", [24, 28, 40])
def test_headers_of_other_lengths(length: int) -> None:
    """The shorter header does not say how long the segments are; a longer one is read in part."""
    data = bytearray(files.program_bytes())
    struct.pack_into("<I", data, 12, length)
    loaded = executorch.load(bytes(data))
    assert loaded.header is not None
    assert loaded.header.length == length
    assert (loaded.header.segment_size == 0) == (length < 32)


def test_a_program_without_segments_has_no_header() -> None:
    root = schema.Program(execution_plan=files.parts()[0].execution_plan[1:])
    loaded = executorch.load(executorch.dump(root))
    assert loaded.header is None
    assert loaded.program == root


def test_constants_in_the_flatbuffer() -> None:
    root, segments = files.parts()
    buffers = (schema.Buffer(), schema.Buffer(files.WEIGHTS.tobytes()))
    old = replace(root, constant_segment=None, constant_buffer=buffers)
    loaded = executorch.load(executorch.dump(old, segments))
    (weights,) = [
        entry.val
        for entry in loaded.method("forward").values
        if isinstance(entry.val, schema.Tensor) and entry.val.allocation_info is None
    ]
    assert bytes(loaded.data(weights) or b"") == files.WEIGHTS.tobytes()


def test_external_data_given_or_beside_the_program(tmp_path: Path) -> None:
    given = executorch.load(files.external_program(), external=[files.data_bytes()])
    (tmp_path / "net.pte").write_bytes(files.external_program())
    (tmp_path / "net.ptd").write_bytes(files.data_bytes())
    beside = executorch.load(tmp_path / "net.pte")
    for loaded in (given, beside):
        (tensor,) = [
            entry.val
            for entry in loaded.method("forward").values
            if isinstance(entry.val, schema.Tensor) and entry.val.is_external
        ]
        assert bytes(loaded.data(tensor) or b"") == files.WEIGHTS.tobytes()
        assert bytes(loaded.named_data("blob")) == b"blob"
    data = executorch.load_data(files.data_bytes())
    assert executorch.dump_data(data.root, [data.segment(0), data.segment(1)]) == files.data_bytes()


def test_a_bundle_holds_a_program_and_its_test_cases() -> None:
    loaded = executorch.load(files.bundle_bytes())
    assert loaded.kind == "bundle"
    assert loaded.base > 0
    alone = executorch.load(files.program_bytes())
    assert loaded.program == alone.program
    assert loaded.segments == alone.segments
    assert loaded.bundle is not None
    (suite,) = loaded.bundle.method_test_suites
    assert suite.method_name == "forward"
    tensor, number = (entry.val for entry in suite.test_cases[0].inputs)
    assert isinstance(tensor, schema.BundledTensor)
    np.testing.assert_array_equal(
        np.frombuffer(tensor.data, np.float32).reshape(tensor.sizes), files.WEIGHTS
    )
    assert number == schema.BundledInt(1)
    compiled = loaded.darwinn(loaded.method("forward").delegates[0])
    assert compiled is not None


def test_kinds_are_told_by_content() -> None:
    for data in (files.program_bytes(), files.data_bytes(), files.bundle_bytes()):
        assert is_executorch(data)
    assert is_executorch(b"\0\0\0\0ET99")
    for data in (b"", b"ET12", b"\0\0\0\0TFL3", b"\0\0\0\0ETxx", b"\0\0\0\0DWN1"):
        assert not is_executorch(data)


def test_summaries_are_json_and_listings_name_what_they_show(tmp_path: Path) -> None:
    for name, data in (("a.pte", files.program_bytes()), ("b.bpte", files.bundle_bytes())):
        path = tmp_path / name
        path.write_bytes(data)
        file = executorch.load(path)
        summary = json.loads(json.dumps(executorch.describe(file)))
        (forward, getter) = summary["methods"]
        assert forward["operators"] == {"aten::add.out": 1}
        assert forward["delegates"][0]["executables"] == ["on the chip"]
        assert getter["outputs"][0]["content"] == "42"
        text = "\n".join(executorch.disassemble(file))
        assert "aten::add.out(%0, %3, 1, %1, %1)  # net.py:7 forward" in text
        assert "jump 3 if not true" in text
        assert "delegate EdgeTpuBackend(%0, %1)" in text
        assert "free %1" in text
    path = tmp_path / "c.ptd"
    path.write_bytes(files.data_bytes())
    assert (
        executorch.describe_data(executorch.load_data(path))["named_data"][0]["tensor"]
        == "float32[2, 3]"
    )


# --- what must be refused -------------------------------------------------------------------------


def patched(code: str, place: int, value: Any) -> bytes:
    data = bytearray(files.program_bytes())
    struct.pack_into(f"<{code}", data, place, value)
    return bytes(data)


def program(**fields: Any) -> bytes:
    root, segments = files.parts()
    return executorch.dump(replace(root, **fields), segments)


def placed(**fields: int) -> bytes:
    root = executorch.load(files.program_bytes()).program
    segments = list(root.segments)
    segments[2] = replace(segments[2], **fields)
    changed = fb.write(replace(root, segments=tuple(segments)))
    header = bytearray(files.program_bytes()[8:40])
    struct.pack_into("<Q", header, 8, len(changed) + 32)
    start = struct.unpack_from("<I", changed)[0] + 32
    tail = files.program_bytes()[struct.unpack_from("<Q", header, 16)[0] :]
    base = len(changed) + 32
    base += -base % 128
    struct.pack_into("<Q", header, 16, base)
    flat = struct.pack("<I", start) + changed[4:8] + bytes(header) + changed[8:]
    return flat.ljust(base, b"\0") + tail


@fb.file_identifier(EXECUTORCH_PROGRAM)
@dataclass(frozen=True, slots=True)
class NoPlan:
    version: int = fb.uint32()
    padding: int = fb.uint64(7)
    more: int = fb.uint64(7)


X, Y, STATE, WEIGHTS = 0, 1, 2, 3
INT, CONDITION, LIST = 4, 5, 6
INTEGERS, TENSORS = 12, 15


def tensor_field(index: int, **fields: Any) -> Callable[[], bytes]:
    return lambda: files.with_value(index, **fields)


def long_operator() -> bytes:
    return files.changed(operators=(schema.Operator("x" * 95, "outer"),))


REFUSED: list[tuple[str, Callable[[], bytes], str]] = [
    ("1 short", lambda: b"\0" * 7, "7 bytes are fewer"),
    ("1 version", lambda: patched("4s", 4, b"ET11"), "another version than b'ET12'|of another"),
    ("1 other", lambda: patched("4s", 4, b"ABCD"), "b'ABCD' is not b'ET12'"),
    ("2 header length", lambda: patched("I", 12, 23), "length: 23 bytes are fewer than 24"),
    ("2 cut", lambda: files.program_bytes()[:20], "length: the data ends after 20"),
    ("2 cut later", lambda: files.program_bytes()[:36], "length: the data ends after 36"),
    ("2 program", lambda: patched("Q", 16, 1 << 40), "program_size: "),
    ("2 no program", lambda: patched("Q", 16, 3), "program_size: 3 bytes hold no program"),
    ("2 overflow", lambda: patched("Q", 32, 2**64 - 1), "segments end past 64 bits"),
    ("2 file ends", lambda: files.program_bytes()[:-1], "after the .* bytes of the file"),
    ("2 base", lambda: patched("Q", 24, 48), "within the program"),
    ("3 root low", lambda: patched("I", 0, 4), "root offset 4 leads out"),
    ("3 root high", lambda: patched("I", 0, 1 << 30), "root offset .* leads out"),
    ("4 no plan", lambda: fb.write(NoPlan()), "the required field execution_plan is absent"),
    ("4 no chain", lambda: files.changed(chains=()), "chains: a method has at least one chain"),
    (
        "5 both constants",
        lambda: program(constant_buffer=(schema.Buffer(b"1234"),)),
        "both in a segment and in the flatbuffer",
    ),
    (
        "5 constant segment",
        lambda: program(constant_segment=schema.SubsegmentOffsets(9, (0, 0))),
        r"constant_segment\.segment_index: segment 9 of 3",
    ),
    ("6 segment", lambda: placed(size=1 << 30), r"Program\.segments\[2\]: segment ends at"),
    ("6 segment offset", lambda: placed(offset=2**64 - 1), r"segments\[2\]: segment ends at"),
    (
        "6 named data",
        lambda: program(named_data=(schema.NamedData("key", 5),)),
        r"named_data\[0\]\.segment_index: segment 5 of 3",
    ),
    (
        "6 named data without segments",
        lambda: executorch.dump(
            replace(
                files.parts()[0],
                segments=(),
                named_data=(schema.NamedData("key", 0),),
                constant_segment=None,
                mutable_data_segments=(),
            ),
            (),
        ),
        r"named_data\[0\]\.segment_index: segment 0 of 0",
    ),
    ("7 storage offset", tensor_field(X, storage_offset=1), "storage_offset: 1 is not supported"),
    (
        "7 reserved type",
        tensor_field(X, scalar_type=schema.ScalarType.BITS1X8),
        "BITS1X8 is reserved",
    ),
    (
        "7 unbound",
        tensor_field(X, shape_dynamism=schema.TensorShapeDynamism.DYNAMIC_UNBOUND),
        "sizes without bound are not supported",
    ),
    ("7 rank", tensor_field(X, sizes=(1,) * 17, dim_order=tuple(range(17))), "17 dimensions"),
    ("7 order length", tensor_field(X, dim_order=(0,)), "is no order of 2 dimensions"),
    ("7 order", tensor_field(X, dim_order=(1, 1)), r"\(1, 1\) is no order of 2 dimensions"),
    ("7 negative", tensor_field(X, sizes=(-1, 3)), "a negative size"),
    ("7 overflow", tensor_field(X, sizes=(2**31 - 1, 2**31 - 1)), "a tensor of .* bytes"),
    ("8 constant", tensor_field(WEIGHTS, sizes=(3, 3)), "36 bytes of which 24 are there"),
    ("8 constant index", tensor_field(WEIGHTS, data_buffer_idx=2), "2 is not below 2"),
    ("8 initial index", tensor_field(STATE, data_buffer_idx=2), "2 is not below 2"),
    (
        "8 initial segment",
        tensor_field(STATE, extra_tensor_info=schema.ExtraTensorInfo(3)),
        "3 of 1 segments of initial data",
    ),
    (
        "9 memory 0",
        tensor_field(X, allocation_info=schema.AllocationDetails(0)),
        "memory_id: 0 is not a buffer of 1 to 1",
    ),
    (
        "9 memory 2",
        tensor_field(X, allocation_info=schema.AllocationDetails(2)),
        "memory_id: 2 is not a buffer",
    ),
    (
        "9 end",
        tensor_field(X, allocation_info=schema.AllocationDetails(1, 0, 1)),
        "the tensor ends at 4294967320 of a buffer",
    ),
    ("9 buffer", lambda: files.changed(non_const_buffer_sizes=(0, -1)), "a negative size"),
    ("11 item", lambda: files.with_value(LIST, items=(99,)), "index 99 is not in 0 to"),
    ("11 item -2", lambda: files.with_value(LIST, items=(-2,)), "index -2 is not in 0 to"),
    ("11 kind", lambda: files.with_value(LIST, items=(CONDITION,)), "is Bool, not Tensor"),
    ("11 integer", lambda: files.with_value(INTEGERS, items=(CONDITION,)), "is Bool, not Int"),
    ("11 tensor", lambda: files.with_value(TENSORS, items=(INT,)), "is Int, not Tensor"),
    (
        "11 no type",
        lambda: files.changed(values=(schema.EValue(None),)),
        r"values\[0\]\.val: a value has no type",
    ),
    ("12 operator", lambda: files.with_step(0, schema.KernelCall(1)), "op_index: index 1"),
    (
        "12 argument",
        lambda: files.with_step(0, schema.KernelCall(0, (0, 99))),
        r"instructions\[0\]\.instr_args\.args: index 99",
    ),
    ("12 move", lambda: files.with_step(0, schema.MoveCall(0, 99)), "move_to: index 99"),
    ("12 jump", lambda: files.with_step(0, schema.JumpFalseCall(-1)), "cond_value_index: index -1"),
    ("12 free", lambda: files.with_step(0, schema.FreeCall(99)), "value_index: index 99"),
    ("12 nothing", lambda: files.with_step(0, None), "an instruction has no arguments"),
    ("12 input", lambda: files.changed(inputs=(99,)), "inputs: index 99"),
    ("12 output", lambda: files.changed(outputs=(-1,)), "outputs: index -1"),
    ("13 name", long_operator, "a name of 101 bytes is longer than 99"),
    ("13 delegate", lambda: files.with_step(0, schema.DelegateCall(2)), "delegate_index: index 2"),
    (
        "13 payload",
        lambda: files.changed(
            delegates=(schema.BackendDelegate("a", schema.BackendDelegateDataReference(index=1)),)
        ),
        r"processed\.index: payload 1 of 1 \(INLINE\)",
    ),
    (
        "13 no payload",
        lambda: files.changed(delegates=(schema.BackendDelegate("a"),)),
        "the payload is absent",
    ),
    (
        "14 destination",
        lambda: files.with_step(0, schema.JumpFalseCall(CONDITION, 6)),
        "destination_instruction: index 6 is not in 0 to 5",
    ),
    (
        "stack trace",
        lambda: files.changed(
            chains=(schema.Chain(instructions=(), stacktrace=(schema.FrameList(),)),)
        ),
        "stacktrace: 1 entries for 0 instructions",
    ),
]


@pytest.mark.parametrize(("name", "make", "reason"), REFUSED, ids=[entry[0] for entry in REFUSED])
def test_what_must_be_refused(name: str, make: Callable[[], bytes], reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        executorch.load(make())
    assert caught.value.offset is not None
    assert caught.value.field
    assert caught.value.file is None


Plan = schema.ExecutionPlan


def slot_place(data: bytes | bytearray, table: int, slot: int) -> int:
    """Where the vtable of a table says where a field is."""
    return table - int(struct.unpack_from("<i", data, table)[0]) + 4 + 2 * slot


def in_method(data: bytes | bytearray, find: Callable[[Plan], int]) -> int:
    """Byte of a table that is reached from the first method."""
    loaded = executorch.load(bytes(data))
    return loaded.base + find(loaded.method("forward"))


@pytest.mark.parametrize(
    ("field", "find", "slot"),
    [
        *(
            (field, lambda plan: plan.file_offset, slot)
            for slot, field in enumerate(
                (
                    "name",
                    "",
                    "values",
                    "inputs",
                    "outputs",
                    "chains",
                    "",
                    "delegates",
                    "non_const_buffer_sizes",
                )
            )
            if field
        ),
        ("instructions", lambda plan: plan.chains[0].file_offset, 2),
        ("sizes", lambda plan: plan.values[X].val.file_offset, 2),
        ("dim_order", lambda plan: plan.values[X].val.file_offset, 3),
    ],
)
def test_tables_lack_nothing_that_they_need(
    field: str, find: Callable[[Plan], int], slot: int
) -> None:
    """The slot of the field is emptied in the vtable."""
    data = bytearray(files.program_bytes())
    struct.pack_into("<H", data, slot_place(data, in_method(data, find), slot), 0)
    with pytest.raises(FormatError, match=f"the required field {field} is absent"):
        executorch.load(bytes(data))


@pytest.mark.parametrize(
    ("find", "slot", "number", "reason"),
    [
        (
            lambda plan: plan.values[X].val.file_offset,
            0,
            99,
            "scalar_type: no member has the number 99",
        ),
        (lambda plan: plan.values[X].file_offset, 0, 12, "union has the tag 12"),
        (lambda plan: plan.chains[0].instructions[0].file_offset, 0, 6, "union has the tag 6"),
    ],
)
def test_numbers_without_a_meaning_are_refused(
    find: Callable[[Plan], int], slot: int, number: int, reason: str
) -> None:
    """Types of elements, tags of values and of instructions that the schema does not have."""
    data = bytearray(files.program_bytes())
    table = in_method(data, find)
    (field,) = struct.unpack_from("<H", data, slot_place(data, table, slot))
    data[table + field] = number
    with pytest.raises(FormatError, match=reason):
        executorch.load(bytes(data))


def test_external_data_has_a_name() -> None:
    info = schema.ExtraTensorInfo(location=schema.TensorDataLocation.EXTERNAL)
    data = files.with_value(X, extra_tensor_info=info)
    with pytest.raises(FormatError, match="fully_qualified_name: external data without a name"):
        executorch.load(data, external=[files.data_bytes()])


def test_segments_need_a_header() -> None:
    root = replace(
        files.parts()[0], segments=(schema.DataSegment(0, 8),) * 3, constant_segment=None
    )
    with pytest.raises(FormatError, match=r"segments\[0\]: the file has no header"):
        executorch.load(fb.write(root))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "no data file has 'linear.weight'"),
        ([files.data_bytes("other")], "no data file has 'linear.weight'"),
        ([files.data_bytes(scalar_type=schema.ScalarType.INT32)], "in the data file, not"),
        ([files.data_bytes(sizes=(3, 2))], "in the data file, not"),
        ([files.data_bytes(dim_order=(1, 0))], "in the data file, not"),
    ],
)
def test_external_data_has_to_fit(data: list[bytes], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        executorch.load(files.external_program(), external=data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (files.program_bytes(), "b'ET12' is not b'FT01'"),
        (files.data_bytes()[:40], "length: the data ends after 40"),
        (files.data_bytes().replace(b"FH01", b"FH02"), "does not start with b'FH01'"),
        (files.data_bytes()[:-4], "segments end at"),
        (files.data_bytes(sizes=(9, 9)), "a tensor of 324 bytes in a segment of 24"),
        (files.data_bytes("blob"), "'blob' is there twice"),
    ],
)
def test_data_files_are_checked(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        executorch.load_data(data)
    assert caught.value.offset is not None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (files.bundle_bytes(b""), "0 bytes are fewer"),
        (files.bundle_bytes(files.program_bytes()[:-1]), "after the .* bytes of the file"),
        (files.bundle_bytes(data=b"1234"), "4 bytes for a tensor of 24"),
        (files.bundle_bytes(dim_order=(0, 0)), "is no order"),
        (files.bundle_bytes(method="backward"), "the program has no method 'backward'"),
        (files.bundle_bytes().replace(b"BP08", b"BP07"), "of another version than b'BP08'"),
        (fb.write(schema.BundledProgram()), "the program is absent"),
    ],
)
def test_bundles_are_checked(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        executorch.load(data)
    assert caught.value.offset is not None


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.pte"
    path.write_bytes(files.program_bytes()[:-1])
    with pytest.raises(FormatError) as caught:
        executorch.load(path)
    assert str(caught.value).startswith(f"{path}: byte ")


# --- the corpus -----------------------------------------------------------------------------------


def test_external_data_under_the_name_of_the_exporter(tmp_path: Path) -> None:
    path, own, default = (
        tmp_path / name for name in ("net.pte", "net.ptd", "_default_external_constant.ptd")
    )
    path.write_bytes(files.external_program())
    default.write_bytes(files.data_bytes())
    assert [each.file for each in executorch.load(path).external] == [str(default)]
    own.write_bytes(files.data_bytes("other"))
    assert [each.file for each in executorch.load(path).external] == [str(own), str(default)]
    own.write_bytes(files.data_bytes())
    default.write_bytes(b"what is not needed is not read")
    assert [each.file for each in executorch.load(path).external] == [str(own)]
    path.write_bytes(files.program_bytes())
    own.unlink()
    assert executorch.load(path).external == ()


def test_every_program_of_the_corpus_survives(corpus: Path) -> None:
    paths = sorted((corpus / "pte").glob("*.*pte"))
    assert len(paths) == 23
    for path in paths:
        loaded = executorch.load(path)
        data = executorch.dump(loaded.program, loaded.segments)
        beside = [path.with_suffix(".ptd")] if loaded.external else []
        again = executorch.load(data, external=beside)
        assert again.program == replace(loaded.program, segments=again.program.segments)
        assert again.segments == loaded.segments
        json.dumps(executorch.describe(loaded))
        assert sum(1 for _ in executorch.disassemble(loaded)) > 4


def test_the_bundle_of_the_corpus(corpus: Path) -> None:
    loaded = executorch.load(corpus / "pte" / "bundled_program.bpte")
    assert loaded.bundle is not None
    (suite,) = loaded.bundle.method_test_suites
    assert len(suite.test_cases) == 10


def test_the_data_file_of_the_corpus(corpus: Path) -> None:
    data = executorch.load_data(corpus / "pte" / "i_external_const.ptd")
    assert all(entry.tensor_layout is not None for entry in data.root.named_data)
