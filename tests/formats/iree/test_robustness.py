"""No input makes the loader fail otherwise than with a FormatError, slowly, or by memory."""

from __future__ import annotations

from pathlib import Path

import damaged_files
import pytest
from damaged_files import MEGABYTES_64, changes, drawn_by_night, peak_memory
from darwinn_formats import iree
from darwinn_formats.iree import schema
from iree_modules import FunctionSource, imports, module, rodata

VALUES = 3


def own_module() -> bytes:
    """A small module with everything in it that the schema has, and a module within it."""
    inner = FunctionSource("kernel", "0v_v", ["start", ("return", [[]])])
    outer = FunctionSource(
        "f",
        "0iI_i",
        [
            "start",
            ("br_table", [0, "end", [(0, 4)], [("other", [(0, 4)])]]),
            "other",
            ("call.variadic", [1 << 31, [0xFFFF, 1], [0, 4], []]),
            ("fail", [0, b"message"]),
            "end",
            ("return", [[4]]),
        ],
        attributes={"iree.abi.declaration": "sync func @f(%a: i32)"},
    )
    return module(
        [outer],
        attributes=(schema.Attribute("key", "value"),),
        dependencies=(schema.ModuleDependency("hal", 7),),
        imported_functions=imports(("a.b", "0iCiD_v")),
        rodata_segments=(
            *rodata(b"text", module([inner])),
            schema.RodataSegment(external_data_offset=0, external_data_length=0),
        ),
        rwdata_segments=(schema.RwdataSegment(8),),
        debug_database=schema.DebugDatabase(
            (
                schema.FileLocation("a", 3, 4),
                None,
                schema.NameLocation("n", 0),
                schema.CallSiteLocation(0, 2),
                schema.FusedLocation("m", (0, 2)),
            ),
            (schema.FunctionSourceMap("f", (schema.BytecodeLocation(1, 2),)),),
        ),
    )


@pytest.fixture(scope="module")
def add(corpus: Path) -> bytes:
    return (corpus / "vmfb" / "v17" / "add.vmvx.vmfb").read_bytes()


def check(data: bytes) -> iree.VmfbFile | None:
    return damaged_files.check(iree.load, data)


@pytest.mark.parametrize("source", ["own", "add"])
def test_every_truncation_is_refused(source: str, request: pytest.FixtureRequest) -> None:
    data = own_module() if source == "own" else request.getfixturevalue("add")
    # Behind the last blob a zip archive has its directory, which the loader does not need.
    needed = max(
        [entry.module.container.end for entry in [iree.load(data)]]
        + [segment.offset + len(segment) for segment in iree.load(data).module.rodata]
    )
    for end in range(0, len(data), 3):
        assert (check(data[:end]) is None) is (end < needed)


def test_every_byte_of_an_own_module_may_be_changed() -> None:
    results = [use(check(changed)) for changed in changes(own_module(), VALUES)]
    assert any(results)
    assert not all(results)


def test_every_byte_of_a_small_real_file_may_be_changed(corpus: Path) -> None:
    data = (corpus / "vmfb" / "v17" / "scalar_ctl.vmvx.vmfb").read_bytes()
    results = [use(check(changed)) for changed in changes(data, VALUES)]
    assert any(results)
    assert not all(results)


def test_bytes_of_a_file_with_dispatches_may_be_changed(add: bytes) -> None:
    results = [check(changed) is not None for changed in changes(add, 1, range(0, len(add), 5))]
    assert any(results)
    assert not all(results)


@pytest.mark.nightly
def test_every_byte_of_a_real_file_may_have_any_value(add: bytes) -> None:
    for changed in drawn_by_night(add):
        check(changed)


def use(loaded: iree.VmfbFile | None) -> bool:
    """What loads can be listed and described."""
    if loaded is None:
        return False
    for _ in iree.disassemble(loaded):
        pass
    iree.describe(loaded)
    return True


def test_memory_is_bounded_whatever_vectors_share() -> None:
    function = FunctionSource("f", "0v_v", ["start", ("return", [[]])])
    locations = (schema.FusedLocation(None, tuple(range(200))),) * 200
    data = module([function], debug_database=schema.DebugDatabase(locations))
    assert peak_memory(iree.load, data) < MEGABYTES_64 + 2 * len(data)
