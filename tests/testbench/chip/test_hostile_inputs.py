"""Images and archives: bounded in memory, and with names that stay where they are unpacked."""

from __future__ import annotations

import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from darwinn_testbench.chip.inputs import TensorPort, member_name, read_archive, read_inputs
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import sample
from darwinn_testbench.errors import InputError

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


def test_a_large_picture_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    path = large_png(tmp_path / "large.png", 13000)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    said, mebibytes = done.stdout.splitlines()
    assert said == f"InputError {path}: 13000 x 13000 pixels, more than {1 << 26}"
    assert int(mebibytes) < 50
    assert not done.stderr


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
    assert list(read_archive(path)) == [name]


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
    assert list(read_archive(Path(stored))) == [hostile.decode()]
    assert run_command_line(["verify", file, "--runs", "1", "--expected", stored]) == 0
    capsys.readouterr()
