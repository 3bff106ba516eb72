"""Layers are called by the operators of the network before compilation."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.layer_names import layer_names, with_names
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    executorch_program,
    random_dense,
    uncompiled,
)
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.graph import draw
from darwinn_testbench.layers.view import view_layers
from darwinn_testbench.profile.profile import profile
from darwinn_testbench.profile.report import make_report
from darwinn_testbench.profile.timeline import to_perfetto
from whole_models import with_floats

NETWORK = random_dense([64, 64, 64, 64], 3)
COMPILED, REFERENCE = edgetpu_model(NETWORK, compile_network(NETWORK)), uncompiled(NETWORK)
TENSORS = [NETWORK.tensor_name(k) for k in range(3)]


def test_every_layer_of_a_chain_has_its_own_name() -> None:
    names = layer_names(COMPILED, REFERENCE)
    assert [names[k].tensor for k in sorted(names)] == TENSORS
    assert {each.operator for each in names.values()} == {"FULLY_CONNECTED"}


def test_they_are_in_layers_graph_profile_timeline_and_page() -> None:
    viewed = view_layers(COMPILED)
    assert "tensor" not in viewed.to_dict()["rows"][0]
    named = with_names(viewed.rows, layer_names(COMPILED, REFERENCE))
    assert [row.tensor for row in named] == TENSORS
    graph = draw(replace(viewed, rows=named), "dot").decode()
    assert f"FULLY_CONNECTED {TENSORS[1]}" in graph
    report = profile(COMPILED, reference=REFERENCE)
    assert [row.tensor for row in report.rows if row.number is not None] == TENSORS
    (first, *_) = csv.DictReader(io.StringIO(report.to_csv().decode()))
    assert "tensor" in first
    assert "tensor" not in profile(COMPILED).to_csv().decode().splitlines()[0]
    profiled = report.figures["profile"].profiled
    trace = to_perfetto(profiled.timing, profiled.names)
    page = make_report(COMPILED, None, runs=1).html
    assert all(each.encode() in trace for each in TENSORS)
    assert f"FULLY_CONNECTED {TENSORS[1]}".encode() not in page


def test_the_page_names_them(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(REFERENCE)
    page = make_report(COMPILED, path, runs=1).html
    assert all(f"FULLY_CONNECTED {each}".encode() in page for each in TENSORS)


def test_they_are_found_where_inputs_and_outputs_are_called_otherwise(tmp_path: Path) -> None:
    other = uncompiled(replace(NETWORK, source="given", result="gives"))
    maps = (f"{NETWORK.source}=given", f"{NETWORK.result}=0")
    expected = [*TENSORS[:2], "gives"]
    report = profile(COMPILED, reference=other, maps=maps)
    assert [row.tensor for row in report.rows if row.number is not None] == expected
    for name, data in (("compiled", COMPILED), ("model", other)):
        (tmp_path / f"{name}.tflite").write_bytes(data)
    page = tmp_path / "page.html"
    command = [str(tmp_path / "compiled.tflite"), "-r", str(tmp_path / "model.tflite")]
    said = [word for each in maps for word in ("--map", each)]
    assert run_command_line(["report", *command, *said, "--runs", "1", "-o", str(page)]) == 0
    assert "FULLY_CONNECTED gives" in page.read_text()
    assert run_command_line(["layers", *command, *said]) == 0
    assert run_command_line(["layers", *command, "--map", "none=given"]) == 2


def test_operators_on_the_cpu_are_in_the_way_of_no_map() -> None:
    """What a map says of an output of the whole is understood where the chip's part is named."""
    compiled, model = (with_floats(each, BuiltinOperator.ABS) for each in (COMPILED, REFERENCE))
    report = profile(compiled, reference=model, maps=["last=0", "floats in=0"])
    assert [row.tensor for row in report.rows if row.number is not None] == TENSORS


def test_only_a_network_has_names() -> None:
    with pytest.raises(InputError, match=r"\.tflite"):
        layer_names(COMPILED, executorch_program(NETWORK))
