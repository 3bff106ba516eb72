"""The network for Model Explorer: by its own classes, if they are installed, and by its rules."""

from __future__ import annotations

import dataclasses
import json
import sys
import typing
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from darwinn_formats import darwinn
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, random_dense, uncompiled
from darwinn_testbench.profile.model_explorer import graph_collection, node_data
from darwinn_testbench.profile.profile import ProfileRow, profile
from darwinn_testbench.report import Report
from sample_runs import change, flip_parameter

NETWORK = random_dense([200, 160, 72], 0)


@pytest.fixture(scope="module")
def reports() -> dict[str, Report[ProfileRow]]:
    """The profile of a right program, and of one with a wrong parameter."""
    package, reference = compile_network(NETWORK), uncompiled(NETWORK)
    wrong = change(package, 1, flip_parameter(4 * 5 + 3))
    return {
        name: profile(darwinn.dump(content), reference=reference, operations=True)
        for name, content in (("right", package), ("wrong", wrong))
    }


def graph_of(report: Report[ProfileRow]) -> list[Mapping[str, Any]]:
    (graph,) = graph_collection(report)["graphs"]
    found: list[Mapping[str, Any]] = graph["nodes"]
    return found


def test_edges_lead_from_nodes_to_nodes(reports: Mapping[str, Report[ProfileRow]]) -> None:
    found = graph_of(reports["right"])
    ids = [node["id"] for node in found]
    assert len(set(ids)) == len(ids)
    # What the viewer reads of each node, whatever its classes have a default for.
    assert all({"id", "label", "namespace", "incomingEdges"} <= set(node) for node in found)
    edges = [(edge["sourceNodeId"], node["id"]) for node in found for edge in node["incomingEdges"]]
    assert {before for before, _ in edges} <= set(ids)
    # Whatever is not an input comes from somewhere, whatever is no output goes somewhere.
    assert {after for _, after in edges} == {each for each in ids if not each.startswith("input ")}
    assert {before for before, _ in edges} == {
        each for each in ids if not each.startswith("output ")
    }


def test_nodes_are_called_as_in_the_network(reports: Mapping[str, Report[ProfileRow]]) -> None:
    named = {row.operator: row.tensor for row in reports["right"].rows if row.tensor}
    assert named
    found = {
        node["label"]: attribute["value"]
        for node in graph_of(reports["right"])
        for output in node.get("outputsMetadata", ())
        for attribute in output["attrs"]
        if attribute["key"] == "tensor_name"
    }
    assert found == named


def test_data_are_those_of_the_rows(reports: Mapping[str, Report[ProfileRow]]) -> None:
    report = reports["right"]
    data = node_data(report)
    assert set(data) == {"cycles", "busy", "bytes", "products", "differences"}
    ids = {node["id"] for node in graph_of(report)} | {row.tensor for row in report.rows}
    for each in data.values():
        assert set(each["results"]) <= ids
    for row in report.rows:
        if row.number is not None:
            assert data["cycles"]["results"][row.tensor or f"layer:{row.number}"] == {
                "value": row.cycles
            }
    assert {each["value"] for each in data["differences"]["results"].values()} == {0}


def test_a_wrong_parameter_is_a_difference(reports: Mapping[str, Report[ProfileRow]]) -> None:
    found = node_data(reports["wrong"])["differences"]["results"]
    assert any(each["value"] > 0 for each in found.values())


def test_without_a_reference_nothing_is_compared() -> None:
    found = node_data(profile(darwinn.dump(compile_network(NETWORK)), operations=True))
    assert "differences" not in found


def test_they_are_what_the_package_takes(
    reports: Mapping[str, Report[ProfileRow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every object has the fields, and the types, of the package's own classes."""
    found = find_spec("model_explorer")
    if found is None:
        pytest.skip("Model Explorer is not installed: pip install ai-edge-model-explorer")
    graph_builder, node_data_builder = _parts_of(found, monkeypatch)
    for report in reports.values():
        _holds(graph_builder.GraphCollection, graph_collection(report), vars(graph_builder))
        for data in node_data(report).values():
            _holds(node_data_builder.GraphNodeData, data, vars(node_data_builder))


def _parts_of(spec: ModuleSpec, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The modules with the classes alone: the package itself starts a server's libraries."""
    package = ModuleType("model_explorer")
    package.__path__ = list(spec.submodule_search_locations or ())
    monkeypatch.setitem(sys.modules, "model_explorer", package)
    for name in ("graph_builder", "node_data_builder"):
        module = __import__(f"model_explorer.{name}", fromlist=[name])
        yield module


def _holds(kind: Any, value: Any, names: Mapping[str, Any]) -> None:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, dict(names))
        assert set(value) <= set(hints), kind
        needed = {
            each.name
            for each in dataclasses.fields(kind)
            if each.default is each.default_factory is dataclasses.MISSING
        }
        assert needed <= set(value), kind
        for name, item in value.items():
            _holds(hints[name], item, names)
    elif origin is list:
        assert isinstance(value, list)
        for item in value:
            _holds(arguments[0], item, names)
    elif origin is dict:
        for item in value.values():
            _holds(arguments[1], item, names)
    elif arguments:
        assert any(_is(each, value, names) for each in arguments), (kind, value)
    else:
        assert isinstance(value, kind), (kind, value)


def _is(kind: Any, value: Any, names: Mapping[str, Any]) -> bool:
    try:
        _holds(kind, value, names)
    except (AssertionError, TypeError):
        return False
    return True


def test_the_command_writes_a_file_for_each(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "dense_edgetpu.tflite"
    model.write_bytes(darwinn.dump(compile_network(NETWORK)))
    for target in ("net", "net.json"):
        command = ["profile", str(model), "--model-explorer", str(tmp_path / target)]
        assert run_command_line(command) == 0
        files = sorted(path.name for path in tmp_path.glob("net*"))
        assert files == [
            "net.busy.json",
            "net.bytes.json",
            "net.cycles.json",
            "net.json",
            "net.products.json",
        ]
        assert json.loads((tmp_path / "net.json").read_text())["label"] == model.name
        assert "net.cycles.json" in capfd.readouterr().err
    for wrong in ("net.svg", "-"):
        assert run_command_line(["profile", str(model), "--model-explorer", wrong]) == 2
        assert "as .json" in capfd.readouterr().err
