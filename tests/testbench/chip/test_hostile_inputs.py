"""Images and archives: bounded in memory, and with names that stay where they are unpacked."""

from __future__ import annotations

import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import FormatError
from darwinn_formats.limits import Limits, limited
from darwinn_testbench.chip.array_files import member_name, stored_arrays
from darwinn_testbench.chip.inputs import TensorPort, read_inputs
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError
from sample_files import sample

PORT = TensorPort("x", (1, 4, 4, 3), np.dtype(np.uint8))


def large_png(path: Path, side: int) -> Path:
    """A black picture of ``side`` x ``side`` pixels in few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + checksum

    rows = zlib.compressobj(9)
    pixels = b"".join(rows.compress(bytes(1 + 3 * side)) for _ in range(side)) + rows.flush()
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    return path


READ = """
import resource, sys
import numpy as np
from darwinn_testbench.chip.inputs import TensorPort, read_inputs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_inputs([sys.argv[1]], [TensorPort("x", (1, 4, 4, 3), np.dtype(np.uint8))])
except Exception as error:
    print(type(error).__name__, error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def read_alone(path: Path) -> tuple[str, int]:
    """What is said of a file, and how much memory reading it takes, in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert not done.stderr
    said, mebibytes = done.stdout.splitlines()
    return said, int(mebibytes)


def packed(path: Path, *shape: int, head: tuple[int, ...] = ()) -> Path:
    """An archive with zeros of a shape, of which its head may say another one."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as stream,
    ):
        description = {"descr": "|u1", "fortran_order": False, "shape": head or shape}
        np.lib.format.write_array_header_1_0(stream, description)
        for _ in range(shape[0]):
            stream.write(bytes(int(np.prod(shape[1:]))))
    return path


def test_a_large_picture_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    path = large_png(tmp_path / "large.png", 13000)
    said, mebibytes = read_alone(path)
    assert said == f"InputError {path}: 13000 x 13000 pixels, more than {1 << 26}"
    assert mebibytes < 50


def test_an_array_that_does_not_fit_is_not_unpacked(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.npz", 60, 1 << 20)
    said, mebibytes = read_alone(path)
    assert said.startswith(f"InputError {path}: x (uint8 1x4x4x3): the data has shape 60x1048576")
    assert mebibytes < 20


def test_an_archive_of_nothing_is_not_unpacked_although_it_fits(tmp_path: Path) -> None:
    """Any number of inferences fits."""
    path = packed(tmp_path / "x.npz", 2000, 1000, 48, head=(2_000_000, 4, 4, 3))
    said, mebibytes = read_alone(path)
    assert said.startswith(f"InputError {path}: unpacks to 96")
    assert said.endswith(f" bytes, more than {1 << 26}")
    assert mebibytes < 20


def test_what_is_as_large_in_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    port = TensorPort("x", (1, 40, 40, 3), np.dtype(np.uint8))
    np.savez(path, x=np.zeros((15_000, 40, 40, 3), np.uint8))
    assert len(read_inputs([path], [port])) == 15_000
    with limited(Limits(1, 1 << 20)), pytest.raises(InputError, match=r"1048576 \(--max-memory"):
        read_inputs([path], [port])


def test_a_small_file_does_not_ask_for_any_number_of_inferences(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.npz", 2000, 1000, head=(2_000_000,))
    scalar = TensorPort("x", (1,), np.dtype(np.uint8))
    with pytest.raises(
        InputError, match="2000000 inferences in one file, at most 65536 are allowed"
    ):
        read_inputs([path], [scalar])


def test_what_data_becomes_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((100, 4, 4, 3), np.uint8))
    port = TensorPort("x", (1, 4, 4, 3), np.dtype(np.float64))
    assert len(read_inputs([path], [port])) == 100
    with limited(Limits(memory=10_000)), pytest.raises(FormatError, match="input x: 38400 bytes"):
        read_inputs([path], [port])


def test_a_head_that_promises_more_than_there_is_allocates_nothing(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.npz", 1, 48, head=(1 << 50, 4, 4, 3))
    said, mebibytes = read_alone(path)
    assert "not a readable NumPy file: shape (1125899906842624, 4, 4, 3) of uint8 in" in said
    assert mebibytes < 20


@pytest.mark.parametrize("suffix", ["npy", "npz"])
@pytest.mark.parametrize(
    "shape", ["(True, 4, 4, 3)", "(-1, -4, 4, 3)", "(1.0, 48)", "48", "(1<<70,)"]
)
def test_a_shape_that_is_none_is_refused(tmp_path: Path, shape: str, suffix: str) -> None:
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    data = b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + bytes(48)
    path = tmp_path / f"x.{suffix}"
    if suffix == "npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", data)
    else:
        path.write_bytes(data)
    with pytest.raises(InputError, match="not a readable NumPy file"):
        read_inputs([path], [PORT])


@pytest.mark.parametrize("pack", [np.savez, np.savez_compressed])
def test_every_changed_byte_of_data_is_noticed(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "x.npz"
    pack(path, x=np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3))
    data = path.read_bytes()
    begin = data.index(b"x.npy") + 5
    for at in range(begin, data.index(b"PK\x01\x02")):
        path.write_bytes(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
        try:
            (found,) = read_inputs([path], [PORT])
        except InputError:
            continue
        # Only what describes the member changed, not what it holds.
        np.testing.assert_array_equal(found["x"].ravel(), np.arange(48))


def test_a_picture_of_another_kind_is_not_opened_whatever_it_is_called(tmp_path: Path) -> None:
    """Pillow gives PostScript to another program."""
    path = tmp_path / "picture.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%EndComments\n%%EOF\n")
    with pytest.raises(InputError, match="cannot identify"):
        read_inputs([path], [PORT])


@pytest.mark.parametrize(
    "name",
    [
        "../../x",
        "/x",
        "a/../x",
        "..",
        "",
        "a//b",
        "x\\y",
        "\x1b[2J\n",
        "100%",
        "%2F",
        "file",
        "é/b",
    ],
)
def test_names_stay_in_the_archive_and_come_back(tmp_path: Path, name: str) -> None:
    member = member_name(name)
    assert not {"", "..", "."} & set(f"{member}.npy".split("/"))
    assert member.isprintable()
    assert "\\" not in member
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open(f"{member}.npy", "w") as stream:
        np.lib.format.write_array(stream, np.arange(3))
    assert list(stored_arrays(path)) == [name]


def test_names_of_networks_stay_as_they_are() -> None:
    for name in ("MobilenetV2/Predictions/Reshape_1", "StatefulPartitionedCall:0", "a b.c-d"):
        assert member_name(name) == name


@pytest.mark.parametrize("hostile", [b"../..x", b"\x1b\n/../", b"file\xc2\xa0"])
def test_what_run_writes_verify_takes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hostile: bytes
) -> None:
    sample(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes().replace(b"output", hostile))
    file, stored = str(tmp_path / "dense_edgetpu.tflite"), str(tmp_path / "out.npz")
    assert run_command_line(["run", file, "--output", stored]) == 0
    with zipfile.ZipFile(stored) as archive:
        (name,) = archive.namelist()
    assert not {"", "..", "."} & set(name.split("/"))
    assert name.isprintable()
    assert list(stored_arrays(Path(stored))) == [hostile.decode()]
    assert run_command_line(["verify", file, "--runs", "1", "--expected", stored]) == 0
    capsys.readouterr()


def test_a_directory_of_members_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise thousands of members take hours."""
    path = tmp_path / "x.npz"
    np.savez(path, *range(50))
    opened = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *arguments: Any) -> None:
            opened.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    arrays = stored_arrays(path)
    assert [int(np.asarray(arrays[f"arr_{k}"])) for k in range(50)] == list(range(50))
    assert len(opened) == 1
