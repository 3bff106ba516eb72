"""List the contents of a file: executables, their tensors on the host, and their instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from darwinn_formats.darwinn import DarwinnFile, Executable, Layer, Package, load
from darwinn_formats.darwinn.bundle import chunk_bytes
from darwinn_formats.files import Source
from darwinn_sim.isa.codec import DecodedChunk, DecodeError, decode, unexplained_bits
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_sim.machine import layers
from darwinn_sim.machine.completeness import incomplete_note

from darwinn_testbench.chip.scratch_hints import sent_too_early
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict
from darwinn_testbench.report.result import PYTHON_ONLY


@dataclass(frozen=True)
class LayerFigures:
    """An input or output of an executable; ``shape`` is (y, x, z), sizes are in bytes."""

    name: str
    direction: str
    shape: tuple[int, int, int]
    data_type: str
    size_bytes: int
    zero_point: int | None
    scale: float | None
    executions: int

    def __str__(self) -> str:
        quantised = "" if self.scale is None else f", {self.scale:g} * (q - {self.zero_point})"
        times = "" if self.executions == 1 else f", {self.executions} times per inference"
        shape = "x".join(map(str, self.shape))
        return (
            f"{self.direction:6} {self.name}: {self.data_type} {shape}, "
            f"{self.size_bytes:,} bytes{quantised}{times}"
        )


@dataclass(frozen=True, kw_only=True)
class ExecutableRow(Row):
    """One executable of the file. ``operations`` counts instructions by name, most frequent first.

    ``model`` is the number of the model that it belongs to, as ``--model`` takes it;
    ``program_layers`` is the number of layers that its instructions compute, as ``layer:N`` counts
    them (None where not all is instructions). ``unexplained_bits`` counts set bits of the
    instruction stream that lie in no known field.
    """

    index: int
    model: int | None
    type: str
    chip: str | None = None
    token: str | None = None
    batch: int = 1
    chunks: int
    bundles: int
    instructions: int
    unexplained_bits: int
    parameter_bytes: int = 0
    scratch_bytes: int = 0
    relocations: int = 0
    hints: int = 0
    hints_fully_deterministic: bool = False
    estimated_cycles: int | None = None
    layers: tuple[LayerFigures, ...] = ()
    program_layers: int | None
    operations: dict[str, int]
    executable: Executable | None = field(default=None, metadata=PYTHON_ONLY)

    drawn = ("operations",)
    unit = "instructions"


def inspect(source: Source) -> Report[ExecutableRow]:
    """Load ``source``, verify it, and describe each executable in it.

    A row is REFUSED if its instruction stream does not decode, and its message says where. That of
    a program whose last chunk waits for another says so.

    Raises:
        FormatError: the file is not valid.
        OSError: the file cannot be read.
    """
    file = load(source)
    if file.stream is not None:
        chunks = [stream for _, _, stream in chunks_of(file)]
        told: dict[str, Any] = {"name": file.file, "type": "STREAM", "chunks": len(chunks)}
        rows: tuple[ExecutableRow, ...] = (
            ExecutableRow(index=0, model=0, **told, **_statistics(chunks)),
        )
    else:
        models = {
            id(executable): number
            for number, model in enumerate(file.models)
            for executable in (model.caching, model.inference)
            if executable is not None
        }
        rows = tuple(
            _executable_row(k, item, models.get(id(item)))
            for k, item in enumerate(file.executables)
        )
    return Report(command="inspect", file=file.file, rows=rows, figures=_file_figures(file))


def check_number(what: str, number: int | None, count: int, file: str) -> None:
    """Refuse a number that is not one of ``count``; None chooses all.

    Raises:
        InputError: naming the numbers that there are.
    """
    if number is None or number < count:
        return
    there = {0: f"there is no {what}", 1: f"the only {what} is 0"}.get(
        count, f"{what}s are 0 to {count - 1}"
    )
    raise InputError(f"{file}: there is no {what} {number}: {there}")


def chunks_of(file: DarwinnFile) -> Iterator[tuple[int, int, bytes]]:
    """(executable index, chunk index, instruction bytes) of everything in ``file``, in order.

    The chunks of a bare instruction stream count as those of an executable 0.
    """
    if file.stream is not None:
        for chunk, stream in enumerate(_split(file.stream)):
            yield 0, chunk, stream
        return
    for number, executable in enumerate(file.executables):
        for chunk, bitstream in enumerate(executable.instruction_bitstreams):
            yield number, chunk, bitstream.bitstream


def _split(stream: bytes) -> Iterator[bytes]:
    """The chunks of a bare stream; each says its own length."""
    start = 0
    while start < len(stream):
        end = start + (chunk_bytes(stream, start) or len(stream))
        yield stream[start:end]
        start = end


def _file_figures(file: DarwinnFile) -> dict[str, Any]:
    return {
        "kind": file.kind,
        "size": file.size,
        "sha256": file.sha256,
        "packages": [_package_figures(package) for package in file.packages],
        "models": len(file.models),
    }


def _package_figures(package: Package) -> dict[str, Any]:
    return {
        "min_runtime_version": package.min_runtime_version,
        "compiler_version": package.compiler_version,
        "model_identifier": package.model_identifier,
        "virtual_chip_id": package.virtual_chip_id,
        "executables": len(package.executables),
        "multi_chip": [_package_figures(chip) for chip in package.multi_chip],
    }


def _executable_row(index: int, executable: Executable, model: int | None) -> ExecutableRow:
    chunks = [item.bitstream for item in executable.instruction_bitstreams]
    hints = executable.dma_hints
    exchanged = [layer_figures("input", layer) for layer in executable.input_layers]
    exchanged += [layer_figures("output", layer) for layer in executable.output_layers]
    told = _statistics(chunks)
    early = sent_too_early(executable)
    if early is not None:
        told["message"] = "; ".join(filter(None, (told["message"], str(early))))
    return ExecutableRow(
        name=executable.name,
        index=index,
        model=model,
        type=executable.type.name,
        chip=executable.chip,
        token=f"{executable.parameter_caching_token:#018x}",
        batch=executable.batch_size,
        chunks=len(chunks),
        parameter_bytes=len(executable.parameters),
        scratch_bytes=executable.scratch_size_bytes,
        relocations=sum(len(item.field_offsets) for item in executable.instruction_bitstreams),
        hints=len(hints.hints),
        hints_fully_deterministic=hints.fully_deterministic,
        estimated_cycles=executable.estimated_cycles_64bit or executable.estimated_cycles or None,
        layers=tuple(exchanged),
        executable=executable,
        **told,
    )


def _statistics(chunks: list[bytes]) -> dict[str, Any]:
    """Instruction figures of an executable, with the verdict that they give."""
    counts: Counter[int] = Counter()
    programs: list[DecodedChunk] = []
    unexplained = 0
    verdict, message = Verdict.PASS, ""
    for number, chunk in enumerate(chunks):
        try:
            program = decode(chunk)
        except DecodeError as error:
            verdict, message = Verdict.REFUSED, f"chunk {number}: {error}"
            continue
        programs.append(program)
        counts.update(program.opcode.tolist())
        unexplained += len(unexplained_bits(chunk))
    if len(programs) == len(chunks):
        message = incomplete_note(programs)
    if unexplained and verdict is Verdict.PASS:
        verdict, message = Verdict.REFUSED, f"{unexplained} bits lie in no known field"
    return {
        "verdict": verdict,
        "message": message,
        "bundles": sum(program.bundles for program in programs),
        "instructions": sum(map(len, programs)),
        "unexplained_bits": unexplained,
        "program_layers": len(layers.find(programs)) if len(programs) == len(chunks) else None,
        "operations": {INSTRUCTIONS[code].name: count for code, count in counts.most_common()},
    }


def layer_figures(direction: str, layer: Layer) -> LayerFigures:
    """What is shown of an input or output."""
    numerics = layer.numerics
    return LayerFigures(
        name=layer.name,
        direction=direction,
        shape=(layer.y_dim, layer.x_dim, layer.z_dim),
        data_type=layer.data_type.name,
        size_bytes=layer.size_bytes,
        zero_point=None if numerics is None else numerics.zero_point,
        scale=None if numerics is None else numerics.dequantization_factor,
        executions=layer.execution_count_per_inference,
    )
