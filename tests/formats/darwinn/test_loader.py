"""Detection, the custom operator's options, and the pairing of executables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import darwinn, tflite
from darwinn_formats import flatbuffer as fb
from darwinn_formats.darwinn import ExecutableType, FormatError
from flatbuffers import flexbuffers


def executable(kind: ExecutableType, token: int, name: str = "") -> darwinn.Executable:
    return darwinn.Executable(name=name, type=kind, parameter_caching_token=token)


CACHING = executable(ExecutableType.PARAMETER_CACHING, 1, "caching")
INFERENCE = executable(ExecutableType.EXECUTION_ONLY, 1, "inference")
ALONE = executable(ExecutableType.STAND_ALONE, 0, "alone")
FIRST = darwinn.Package.of(INFERENCE, CACHING, compiler_version="first")
SECOND = darwinn.Package.of(ALONE, compiler_version="second")


def options(entries: Mapping[str, Any]) -> bytes:
    """FlexBuffer map; texts are written as strings of binary data."""
    builder = flexbuffers.Builder()

    def add(value: Any) -> None:
        if isinstance(value, int):
            builder.Int(value)
        elif isinstance(value, float):
            builder.Float(value)
        elif isinstance(value, bytes):
            # The builder's own String takes text only.
            builder._WriteBlob(value, append_zero=True, type_=flexbuffers.Type.STRING)
        else:
            with builder.Vector():
                for entry in value:
                    add(entry)

    with builder.Map():
        for key, value in entries.items():
            builder.Key(key)
            add(value)
    return bytes(builder.Finish())


def model(*custom: bytes | None, name: str = "edgetpu-custom-op", graphs: int = 1) -> bytes:
    """A .tflite model with the custom operators, the same in each of its graphs."""
    nodes = tuple(
        tflite.Operator(custom_options=None if data is None else fb.Span(memoryview(data)))
        for data in custom
    )
    code = tflite.OperatorCode(deprecated_builtin_code=32, custom_code=name, builtin_code=32)
    graph = tflite.SubGraph(operators=nodes)
    return fb.write(tflite.Model(3, (code,), (graph,) * graphs))


def usual(**changes: Any) -> bytes:
    entries = {"1": 0, "4": darwinn.dump(FIRST), "5": -1, "6": [18], "7": []}
    entries |= {key.strip("_"): value for key, value in changes.items()}
    return options({key: value for key, value in entries.items() if value is not None})


def test_the_content_shows_what_a_file_is(tmp_path: Path) -> None:
    package = darwinn.dump(FIRST)
    for number, (data, kind) in enumerate([(package, "package"), (model(usual()), "tflite")]):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(data)
        loaded = darwinn.load(path)
        assert (loaded.kind, loaded.file, loaded.size) == (kind, str(path), len(data))
        assert loaded.sha256 == hashlib.sha256(data).hexdigest()
        assert loaded.packages == (FIRST,)
        assert loaded.executables == (INFERENCE, CACHING)
        assert (loaded.shell is not None) == (kind == "tflite")


def test_an_empty_file_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").touch()
    with pytest.raises(FormatError, match=r"identifier: the file is empty$"):
        darwinn.load(tmp_path / "model.tflite")


@pytest.mark.parametrize("data", [b"text", bytes(16), b"PK\3\4" * 8])
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"neither a \.tflite model, nor") as info:
        darwinn.load(path)
    assert (info.value.file, info.value.offset) == (str(path), 0)


def chunk(bundles: int) -> bytes:
    """A chunk of so many bundles: LoadProgram counts those between itself and the last one."""
    first = 62 << 6 | (bundles - 2) << 26
    return first.to_bytes(16, "little") + bytes(16 * (bundles - 1))


def test_a_stream_is_cut_into_chunks(tmp_path: Path) -> None:
    path = tmp_path / "stream.bin"
    path.write_bytes(chunk(2) + chunk(5) + chunk(3))
    loaded = darwinn.load(path)
    assert (loaded.kind, loaded.stream) == ("stream", path.read_bytes())
    assert darwinn.describe(loaded)["stream"]["chunks"] == [
        {"offset": 0, "bytes": 32, "bundles": 2},
        {"offset": 32, "bytes": 80, "bundles": 5},
        {"offset": 112, "bytes": 48, "bundles": 3},
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (chunk(2) + chunk(3)[:-1], "chunk at 32 ends after the data"),
        (chunk(2) + chunk(3)[:15], "chunk at 32 is not an instruction chunk"),
        (chunk(2) + bytes(32), "chunk at 32 is not an instruction chunk"),
    ],
)
def test_a_stream_ends_with_a_chunk(data: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "stream.bin"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=reason) as info:
        darwinn.load(path)
    assert info.value.offset == 32


def test_bare_streams(corpus: Path) -> None:
    for path in (corpus / "coral").iterdir():
        data = path.read_bytes()
        loaded = darwinn.load(path)
        assert (loaded.kind, loaded.stream) == ("stream", data)
        assert loaded.executables == ()
        two = darwinn.load(data * 2)
        assert len(darwinn.describe(two)["stream"]["chunks"]) == 2
        for wrong in (data[:-16], data + bytes(16)):
            with pytest.raises(FormatError, match="stream"):
                darwinn.load(wrong)


def test_all_operators_of_all_graphs_are_loaded() -> None:
    second = usual(_4=darwinn.dump(SECOND), _5=None, _6=None, _7=None)
    loaded = darwinn.load(model(usual(), second, graphs=2))
    places = [(entry.subgraph, entry.operator) for entry in loaded.operators]
    assert places == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert loaded.packages == (FIRST, SECOND) * 2
    usual_entry, old_entry = loaded.operators[:2]
    assert (usual_entry.execution_preference, usual_entry.chip_versions) == (-1, (18,))
    assert (old_entry.execution_preference, old_entry.chip_versions) == (None, ())


def test_further_packages_and_deprecated_options() -> None:
    entries = usual(_2=b"bea\xffgle", _3=b"\0old", _6=[18, 19], _7=[darwinn.dump(SECOND)], _1=2)
    operator = darwinn.load(model(entries)).operators[0]
    assert operator.packages == (FIRST, SECOND)
    assert (operator.version, operator.chip_versions) == (2, (18, 19))
    assert (operator.deprecated_chip_name, operator.deprecated_bytes) == ("bea\ufffdgle", 4)


@pytest.mark.parametrize(
    ("custom", "field", "reason"),
    [
        (None, "custom_options", "the options are absent"),
        (b"", "custom_options", "0 bytes are fewer"),
        (options({"4": b""}), '"4"', "0 bytes are fewer than the header of 8"),
        (usual(_4=None), '"4"', "the package is absent"),
        (usual(_4=5), '"4"', "not a string"),
        (usual(_1=1.5), '"1"', "not an integer"),
        (usual(_5=b"1"), '"5"', "not an integer"),
        (usual(_6=[]), '"6"', "at least one entry"),
        (usual(_6=[1.5]), '"6"', "not a vector of integers"),
        (usual(_6=[18, 18]), '"6"', "2 chip versions for 1 packages"),
        (usual(_7=[5]), '"7"', "not a vector of strings"),
        (usual(_6=None, _7=[b"more"]), '"6"', "several packages, but no chip versions"),
        (usual(_6=[18, 18], _7=[b"no package"]), r'"7\[0\]"', "file identifier"),
        (usual(_8=1), '"8"', "not supported"),
    ],
)
def test_wrong_options_are_refused(custom: bytes | None, field: str, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as info:
        darwinn.load(model(custom))
    assert info.value.field.startswith("Model.subgraphs[0].operators[0].custom_options")
    assert info.value.offset
    assert field.replace("\\", "") in info.value.field


def test_a_model_that_is_not_compiled_is_refused() -> None:
    with pytest.raises(FormatError, match="it is not compiled"):
        darwinn.load(model(usual(), name="other-op"))


def test_offsets_of_errors_count_from_the_start_of_the_file() -> None:
    """A fault three buffers deep is reported at its place in the .tflite file."""
    data = model(usual())
    inner = data.index(b"inference")
    with pytest.raises(FormatError, match="text is not UTF-8") as info:
        darwinn.load(data[: inner + 2] + b"\xff" + data[inner + 3 :])
    assert info.value.offset == inner + 2
    assert info.value.field == (
        'Model.subgraphs[0].operators[0].custom_options["4"].Package.serialized_multi_executable'
        ".serialized_executables[0].name"
    )


def file_of(*packages: darwinn.Package, name: str = "file") -> darwinn.DarwinnFile:
    return darwinn.DarwinnFile(name, "package", b"", packages)


def test_executables_of_a_package_are_paired() -> None:
    models = darwinn.load(darwinn.dump(FIRST)).models
    assert [(entry.inference, entry.caching) for entry in models] == [(INFERENCE, CACHING)]
    assert models[0].token == 1
    models = darwinn.load(darwinn.dump(SECOND)).models
    assert [(entry.inference, entry.caching) for entry in models] == [(ALONE, None)]
    assert not models[0].lacks_caching


def test_multi_chip_packages_are_flattened() -> None:
    whole = darwinn.Package(
        virtual_chip_id=-1,
        multi_chip_package=tuple(map(darwinn.SerializedPackage, (FIRST, SECOND))),
    )
    loaded = darwinn.load(darwinn.dump(whole))
    assert loaded.packages[0].multi_chip == (FIRST, SECOND)
    assert loaded.executables == (INFERENCE, CACHING, ALONE)
    assert [entry.caching for entry in loaded.models] == [CACHING, None]
    assert [(entry.number, entry.caching_number) for entry in loaded.models] == [(0, 1), (2, 0)]
    assert darwinn.describe(loaded)["packages"][0]["multi_chip"][1]["executables"] == [2]


def test_pairs_are_found_across_files_but_first_in_the_package() -> None:
    other = executable(ExecutableType.PARAMETER_CACHING, 1, "other")
    lonely = file_of(darwinn.Package.of(INFERENCE), name="lonely")
    paired = darwinn.pair([lonely, file_of(SECOND, FIRST)])
    assert [entry.caching for entry in paired] == [CACHING, None, CACHING]
    # Numbers are those of the files that they are in.
    numbers = [(entry.number, entry.caching_number) for entry in paired]
    assert numbers == [(0, 2), (0, 0), (1, 2)]
    own = file_of(darwinn.Package.of(INFERENCE, other))
    assert [entry.caching for entry in darwinn.pair([file_of(FIRST), own])] == [CACHING, other]
    with pytest.raises(FormatError, match=r"lonely: .*no executable caches"):
        darwinn.pair([lonely])
    with pytest.raises(FormatError, match="two different executables cache"):
        darwinn.pair([lonely, file_of(FIRST), own])
    twice = darwinn.Package.of(INFERENCE, CACHING, other)
    with pytest.raises(FormatError, match="two different executables cache"):
        darwinn.load(darwinn.dump(twice))


def test_cocompiled_files_share_a_token_and_keep_their_own_parameters(corpus: Path) -> None:
    small = "mobilenet_v1_0.25_128_quant"
    large = "mobilenet_v1_0.5_160_quant"
    files = [
        darwinn.load(corpus / "darwinn" / f"{one}_cocompiled_with_{two}_edgetpu.tflite")
        for one, two in ((small, large), (large, small))
    ]
    first, second = darwinn.pair(files)
    assert first.token == second.token
    assert first.caching is not None
    assert second.caching is not None
    assert len(first.caching.parameters) == 566912
    assert len(second.caching.parameters) == 1473280
    assert (first.file, second.file) == (files[0].file, files[1].file)


def test_a_real_file_field_by_field(corpus: Path) -> None:
    loaded = darwinn.load(corpus / "darwinn" / "keras_lstm_mnist_ptq_edgetpu.tflite")
    package = loaded.packages[0]
    assert package.min_runtime_version == 12
    inference, caching = loaded.executables
    assert (inference.chip, inference.batch_size) == ("beagle", 1)
    assert (inference.scratch_size_bytes, len(inference.parameters)) == (672, 576)
    assert not inference.dma_hints.fully_deterministic
    assert caching.type is ExecutableType.PARAMETER_CACHING
    layer = inference.input_layers[2]
    assert (layer.size_bytes, layer.z_dim, layer.data_type.name) == (
        40,
        20,
        "SIGNED_FIXED_POINT16",
    )
    assert layer.numerics == darwinn.NumericsConstants(32768, 2.0**-12)
    assert isinstance(layer.any_layer, darwinn.InputLayer)


@pytest.mark.parametrize("value", [5, 1.5, "text", [1, 2]])
def test_options_are_a_map(value: object) -> None:
    data = bytes(flexbuffers.Dumps(value))
    with pytest.raises(FormatError, match="the options are not a map"):
        darwinn.load_operator(fb.Span(memoryview(data)))
