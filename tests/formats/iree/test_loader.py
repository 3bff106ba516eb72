"""IREE modules: containers, tables, nested modules, disassembly, and every rule that refuses."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import iree
from darwinn_formats.flatbuffer import Span
from darwinn_formats.iree import FormatError, schema
from darwinn_formats.iree.calling_convention import parse
from darwinn_formats.signatures import is_iree
from iree_modules import FunctionSource, definition, imports, module, ref, rodata

RETURN = FunctionSource("f", "0v_v", ["start", ("return", [[]])])


def zipped(inner: bytes, extra: int = 25) -> bytes:
    """A module as the first member of a zip archive, padded as the compiler pads it."""
    name = b"module.fb"
    size = len(inner) - 4
    header = struct.pack(
        "<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 0, 0, 0, 0, size, size, len(name), extra
    )
    return header + name + bytes(extra) + inner


def test_a_bare_flatbuffer_and_a_zip_archive_hold_the_same() -> None:
    bare = module([RETURN])
    archive = iree.load(zipped(bare))
    assert iree.load(bare).module.container.kind == "flatbuffer"
    assert archive.module.container.kind == "zip"
    assert archive.module.container.start == 68
    assert archive.module.functions[0].body == iree.load(bare).module.functions[0].body
    assert is_iree(bare) and is_iree(zipped(bare))
    assert not is_iree(b"PK\3\4") and not is_iree(b"")


@pytest.mark.parametrize("outer", [bytes, zipped])
def test_external_data_count_from_the_end_of_the_flatbuffer(outer: Any) -> None:
    segment = schema.RodataSegment(external_data_offset=32, external_data_length=5)
    data = outer(module([RETURN], rodata_segments=(segment,)))
    container = iree.load(data + bytes(1000)).module.container
    assert container.blobs % 64 == 0
    assert 0 <= container.blobs - container.end < 64
    data = data.ljust(container.blobs + 32, b"\0") + b"hello"
    (found,) = iree.load(data).module.rodata
    assert bytes(found.data) == b"hello"
    assert data[found.offset :] == b"hello"
    with pytest.raises(FormatError, match=r"external_data_offset: bytes .* are not in the"):
        iree.load(data[:-1])


def test_embedded_data_win_over_external_ones() -> None:
    segment = replace(rodata(b"inside")[0], external_data_offset=0, external_data_length=5)
    (found,) = iree.load(module([RETURN], rodata_segments=(segment,))).module.rodata
    assert bytes(found.data) == b"inside"


def test_nested_modules_are_loaded_and_checked() -> None:
    inner = zipped(module([RETURN], name="inner"))
    file = iree.load(module([RETURN], rodata_segments=rodata(b"text", inner)))
    assert [(path, entry.name) for path, entry in file.modules] == [
        ("", "module"),
        ("rodata[1]/", "inner"),
    ]
    broken = inner.replace(b"0v_v", b"0v_?")
    with pytest.raises(FormatError) as caught:
        iree.load(module([RETURN], rodata_segments=rodata(b"text", broken)))
    assert caught.value.field.startswith("BytecodeModule.rodata_segments[1].BytecodeModule.")


def test_modules_are_nested_to_a_depth() -> None:
    data = module([RETURN])
    for _ in range(4):
        data = module([RETURN], rodata_segments=rodata(data))
    assert len(iree.load(data).modules) == 5
    with pytest.raises(FormatError, match="nested more than 4 deep"):
        iree.load(module([RETURN], rodata_segments=rodata(data)))


def test_a_written_module_reads_back() -> None:
    tables = definition(
        [RETURN],
        version=3,
        attributes=(schema.Attribute("key", "value"),),
        dependencies=(schema.ModuleDependency("hal", 7),),
        imported_functions=imports(("hal.fence.create", "0rI_r")),
        rodata_segments=rodata(b"12"),
        rwdata_segments=(schema.RwdataSegment(8),),
        debug_database=schema.DebugDatabase(
            (schema.FileLocation("a.mlir", 3, 4), None, schema.NameLocation("n", 0)),
            (schema.FunctionSourceMap("f", (schema.BytecodeLocation(1, 2),)),),
        ),
    )
    loaded = iree.load(iree.dump_definition(tables)).module
    assert replace(loaded.definition, debug_database=None) == replace(tables, debug_database=None)
    assert loaded.definition.debug_database == tables.debug_database
    again = iree.load(iree.dump(loaded)).module
    assert again.definition == loaded.definition


def test_locations_are_told_in_words() -> None:
    table = (
        schema.FileLocation("a.mlir", 3, 4),
        schema.FileLocation("b.mlir", 5, 6),
        schema.CallSiteLocation(0, 1),
        schema.NameLocation("conv", 0),
        schema.FusedLocation(None, (0, 1, 0)),
        None,
        schema.FusedLocation(None, (6, 6)),
    )
    maps = (schema.FunctionSourceMap("f", (schema.BytecodeLocation(1, 2),)),)
    loaded = iree.load(module([RETURN], debug_database=schema.DebugDatabase(table, maps))).module
    assert [loaded.location_text(index) for index in range(6)] == [
        "a.mlir:3:4",
        "b.mlir:5:6",
        "a.mlir:3:4 at b.mlir:5:6",
        '"conv"(a.mlir:3:4)',
        "[a.mlir:3:4, b.mlir:5:6]",
        "?",
    ]
    assert len(loaded.location_text(6)) < 1000
    assert loaded.locations(loaded.functions[0]) == {1: 2}


def body(*source: Any, **options: Any) -> FunctionSource:
    return FunctionSource("f", "0v_v", ["start", *source, ("return", [[]])], **options)


REFUSED: dict[str, tuple[bytes, str]] = {
    "wrong version": (
        module([RETURN], bytecode_version=18 << 16),
        r"bytecode version 18\.0 is none of those that are known: 15\.0, 16\.0, 17\.0",
    ),
    "newer version": (
        module([RETURN], bytecode_version=17 << 16 | 1),
        r"bytecode version 17\.1 is none of those that are known",
    ),
    "empty module name": (module([RETURN], name=""), r"BytecodeModule\.name: the name is empty"),
    "empty type": (
        module([RETURN], types=(schema.TypeDefinition(""),)),
        r"types\[0\]\.full_name: the name is empty",
    ),
    "empty dependency": (
        module([RETURN], dependencies=(schema.ModuleDependency(""),)),
        r"dependencies\[0\]\.name: the name is empty",
    ),
    "empty import": (
        module([RETURN], imported_functions=imports(("", "0v_v"))),
        r"imported_functions\[0\]\.full_name: the name is empty",
    ),
    "empty export": (
        module([RETURN], exported_functions=(schema.ExportFunction(""),)),
        r"exported_functions\[0\]\.local_name: the name is empty",
    ),
    "export of no function": (
        module([RETURN], exported_functions=(schema.ExportFunction("g", 1),)),
        r"internal_ordinal: 1 is none of the 1 functions",
    ),
    "export without convention": (
        module([replace(RETURN, convention="")]),
        "an exported function needs a calling convention",
    ),
    "import without convention": (
        module([RETURN], imported_functions=(schema.ImportFunction("a.b"),)),
        r"imported_functions\[0\]\.signature: no calling convention",
    ),
    "signatures differ in number": (
        module([RETURN], function_signatures=()),
        "0 signatures for 1 functions",
    ),
    "convention": (module([replace(RETURN, convention="1v_v")]), "does not start with version 0"),
    "negative state": (
        module([RETURN], module_state=schema.ModuleState(0, -1)),
        r"module_state\.global_ref_count: -1 is negative",
    ),
    "no block": (
        module([RETURN], function_descriptors=(schema.FunctionDescriptor(0, 4, 3),)),
        "4 bytes in 0 blocks are no function",
    ),
    "bytecode outside": (
        module([RETURN], function_descriptors=(schema.FunctionDescriptor(8, 4, 3, 0, 1),)),
        "bytes 8 to 12 are not in the 8 of the bytecode",
    ),
    "block count": (
        module([RETURN], function_descriptors=(schema.FunctionDescriptor(0, 4, 3, 0, 2),)),
        r"functions\[0\]\.block_count: 2 are declared, 1 found",
    ),
    "negative registers": (
        module([RETURN], function_descriptors=(schema.FunctionDescriptor(0, 4, 3, 0, 1, -1),)),
        "-1 registers for numbers",
    ),
    "code before a block": (
        module([replace(RETURN, source=[("return", [[]]), "start", ("return", [[]])])]),
        "no block starts here",
    ),
    "block without end": (
        module([replace(RETURN, source=["start", "next", ("return", [[]])])]),
        "the block before has no end",
    ),
    "function without end": (module([replace(RETURN, source=["start"])]), "has no end"),
    "branch into an instruction": (
        module([replace(RETURN, source=["a", ("br", ["a", []]), "b", ("br", ["c", []])])]).replace(
            b"\x56\0\0\0\0", b"\x56\1\0\0\0", 1
        ),
        r"functions\[0\]\.branch: no block starts at 1",
    ),
    "register": (module([body(("const.i32", [1, 16]))]), "register 16 is none of 16"),
    "odd register": (module([body(("const.i64", [1, 3]))]), "register 3 is not even, for 64 bits"),
    "reference register": (
        module([body(("const.ref.zero", [ref(8)]))]),
        "reference register 8 is none of 8",
    ),
    "number for reference": (module([body(("const.ref.zero", [1]))]), "register 1 for a reference"),
    "reference for number": (
        module([body(("const.i32", [1, ref(1)]))]),
        "reference register 1 for a number",
    ),
    "rodata ordinal": (
        module([body(("const.ref.rodata", [0, ref(0)]))]),
        "const.ref.rodata: 0 is none of the 0 rodata segments",
    ),
    "type ordinal": (
        module([body(("cast.any.ref", [ref(0), 9, ref(1)]))]),
        "9 is none of the 2 types",
    ),
    "global": (module([body(("global.load.i64", [60, 0]))]), "bytes 60 to 68 of 64 of globals"),
    "global reference": (
        module([body(("global.load.ref", [4, 0, ref(0)]))]),
        "4 is none of the 4 global references",
    ),
    "copy between banks": (
        module([replace(RETURN, source=["start", ("br", ["start", [(0, ref(0))]])])]),
        "copy between a number and a reference",
    ),
    "callee": (module([body(("call", [7, [], []]))]), "7 is none of the 1 functions"),
    "import ordinal": (module([body(("call", [1 << 31, [], []]))]), "0 is none of the 0 imports"),
    "operands of a call": (module([body(("call", [0, [1], []]))]), "1 values for 0"),
    "variadic call of a function": (
        module([body(("call.variadic", [0, [], [], []]))]),
        "only imports repeat arguments",
    ),
    "segments": (
        module(
            [body(("call.variadic", [1 << 31, [1], [0], []]))],
            imported_functions=imports(("a.b", "0iCiD_v")),
        ),
        r"segments \(1,\) do not fit 0iCiD_v",
    ),
    "results": (
        module([replace(RETURN, convention="0v_i")]),
        "return: 0 values for 1",
    ),
    "arguments": (
        module([replace(RETURN, convention="0" + "I" * 9 + "_v")]),
        "needs more registers than there are",
    ),
    "feature": (
        module(
            [body(("const.f32.zero", [0]))],
            requirements=0,
            function_descriptors=(schema.FunctionDescriptor(0, 8, 0, 0, 1, 4, 0),),
        ),
        "const.f32.zero: the module does not require EXT_F32",
    ),
    "opcode": (
        module([RETURN], bytecode_data=Span(memoryview(b"\x79\xdf\0\0"))),
        "opcode: no operation has the opcode 0xdf",
    ),
    "opcode of a set": (
        module([RETURN], bytecode_data=Span(memoryview(b"\x79\xe0\x7f\0"))),
        "no operation has the opcode 0xe0 0x7f",
    ),
    "field after the end": (
        module([RETURN], bytecode_data=Span(memoryview(b"\x79\x5a\x05\0\0\0\0\0"))),
        "return: 10 bytes are needed, 0 left",
    ),
    "location": (
        module(
            [RETURN],
            debug_database=schema.DebugDatabase(
                (None,), (schema.FunctionSourceMap("f", (schema.BytecodeLocation(0, 1),)),)
            ),
        ),
        r"functions\[0\]\.locations\[0\]: 1 is none of the 1 locations",
    ),
    "child location": (
        module([RETURN], debug_database=schema.DebugDatabase((schema.NameLocation("n", 5),))),
        r"location_table\[0\]: a child is none of the 1 locations",
    ),
    "compressed": (
        b"PK\3\4" + bytes(4) + b"\x08\0" + bytes(60),
        "the module is compressed",
    ),
    "short": (b"\1\0\0\0", "4 bytes are fewer than the 16 of a module"),
    "size prefix": (b"\xff\0\0\0" + bytes(32), "size prefix: flatbuffer of 255 bytes in 32"),
    "identifier": (
        module([RETURN]).replace(b"IREE", b"EERI", 1),
        r"file identifier b'EERI' is not b'IREE'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_is_refused(name: str) -> None:
    data, reason = REFUSED[name]
    with pytest.raises(FormatError, match=reason) as caught:
        iree.load(data)
    assert caught.value.offset is not None
    assert 0 <= caught.value.offset <= len(data)


def test_functions_may_share_bytes_but_not_without_end() -> None:
    long = body(*[("add.i32", [0, 1, 2])] * 3000)
    tables = definition([long])
    few = tables.function_descriptors * 3
    shared = replace(
        tables,
        function_descriptors=few,
        function_signatures=tables.function_signatures * 3,
    )
    assert len(iree.load(iree.dump_definition(shared)).module.functions) == 3
    many = replace(
        tables,
        function_descriptors=tables.function_descriptors * 500,
        function_signatures=tables.function_signatures * 500,
    )
    with pytest.raises(FormatError, match="functions share their bytes too often"):
        iree.load(iree.dump_definition(many))


@pytest.mark.parametrize(
    ("text", "arguments", "results"),
    [
        ("0v_v", (), ()),
        ("0", (), ()),
        ("0_", (), ()),
        ("0rriiCID_v", ("r", "r", "i", "i", ("I",)), ()),
        ("0iI_rr", ("i", "I"), ("r", "r")),
        ("0CrIID_f", (("r", "I", "I"),), ("f",)),
    ],
)
def test_calling_conventions_are_read(text: str, arguments: Any, results: Any) -> None:
    convention = parse(text)
    assert (convention.arguments, convention.results) == (arguments, results)


@pytest.mark.parametrize("text", ["", "1v_v", "0x_v", "0CiCiDD_v", "0Ci_v", "0CD_v", "0v_CiD"])
def test_other_texts_are_no_calling_conventions(text: str) -> None:
    with pytest.raises(FormatError):
        parse(text)


def test_registers_of_arguments_are_counted() -> None:
    registers, counts = iree.argument_registers(parse("0irIfrF_v"))
    assert registers == (0, 0x8000, 2, 4, 0x8001, 6)
    assert counts == (8, 2)


def test_the_opcode_table_is_complete_and_unique() -> None:
    assert {prefix: len(table) for prefix, table in iree.OPERATIONS.items()} == {
        0x00: 0x89,
        0xE0: 0x3E,
        0xE1: 0x40,
    }
    for prefix, table in iree.OPERATIONS.items():
        assert sorted(table) == list(range(len(table)))
        assert all(operation.prefix == prefix for operation in table.values())


@pytest.mark.parametrize("prefix", iree.OPERATIONS)
def test_every_operation_encodes_and_decodes(prefix: int) -> None:
    values: dict[str, Any] = {
        "S": b"abc",
        "V": (1, 2, 3),
        "M": ((1, 2),),
        "C": ((4, ((5, 6),)), (7, ())),
    }
    made = [
        (operation.mnemonic, tuple(values.get(field.kind, 9) for field in operation.fields))
        for operation in iree.OPERATIONS[prefix].values()
    ]
    decoded = list(iree.decode(iree.encode(made)))
    assert [(entry.mnemonic, entry.operands) for entry in decoded] == made
    assert [entry.pc for entry in decoded[1:]] == [entry.end for entry in decoded[:-1]]


@pytest.mark.parametrize(
    "source",
    [("none", []), ("add.i32", [1, 2]), ("add.i32", [1, 2, 1 << 16]), ("br", ["a", []])],
)
def test_what_does_not_fit_is_not_encoded(source: tuple[str, list[Any]]) -> None:
    with pytest.raises(FormatError):
        iree.encode([source])


def test_hand_assembled_bytes_decode() -> None:
    code = bytes.fromhex(
        "79"  # block
        "0d feffffff 0300"  # const.i32 -2 -> i3
        "e0 05 0000803f 0400"  # const.f32 1.0 -> f4
        "58 00000080 00 0200 0300 0080 0100 0500"  # call import 0 (i3, r0) -> i5, one pad byte
        "5a 00 0000"  # return
    )
    assert [(entry.pc, entry.mnemonic, entry.operands) for entry in iree.decode(code)] == [
        (0, "block", ()),
        (1, "const.i32", (-2, 3)),
        (8, "const.f32", (0x3F800000, 4)),
        (16, "call", (0x80000000, (3, 0x8000), (5,))),
        (32, "return", ((),)),
    ]


def corpus_files(corpus: Path) -> list[Path]:
    files = sorted((corpus / "vmfb").rglob("*.vmfb"))
    assert len(files) >= 30
    return files


def test_every_function_of_the_corpus_disassembles_to_its_exact_length(corpus: Path) -> None:
    count = 0
    for path in corpus_files(corpus):
        for _, entry in iree.load(path).modules:
            for function in entry.functions:
                instructions = list(function.instructions())
                assert instructions[-1].end == len(function.body)
                encoded = iree.encode((item.mnemonic, item.operands) for item in instructions)
                assert encoded == bytes(function.body.data)
                count += 1
    assert count > 100


def test_every_module_of_the_corpus_is_described_and_listed(corpus: Path) -> None:
    for path in corpus_files(corpus):
        file = iree.load(path)
        told = iree.describe(file)
        assert json.loads(json.dumps(told)) == told
        nested = [entry for entry in told["module"]["rodata"] if "module" in entry]
        machine_code = [entry for entry in told["module"]["rodata"] if "elf" in entry]
        if path.name.split(".")[1] == "llvmcpu" and "scalar" not in path.name:
            assert machine_code[0]["elf"]["machine"] == "x86-64"
            assert not nested
        lines = list(iree.disassemble(file))
        assert sum(line.startswith("function ") for line in lines) == sum(
            len(entry.functions) for _, entry in file.modules
        )


def test_the_listing_shows_tables_names_and_locations(corpus: Path) -> None:
    lines = "\n".join(iree.disassemble(iree.load(corpus / "vmfb" / "v17" / "add.vmvxinline.vmfb")))
    assert 'module "module": bytecode 17.0, ext_f32 unwind' in lines
    assert "import 0: hal_inline.buffer.allocate 0iI_rr" in lines
    assert "function 0 add 0rr_r: 368 bytes" in lines
    assert "call.variadic @hal_inline.buffer_view.assert, [- - - - 2], (" in lines
    assert "; <stdin>:3:8 at <stdin>:2:1" in lines


def test_every_module_of_the_corpus_is_written_and_read_back(corpus: Path) -> None:
    for path in corpus_files(corpus):
        first = iree.load(path).module
        again = iree.load(iree.dump(first)).module
        assert again.rodata == first.rodata
        assert [item.body for item in again.functions] == [item.body for item in first.functions]
        assert again.definition.debug_database == first.definition.debug_database
        assert list(again.exports) == list(first.exports)
