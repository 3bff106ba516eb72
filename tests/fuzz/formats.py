"""What is fuzzed: each format, its seeds, how they are taken apart, and what is done with a mutant.

A format is a line of ``FORMATS``: to fuzz another one, add it there.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats import darwinn, executorch, flatbuffer, iree, tflite, tfrt, toml
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_sim import chips, timing
from darwinn_testbench.regression import manifest
from darwinn_testbench.regression.journal import Journal
from darwinn_testbench.regression.task import Outcome

from tests.fuzz import seeds
from tests.fuzz.seeds import Seeds

FILE, SAMPLES = "FILE", "SAMPLES"
"""Words of a command that stand for the mutant, and for the folder of the samples."""

_CHIP = f"{SAMPLES}/convolution_edgetpu.tflite"
_PROGRAM_COMMANDS = (("run", FILE, "--json"),)
_PROGRAM_MORE = (("inspect", FILE), ("disasm", FILE), ("verify", FILE, "--json", "--runs", "1"))

Command = tuple[str, ...]


@dataclass(frozen=True)
class Format:
    """``seeds`` makes them from the folder of the samples. ``read`` and ``write`` go between a file
    and a tree that can be edited; without them only bytes are changed. ``commands`` are all done
    with each mutant, and one of ``more``; a command that is no ``darwinn`` command is one of
    ``FUNCTIONS``. ``both``: the first two are models of the same chip, which have to agree on
    those files for which this is true.
    """

    name: str
    suffix: str
    seeds: Callable[[Path], Seeds]
    commands: tuple[Command, ...]
    more: tuple[Command, ...] = ()
    read: Callable[[bytes], Any] | None = None
    write: Callable[[Any], bytes] | None = None
    share: int = 1
    both: Callable[[bytes], bool] | None = None


# --- trees ---------------------------------------------------------------------------------------


def _package(data: bytes) -> darwinn.Package:
    (package,) = darwinn.load(data).packages
    return package


def _program(data: bytes) -> Any:
    file = executorch.load(data)
    return (file.program, tuple(bytes(each) for each in file.segments))


def _toml(tree: Mapping[str, Any]) -> bytes:
    return "".join(f"{_key(key)} = {_value(tree[key])}\n" for key in tree).encode()


def _key(text: str) -> str:
    return json.dumps(text)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(key)} = {_value(value[key])}" for key in value)
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value) if isinstance(value, (str, bool)) else repr(value)


def _json(tree: Any) -> bytes:
    return json.dumps(tree).encode()


def _events(data: bytes) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(data).splitlines()]


def _session(events: Sequence[Any]) -> bytes:
    return gzip.compress(b"".join(_json(event) + b"\n" for event in events), 1, mtime=0)


def _lines(data: bytes) -> list[Any]:
    lines = [json.loads(line) for line in data.splitlines()]
    return [{key: line[key] for key in line if key != "crc32"} for line in lines]


def _journal(lines: Sequence[Any]) -> bytes:
    members = [json.dumps(line)[1:].encode() for line in lines]
    return b"".join(b'{"crc32":"%08x",%s\n' % (zlib.crc32(each), each) for each in members)


# --- what is done beside commands ----------------------------------------------------------------


def _compute(path: Path) -> None:
    """The chip's arithmetic on a network before compilation."""
    reference = ChipArithmetic(tflite.load(path))
    tensors = [reference.network.tensors[index] for index in reference.network.inputs]
    reference.run([np.zeros(each.shape, each.dtype) for each in tensors])


def _read_manifest(path: Path) -> None:
    manifest.load(path)


def _read_journal(path: Path) -> None:
    with Journal(path, Outcome) as journal:
        for number in range(3):
            outcome = journal.outcome(f"{number:064x}")
            assert outcome is None or outcome.case


def _is_one_model(data: bytes) -> bool:
    """Whether a run, which is of one model, does all that is timed."""
    file = darwinn.load(data)
    parts = [each for model in file.models for each in (model.caching, model.inference) if each]
    return len(file.models) == 1 and len(parts) == len(file.executables)


FUNCTIONS: dict[str, Callable[[Path], None]] = {
    "compute": _compute,
    "read-manifest": _read_manifest,
    "read-journal": _read_journal,
}

_MODELS = (
    *("dense.package", "convolution.package", "dense_chips.package"),
    *("convolution_slices_edgetpu.tflite", "convolution_stand_alone_edgetpu.tflite"),
    *("dense_stand_alone_edgetpu.tflite", "dense_slices_edgetpu.tflite"),
)

FORMATS = (
    Format(
        "darwinn",
        ".package",
        seeds.files(*_MODELS),
        commands=(("run", FILE, "--json"), ("cycles", FILE, "--json")),
        more=(
            ("inspect", FILE),
            ("disasm", FILE),
            ("dma", FILE),
            ("layers", FILE),
            ("profile", FILE, "--operations"),
            ("run", FILE, "--json", "--strict"),
            ("run", FILE, "--json", "--tap", "layer:0"),
            ("verify", FILE, "--json", "--strict", "--layers", "--runs", "1"),
            ("cycles", FILE, "--json", "--chip", "beagle-std", "--host", "pcie"),
            ("cycles", FILE, "--json", "--chip", "harness", "--host", "none"),
        ),
        read=_package,
        write=darwinn.dump,
        share=8,
        both=_is_one_model,
    ),
    Format(
        "edgetpu",
        ".tflite",
        seeds.files("convolution_edgetpu.tflite", "dense_edgetpu.tflite"),
        commands=(("run", FILE, "--json"), ("cycles", FILE, "--json")),
        more=(("inspect", FILE), ("verify", FILE, "--json", "--runs", "1")),
        read=tflite.load,
        write=flatbuffer.write,
        both=_is_one_model,
    ),
    Format(
        "stream",
        ".bin",
        seeds.streams,
        commands=(("run", FILE, "--json"), ("cycles", FILE, "--json")),
        more=(("inspect", FILE), ("disasm", FILE), ("dma", FILE)),
        read=lambda data: {"bitstream": data},
        write=lambda tree: bytes(tree["bitstream"]),
        share=3,
        both=_is_one_model,
    ),
    Format(
        "executorch",
        ".pte",
        seeds.programs,
        _PROGRAM_COMMANDS,
        _PROGRAM_MORE,
        read=_program,
        write=lambda tree: executorch.dump(*tree),
        share=3,
    ),
    Format(
        "iree",
        ".vmfb",
        seeds.modules,
        (*_PROGRAM_COMMANDS, ("run", FILE, "--json", "--function", "loop")),
        _PROGRAM_MORE,
        read=lambda data: iree.load(data).module.definition,
        write=iree.dump_definition,
        share=3,
    ),
    Format(
        "bef",
        ".bef",
        seeds.files("convolution.bef"),
        (
            (
                *("verify", _CHIP, "--reference", FILE, "--runs", "1", "--json"),
                *("--natives", "darwinn_testbench.compiler.natives"),
            ),
        ),
        _PROGRAM_MORE,
        read=tfrt.load,
        write=tfrt.dump,
        share=2,
    ),
    Format(
        "tflite",
        ".tflite",
        seeds.files("dense.tflite", "convolution.tflite"),
        commands=(("compute", FILE),),
        read=tflite.load,
        write=flatbuffer.write,
        share=3,
    ),
    Format(
        "manifest",
        ".toml",
        lambda _: seeds.MANIFESTS,
        commands=(("read-manifest", FILE),),
        read=toml.parse,
        write=_toml,
    ),
    Format(
        "baseline",
        ".json",
        seeds.baselines,
        commands=(("cycles", _CHIP, "--baseline", FILE, "--json"),),
        read=json.loads,
        write=_json,
    ),
    Format(
        "chip",
        ".toml",
        seeds.descriptions(chips, ""),
        commands=(("cycles", _CHIP, "--chip", FILE, "--json"),),
        read=toml.parse,
        write=_toml,
    ),
    Format(
        "host",
        ".toml",
        seeds.descriptions(timing, "hosts"),
        commands=(("cycles", _CHIP, "--host", FILE, "--json"),),
        read=toml.parse,
        write=_toml,
    ),
    Format(
        "journal",
        ".jsonl",
        seeds.journals,
        commands=(("read-journal", FILE),),
        read=_lines,
        write=_journal,
    ),
    Format(
        "session",
        ".trace",
        seeds.sessions,
        commands=(("device", "--replay", FILE, "--json"),),
        read=_events,
        write=_session,
        share=2,
    ),
    Format("inputs", "", seeds.arrays, commands=(("run", _CHIP, "--inputs", FILE, "--json"),)),
)
"""Each with its ``share`` of the mutants."""

BY_NAME = {each.name: each for each in FORMATS}
