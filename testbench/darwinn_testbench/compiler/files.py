"""The sample as files: each network before compilation, in every format, and compiled.

What is before compilation is a reference for ``verify --reference``: the ``.tflite`` is what a
compiler would be given, the ``.pte`` and the ``.bef`` are the same network in other words.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from darwinn_formats import darwinn
from darwinn_formats.errors import Unavailable

from darwinn_testbench.compiler.bef import bef_file
from darwinn_testbench.compiler.classifier import classifier_model, colour_network
from darwinn_testbench.compiler.executorch import executorch_program
from darwinn_testbench.compiler.network import (
    DenseNetwork,
    Sample,
    random_convolution,
    random_dense,
)
from darwinn_testbench.compiler.package import (
    compile_network,
    compile_stand_alone,
    edgetpu_model,
    multi_chip,
)
from darwinn_testbench.compiler.uncompiled import uncompiled
from darwinn_testbench.report import Report, Row, Verdict
from darwinn_testbench.report.files import write_result

DENSE_SIZES = (200, 160, 72)
"""Inputs, outputs of the first and of the second layer: 3 and 2 tiles, the last one not full."""
CONVOLUTION_SIZES = (24, 32, 4, 20)
"""Height, width, channels of the image, channels of the result: a part of 6 x 8 for each tile."""
KERNEL = 3


@dataclass(frozen=True, kw_only=True)
class SampleRow(Row):
    """A file that was written; ``reference`` is the ``.tflite`` of a compiled network, else ""."""

    content: str
    reference: str
    bytes: int
    sha256: str


def sample(directory: str | os.PathLike[str], *, seed: int = 0) -> Report[SampleRow]:
    """Write the sample networks, uncompiled and compiled, to ``directory``, which is made.

    The files follow from ``seed`` alone, byte for byte; those of the classifier from nothing.

    Raises:
        Unavailable: the networks are too large for the chip that this process simulates.
        OSError: they cannot be written.
    """
    networks: tuple[Sample, ...] = (
        random_dense(DENSE_SIZES, seed),
        random_convolution(*CONVOLUTION_SIZES, seed, kernel=KERNEL),
    )
    try:
        files = [*(file for network in networks for file in _files(network)), *_classifier()]
    except ValueError as reason:
        raise Unavailable(f"the sample needs a larger chip: {reason}") from None
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    rows = tuple(
        _write(folder / name, content, reference, data) for name, content, reference, data in files
    )
    return Report(
        command="sample",
        file=os.fspath(directory),
        rows=rows,
        figures={"seed": seed},
        message=f"{len(rows)} files written, seed {seed}",
    )


def _files(network: Sample) -> Iterator[tuple[str, str, str, bytes]]:
    """Name, content, reference and data of each file of a network."""
    name, reference = network.name, f"{network.name}.tflite"
    package = compile_network(network)
    yield reference, "the network before compilation", "", uncompiled(network)
    yield f"{name}.pte", "the same for ExecuTorch: float operators", "", executorch_program(network)
    yield f"{name}.bef", "the same for TFRT: native functions", "", bef_file(network)
    yield (
        f"{name}_edgetpu.tflite",
        "compiled: parameter caching and inference",
        reference,
        edgetpu_model(network, package),
    )
    yield f"{name}.package", "the same as a bare package", reference, darwinn.dump(package)
    yield (
        f"{name}_stand_alone_edgetpu.tflite",
        "compiled: stand-alone",
        reference,
        edgetpu_model(network, compile_stand_alone(network)),
    )
    yield (
        f"{name}_slices_edgetpu.tflite",
        "compiled: output described by slices",
        reference,
        edgetpu_model(network, compile_network(network, shape_info=True)),
    )
    if isinstance(network, DenseNetwork):
        yield (
            f"{name}_chips.package",
            "compiled: a layer on each of several chips",
            reference,
            darwinn.dump(_one_layer_a_chip(network)),
        )


def _classifier() -> Iterator[tuple[str, str, str, bytes]]:
    """The same of the classifier of pictures."""
    reference = "classifier.tflite"
    yield reference, "a classifier of pictures before compilation", "", classifier_model()
    yield (
        "classifier_edgetpu.tflite",
        "compiled, with operators on the CPU",
        reference,
        classifier_model(compile_network(colour_network())),
    )


def _one_layer_a_chip(network: DenseNetwork) -> darwinn.Package:
    layers = range(len(network.layers))
    return multi_chip([compile_network(network.part(layer, layer + 1)) for layer in layers])


def _write(path: Path, content: str, reference: str, data: bytes) -> SampleRow:
    write_result(path, data, over_link=True)
    return SampleRow(
        name=path.name,
        verdict=Verdict.PASS,
        content=content,
        reference=reference,
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
