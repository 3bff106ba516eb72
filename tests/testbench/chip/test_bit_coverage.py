"""How well the instruction bits are understood: on small streams and on the corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from darwinn_sim.isa.codec import encode_operations
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_testbench.chip.bit_coverage import coverage
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.report import Verdict

STREAM = encode_operations([("LoadProgram", {"bundles": 1}), ("Scalar", {}), ("Execute", {})])


def write(tmp_path: Path, stream: bytes, name: str = "tiny.coral") -> Path:
    path = tmp_path / name
    path.write_bytes(stream)
    return path


def test_set_bits_are_counted_by_opcode(tmp_path: Path) -> None:
    report = coverage([write(tmp_path, STREAM)])
    assert report.verdict is Verdict.PASS
    assert {row.name for row in report.rows} == {"LoadProgram", "Scalar", "Execute"}
    total = report.figures["total"]
    assert total.set_bits == sum(byte.bit_count() for byte in STREAM)
    assert total.set_bits == sum(row.set_bits for row in report.rows)
    assert (total.instructions, total.explained, total.outside) == (3, 1.0, 0)


def test_a_bit_outside_every_field_is_reported(tmp_path: Path) -> None:
    stray = bytearray(STREAM)
    stray[31] |= 0x80
    report = coverage([write(tmp_path, bytes(stray)), write(tmp_path, STREAM, "other.coral")])
    row = next(row for row in report.rows if row.name == "Scalar")
    assert (row.instructions, row.outside, row.verdict) == (2, 1, Verdict.REFUSED)
    assert row.explained == 1 - 1 / row.set_bits
    assert "100 %" not in report.message


def test_a_stream_that_does_not_decode_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, STREAM)
    opcode = min(set(range(64)) - INSTRUCTIONS.keys())
    path.write_bytes(STREAM[:16] + (opcode << 6).to_bytes(16, "little") + STREAM[32:])
    report = coverage([path])
    assert report.verdict is Verdict.REFUSED
    assert f"unknown opcode {opcode}" in report.rows[-1].message
    assert report.figures["total"].set_bits == 0


def test_command_prints_several_files_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(write(tmp_path, STREAM, name)) for name in ("a.coral", "b.coral")]
    assert run_command_line(["inspect", "--coverage", *paths]) == 0
    assert "100 %" in capsys.readouterr().out
    assert run_command_line(["inspect", "--coverage", "--json", *paths]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["files"]) == 2
    assert report["total"]["explained"] == 1
    assert run_command_line(["inspect", *paths]) == 0
    assert capsys.readouterr().out.count("STREAM") == 2


def test_every_set_bit_of_the_corpus_has_a_known_meaning(corpus: Path) -> None:
    files = sorted([*corpus.glob("darwinn/*.tflite"), *corpus.glob("coral/*.coral")])
    report = coverage(files)
    assert report.verdict is Verdict.PASS
    total = report.figures["total"]
    assert (total.explained, total.open, total.outside) == (1.0, 0, 0)
    assert total.high_share > 0.99
