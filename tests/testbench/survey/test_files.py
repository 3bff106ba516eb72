"""What a survey finds in folders: each file once, known by its content, paired by rule."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import tracemalloc
from pathlib import Path

import pytest
from darwinn_formats.darwinn import load
from darwinn_testbench.survey import content
from darwinn_testbench.survey.content import UNCOMPILED, CompiledFile, look_at
from darwinn_testbench.survey.pairs import companions_of, pipelines, reference_of, stem_of
from darwinn_testbench.survey.walk import Place, walk
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def stream(samples: Path) -> bytes:
    """A program of several chunks as a bare instruction stream."""
    executable = load(samples / "dense_edgetpu.tflite").models[0].inference
    chunks = [bytes(part.bitstream) for part in executable.instruction_bitstreams]
    return b"".join(chunks * 2)


def found(*paths: Path) -> dict[str, Place]:
    return {place.path.name: place for place in walk(paths)}


def test_each_file_is_found_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b/2", "b/1", "a", "c/d/e/f"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    twice = [tmp_path, tmp_path / "b", tmp_path / "a"]
    names = [str(place.path.relative_to(tmp_path)) for place in walk(twice)]
    assert names == ["a", "b/1", "b/2", "c/d/e/f"]


def test_links_are_followed_to_files_and_lead_in_no_circle(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "up").symlink_to(tmp_path)
    (tmp_path / "folder" / "file2").symlink_to(tmp_path / "file")
    (tmp_path / "folder" / "gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "folder" / "itself").symlink_to("itself")
    places = found(tmp_path)
    assert places["file2"] == Place(tmp_path / "folder" / "file2")
    assert places["up"].skipped == "link to a folder: give it by name"
    assert places["gone"].skipped == places["itself"].skipped == "link that leads nowhere"
    assert places.keys() == {"file", "file2", "up", "gone", "itself"}
    assert found(tmp_path / "folder" / "up").keys() >= {"file", "file2"}


def test_hidden_files_and_pipes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "object").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    places = found(tmp_path)
    assert places[".git"].skipped == "hidden"
    assert places["pipe"].skipped == "no regular file"
    assert "object" in found(tmp_path / ".git"), "given by name it is looked into"


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    assert found(tmp_path / "none")["none"].unread.endswith("No such file or directory")


def test_a_name_that_is_not_utf8_is_the_path_itself(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.package"))
    path.write_bytes(b"DWN1")
    assert list(walk([tmp_path])) == [Place(path)]


def test_a_path_that_is_too_long_is_a_row(tmp_path: Path) -> None:
    place = tmp_path.joinpath(*["x" * 200] * 30)
    (found,) = walk([place])
    assert "too long" in found.unread


def test_folders_may_be_deeper_than_calls(tmp_path: Path) -> None:
    path = tmp_path
    for _ in range(1200):
        path = path / "d"
        try:
            path.mkdir()
        except OSError:
            # The name of the path has become longer than the system takes.
            path = path.parent
            break
    (path / "f").write_bytes(b"x")
    try:
        assert found(tmp_path).keys() == {"f"}
    finally:
        # Python's own removal is a recursion.
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True, timeout=60)


def test_programs_are_known_by_content_whatever_they_are_called(
    samples: Path, stream: bytes, tmp_path: Path
) -> None:
    for source in ("dense_edgetpu.tflite", "dense.package"):
        shutil.copy(samples / source, tmp_path / "photo.png")
        assert isinstance(look_at(tmp_path / "photo.png"), CompiledFile)
    (tmp_path / "notes.txt").write_bytes(stream)
    seen = look_at(tmp_path / "notes.txt")
    assert isinstance(seen, CompiledFile)
    assert (seen.kind, seen.models, seen.runtime) == ("stream", 1, None)


def test_facts_are_those_of_the_file(samples: Path) -> None:
    seen = look_at(samples / "dense_chips.package")
    assert isinstance(seen, CompiledFile)
    assert (seen.kind, seen.models, seen.runtime) == ("package", 2, 14)
    assert seen.compiler == "darwinn-testbench sample"
    assert seen.sha256 == load(samples / "dense_chips.package").sha256


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n", "image"),
        (b"\x93NUMPY\1\0", "array"),
        (b"PK\3\4" + bytes(40), "archive"),
        (b"hello\n", "text"),
        ("größer\n".encode(), "text"),
        (b"\x0b\xef\0\0", "BEF program"),
        (b"\0\0\0\0ET12", "ExecuTorch program"),
        (b"\x1c\0\0\0TFL3" + bytes(40), UNCOMPILED),
        (bytes(100), "no program of the chip"),
    ],
)
def test_other_files_are_left_out_by_what_they_are(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    (tmp_path / "file").write_bytes(data)
    assert look_at(tmp_path / "file") == reason


def test_a_model_that_is_cut_off_is_one_with_a_reason(
    samples: Path, stream: bytes, tmp_path: Path
) -> None:
    whole = (samples / "dense_edgetpu.tflite").read_bytes()
    for name, data in (("model", whole[: len(whole) // 2]), ("stream", stream[:-7])):
        (tmp_path / name).write_bytes(data)
        seen = look_at(tmp_path / name)
        assert isinstance(seen, CompiledFile)
        assert seen.error.startswith(f"{tmp_path / name}: byte ")


@given(st.binary(max_size=400), st.booleans())
def test_random_data_is_never_an_error_and_seldom_a_program(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, like_a_chunk: bool
) -> None:
    """Also where it begins as a chunk does: opcode 62, and a length beyond the file."""
    path = tmp_path_factory.getbasetemp() / "random"
    path.write_bytes((b"\x80\x0f\xff\xff" if like_a_chunk else b"") + data)
    look_at(path)


def test_huge_files_are_not_read_whole(tmp_path: Path) -> None:
    """Sparse files of more than is ever read."""
    size = 300 << 20
    for name, head in (("data", b"\0"), ("chunk", b"\x80\x0f"), ("model", b"\0\0\0\0TFL3")):
        (tmp_path / name).write_bytes(head)
        os.truncate(tmp_path / name, size)
    tracemalloc.start()
    begin = time.monotonic()
    reasons = [look_at(tmp_path / name) for name in ("data", "chunk", "model")]
    seconds, peak = time.monotonic() - begin, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reasons == ["no program of the chip", "no program of the chip", UNCOMPILED]
    assert peak < 64 << 20
    assert seconds < 60


def test_a_package_larger_than_can_be_read_is_bad_input(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "MAX_FILE_BYTES", 1000)
    seen = look_at(samples / "dense.package")
    assert isinstance(seen, CompiledFile)
    assert seen.error.endswith("size: more than 1000 bytes")


@pytest.mark.parametrize(
    ("compiled", "uncompiled"),
    [
        ("zoo/net_edgetpu.tflite", "zoo/net.tflite"),
        ("zoo/net_edgetpu.tflite", "zoo/tflite/net.tflite"),
        ("zoo/darwinn/net_edgetpu.tflite", "zoo/tflite/net.tflite"),
        ("zoo/net.coral", "zoo/tflite/net.tflite"),
        ("zoo/darwinn/net.tflite", "zoo/tflite/net.tflite"),
        ("zoo/net.1.0_quant-edgetpu.tflite", "zoo/net.1.0_quant.tflite"),
        ("zoo/net_cocompiled_with_other_edgetpu.tflite", "zoo/net.tflite"),
        ("zoo/net_cocompiled_with_3quant_edgetpu.tflite", "zoo/tflite/net.tflite"),
        ("zoo/net_segment_1_of_3_edgetpu.tflite", "zoo/net.tflite"),
    ],
)
def test_a_reference_is_found_by_name_and_place(
    samples: Path, tmp_path: Path, compiled: str, uncompiled: str
) -> None:
    for source, target in (("dense_edgetpu.tflite", compiled), ("dense.tflite", uncompiled)):
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(samples / source, tmp_path / target)
    reference = reference_of(tmp_path / compiled)
    assert reference is not None
    assert reference.samefile(tmp_path / uncompiled)
    (tmp_path / uncompiled).unlink()
    assert reference_of(tmp_path / compiled) is None


def test_the_own_name_goes_before_that_of_the_whole(samples: Path, tmp_path: Path) -> None:
    for name in ("a_segment_0_of_2", "a"):
        shutil.copy(samples / "dense.tflite", tmp_path / f"{name}.tflite")
    reference = reference_of(tmp_path / "a_segment_0_of_2_edgetpu.tflite")
    assert reference == tmp_path / "a_segment_0_of_2.tflite"


def test_a_compiled_model_is_no_reference(samples: Path, tmp_path: Path) -> None:
    for name in ("net.tflite", "net_edgetpu.tflite"):
        shutil.copy(samples / "dense_edgetpu.tflite", tmp_path / name)
    assert reference_of(tmp_path / "net_edgetpu.tflite") is None


def test_a_reference_is_found_from_within_its_folder(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, source in (("darwinn", "dense_edgetpu.tflite"), ("tflite", "dense.tflite")):
        (tmp_path / folder).mkdir()
        shutil.copy(samples / source, tmp_path / folder / source)
    monkeypatch.chdir(tmp_path / "darwinn")
    reference = reference_of(Path("dense_edgetpu.tflite"))
    assert reference is not None
    assert reference.samefile(tmp_path / "tflite" / "dense.tflite")


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("a_edgetpu.tflite", "a"),
        ("a.b_edgetpu.tflite", "a.b"),
        ("a.package", "a"),
        ("_edgetpu.tflite", "_edgetpu"),
        ("a", "a"),
    ],
)
def test_stems(name: str, stem: str) -> None:
    assert stem_of(Path("folder") / name) == stem


def test_parameters_come_from_the_file_that_caches_them_nearest_first() -> None:
    lacking = CompiledFile(Path("a/x"), lacks=frozenset({7}))
    near = CompiledFile(Path("a/y"), caches=frozenset({7, 8}))
    far = CompiledFile(Path("b/y"), caches=frozenset({7}))
    other = CompiledFile(Path("a/z"), caches=frozenset({8}))
    assert companions_of(lacking, [far, other, lacking, near]) == (near,)
    assert companions_of(lacking, [far, other]) == (far,)
    assert companions_of(near, [far, lacking]) == ()


def test_segments_make_a_pipeline_where_all_are_there() -> None:
    def of(folder: str, *numbers: int, count: int = 3) -> list[CompiledFile]:
        return [
            CompiledFile(Path(f"{folder}/net_segment_{k}_of_{count}_edgetpu.tflite"))
            for k in numbers
        ]

    whole, part, huge = of("a", 2, 0, 1), of("b", 0, 1), of("c", 0, 1, count=10**18)
    (pipeline,) = pipelines([*whole, *part, *huge, CompiledFile(Path("a/net_edgetpu.tflite"))])
    assert pipeline.name == "net"
    assert [file.path.name[:13] for file in pipeline.segments] == [
        "net_segment_0",
        "net_segment_1",
        "net_segment_2",
    ]
    assert not list(pipelines(of("a", 0, 1, 3))), "a number beyond the count"
