"""Every package that the dataclasses can hold survives being written and loaded."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import FormatError
from darwinn_formats.flatbuffer import encoding, references, schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LETTERS = st.characters(codec="utf-8")
NUMBERS: dict[encoding.Primitive, st.SearchStrategy[Any]] = {
    encoding.BOOL: st.booleans(),
    encoding.UINT8: st.integers(0, 2**8 - 1),
    encoding.INT16: st.integers(-(2**15), 2**15 - 1),
    encoding.INT32: st.integers(-(2**31), 2**31 - 1),
    encoding.UINT64: st.integers(0, 2**64 - 1),
    encoding.INT64: st.integers(-(2**63), 2**63 - 1),
    encoding.FLOAT32: st.floats(width=32, allow_nan=False),
}


def tables(target: type[Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Any value of a dataclass, field by field from what its schema declares."""
    fields = {
        member.name: st.just(())
        if depth > 1 and member.name == "multi_chip_package"
        else contents(member.field.kind, member.field, depth)
        for member in schema.schema_of(target).members
    }
    return st.builds(target, **fields)


def contents(kind: Any, field: schema.Field, depth: int) -> st.SearchStrategy[Any]:
    optional = field.absent is None and not field.required
    match kind:
        case schema.Scalar(primitive, enum):
            return st.sampled_from(list(enum)) if enum else NUMBERS[primitive]
        case schema.Union():
            members = [tables(target, depth + 1) for target in kind.members.values()]
            return st.none() | st.one_of(members)
        case references.String():
            text = st.text(LETTERS, max_size=8)
            return st.none() | text if optional else text
        case references.Bytes():
            return st.binary(max_size=24)
        case references.Numbers(element):
            return st.lists(NUMBERS[element], max_size=4).map(tuple)
        case references.Structs(element):
            return st.lists(tables(element, depth + 1), max_size=3).map(tuple)
        case references.References(element):
            inner = schema.Field(element, (), None, True)
            return st.lists(contents(element, inner, depth), max_size=2).map(tuple)
        case references.Table(target):
            value = tables(target, depth + 1)
            return st.none() | value if optional else value
        case references.Nested(target):
            value = tables(target(), depth + 1)
            return st.none() | value if optional else value
    raise AssertionError(kind)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tables(darwinn.Package))
def test_every_package_survives_being_written_and_loaded(package: darwinn.Package) -> None:
    loaded = darwinn.load(darwinn.dump(package))
    assert loaded.kind == "package"
    assert loaded.packages == (package,)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(tables(darwinn.Executable))
def test_every_executable_survives_and_can_be_described(executable: darwinn.Executable) -> None:
    loaded = darwinn.load(darwinn.dump(darwinn.Package.of(executable)))
    assert loaded.executables == (executable,)
    json.dumps(darwinn.describe(loaded), allow_nan=False)


def test_every_hint_kind_type_and_layout_of_the_schema_is_generated() -> None:
    """The strategies above reach what real files lack: nothing of the schema is left out."""
    reached: set[type[Any]] = set()

    def visit(target: type[Any]) -> None:
        if target in reached:
            return
        reached.add(target)
        for member in schema.schema_of(target).members:
            kind: Any = member.field.kind
            kind = getattr(kind, "element", kind)
            if isinstance(kind, schema.Union):
                for inner in kind.members.values():
                    visit(inner)
            elif isinstance(kind, type):
                visit(kind)
            elif isinstance(kind, references.Table):
                visit(kind.target)
            elif isinstance(kind, references.Nested):
                visit(kind.target())

    visit(darwinn.Package)
    declared = {
        value
        for value in vars(darwinn.schema).values()
        if dataclasses.is_dataclass(value) and isinstance(value, type)
    }
    assert reached == declared


def test_every_real_file_keeps_all_fields(corpus: Path) -> None:
    for path in sorted((corpus / "darwinn").iterdir()):
        loaded = darwinn.load(path)
        assert loaded.kind == "tflite"
        assert {executable.type.name for executable in loaded.executables} == {
            "EXECUTION_ONLY",
            "PARAMETER_CACHING",
        }
        for package in loaded.packages:
            again = darwinn.load(darwinn.dump(package))
            assert again.packages == (package,), path.name
        json.dumps(darwinn.describe(loaded), allow_nan=False)


def test_a_value_that_does_not_fit_is_refused_with_its_field() -> None:
    executable = darwinn.Executable(batch_size=2**31)
    with pytest.raises(FormatError, match=r"serialized_executables\[0\]\.Executable\.batch_size"):
        darwinn.dump(darwinn.Package.of(executable))
    layer = darwinn.Layer(name="\ud800")
    with pytest.raises(FormatError, match=r"output_layers\[0\]\.name: text has no UTF-8 form"):
        darwinn.dump(darwinn.Package.of(darwinn.Executable(output_layers=(layer,))))


def test_minus_zero_is_not_zero() -> None:
    numerics = darwinn.NumericsConstants(dequantization_factor=-0.0)
    executable = darwinn.Executable(input_layers=(darwinn.Layer(numerics=numerics),))
    loaded = darwinn.load(darwinn.dump(darwinn.Package.of(executable))).executables[0]
    assert loaded.input_layers[0].numerics is not None
    assert str(loaded.input_layers[0].numerics.dequantization_factor) == "-0.0"
