"""A program whose last chunk waits for another: shown as far as it goes, and run with the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.darwinn import Executable, load
from darwinn_formats.darwinn.bundle import BUNDLE_BYTES
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import IncompleteProgram
from darwinn_sim.isa.builder import frame
from darwinn_sim.isa.codec import DecodedChunk, decode
from darwinn_sim.isa.table import BY_NAME
from darwinn_testbench.chip.execution import run
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.report import Verdict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_files import sample

SHOWING = ("inspect", "disasm", "dma", "layers", "cycles", "profile")
RUNNING = ("run", "verify", "report")
MISSING = "the program waits for its next instruction chunk"
STRANGERS = "inception_0.coral"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    """A whole program with parameters, in one chunk."""
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    (executable,) = load(folder / "dense_stand_alone_edgetpu.tflite").executables
    return executable


def stream_of(executable: Executable) -> bytes:
    """The program as a bare stream."""
    return b"".join(bytes(part.bitstream) for part in executable.instruction_bitstreams)


def boundaries(program: DecodedChunk) -> list[int]:
    """Bundles of the body before which a chunk may end: between instructions, in no loop."""
    loops = program.columns.get(BY_NAME["Loop"].opcode, {"body": np.empty(0, np.int64)})["body"]
    starts = program.pc[program.opcode == BY_NAME["Loop"].opcode]
    inside = {
        pc
        for start, body in zip(starts, loops, strict=True)
        for pc in range(start + 1, start + 1 + body)
    }
    halt = int(program.pc[program.opcode == BY_NAME["Halt"].opcode][0])
    return [int(pc) for pc in program.pc if 1 < pc < halt and pc not in inside]


def halves(stream: bytes, boundary: int) -> tuple[bytes, bytes]:
    """The program in two chunks, the second of which begins at a bundle of the first."""
    program = decode(stream)
    halt = int(program.pc[program.opcode == BY_NAME["Halt"].opcode][0])
    first, second = (
        stream[begin * BUNDLE_BYTES : end * BUNDLE_BYTES]
        for begin, end in ((1, boundary), (boundary, halt))
    )
    return frame(first, last=False), frame(second)


def outputs(file: Path) -> dict[str, bytes]:
    report = run(file, seed=3)
    assert report.verdict is Verdict.PASS, report.message
    return {row.name: row.tensor.tobytes() for row in report.rows}


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_chunks_one_after_another_are_the_whole_program(
    data: st.DataObject, model: Executable, tmp_path: Path
) -> None:
    stream = stream_of(model)
    boundary = data.draw(st.sampled_from(boundaries(decode(stream))))
    whole, chunks = tmp_path / "whole.coral", tmp_path / "chunks.coral"
    whole.write_bytes(stream)
    first, second = halves(stream, boundary)
    chunks.write_bytes(first + second)
    assert outputs(chunks) == outputs(whole)
    chunks.write_bytes(first)
    report = run(chunks, seed=3)
    assert report.verdict is Verdict.BAD_INPUT
    assert MISSING in report.message


@pytest.fixture
def half(model: Executable, tmp_path: Path) -> Path:
    """The first half of a program: it has issued its input, and no output yet."""
    stream = stream_of(model)
    places = boundaries(decode(stream))
    path = tmp_path / "half.coral"
    path.write_bytes(halves(stream, places[3 * len(places) // 4])[0])
    return path


def answer(
    capsys: pytest.CaptureFixture[str], command: str, file: Path, folder: Path
) -> tuple[int, dict[str, Any], str]:
    page = ["--output", str(folder / "page.html")] if command == "report" else []
    code = run_command_line([command, str(file), *page, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out), captured.err


@pytest.mark.parametrize("command", SHOWING)
def test_what_is_there_is_shown(
    command: str, half: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result, _ = answer(capsys, command, half, tmp_path)
    assert (code, result["verdict"]) == (0, "ran" if command == "dma" else "pass")
    assert MISSING in result["message"]
    assert result["rows"] or command == "layers"


@pytest.mark.parametrize("command", RUNNING)
def test_what_cannot_be_completed_is_bad_input(
    command: str, half: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result, said = answer(capsys, command, half, tmp_path)
    assert (code, result["verdict"]) == (2, "bad-input")
    (line,) = said.splitlines()
    assert line.startswith(f"darwinn {command}: bad-input: ")
    for text in (result["message"], line):
        assert MISSING in text


def test_its_transfers_are_those_of_the_whole_up_to_there(
    model: Executable, half: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tmp_path / "whole.coral"
    whole.write_bytes(stream_of(model))
    transfers = [
        [
            entry["issued"]
            for entry in answer(capsys, "dma", file, tmp_path)[1]["rows"][0]["entries"]
        ]
        for file in (half, whole)
    ]
    assert 1 < len(transfers[0]) < len(transfers[1])
    assert transfers[0] == transfers[1][: len(transfers[0])]


def test_taps_are_copied_where_it_waits(half: Path, tmp_path: Path) -> None:
    target = tmp_path / "taps.npz"
    arguments = ["run", str(half), "--tap", "wide:0:0:4", "--output", str(target)]
    assert run_command_line(arguments) == 2
    assert np.load(target)["tap0"].any()


def test_an_executable_that_lacks_its_last_chunk_is_incomplete(model: Executable) -> None:
    (part,) = model.instruction_bitstreams
    first, _ = halves(part.bitstream, boundaries(decode(part.bitstream))[-1])
    # The fields that are patched lie where they lay.
    last_bit = 8 * len(first)
    offsets = tuple(each for each in part.field_offsets if each.offset_bit < last_bit)
    cut = replace(
        model, instruction_bitstreams=(replace(part, bitstream=first, field_offsets=offsets),)
    )
    inputs = {layer.name: bytes(layer.size_bytes) for layer in model.input_layers}
    chip = Accelerator()
    with pytest.raises(IncompleteProgram, match=MISSING):
        chip.run(cut, inputs)
    result = chip.run(cut, inputs, as_far_as_it_goes=True)
    assert result.incomplete
    assert result.stopped
    assert not chip.run(model, inputs).incomplete


@cache
def strangers_dma(file: Path) -> dict[str, Any]:
    from darwinn_testbench.chip.dma_check import check_dma

    return check_dma(file).to_dict()


def test_a_strangers_first_chunk_shows_its_transfers(wild: Path) -> None:
    result = strangers_dma(wild / STRANGERS)
    assert result["verdict"] == "ran"
    assert MISSING in result["message"]
    (row,) = result["rows"]
    kinds = [entry["issued"]["kind"] for entry in row["entries"]]
    assert kinds[:2] == ["instruction", "input"]
    assert row["bytes_out"] == 0
    assert row["bytes_in"] > 4_000_000
