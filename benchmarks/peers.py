"""What other tools say of the same networks, and how long they take to say it.

    python -m benchmarks.peers [--tools FOLDER] [--write FILE] [NETWORK...]

Of each network (names of models of DARWINN_CORPUS that are there compiled and as they were before)
it shows what `darwinn verify` and `darwinn cycles` say, and beside them LiteRT, Vela (for an Arm
Ethos-U65 with 512 MACs) and SCALE-Sim (for an array of 64 x 64 cells, weights kept in place, memory
without limits). Each command is timed as people feel it, from its start to its end. Vela and
SCALE-Sim are no dependencies of this project, and need an environment of their own:

    python -m venv TOOLS && TOOLS/bin/pip install ethos-u-vela==5.2.0 scalesim==3.0.0 'numpy<2.4'
    python -m benchmarks.peers --tools TOOLS/bin

(scalesim 3.0.0 raises TypeError with numpy 2.4.) Without --tools their columns are empty. Exits
with 1 if an executable is not verified, with 2 if a tool fails.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from darwinn_formats.tflite import BuiltinOperator, Model, Operator, SubGraph, load

from benchmarks.common import alone, compiled, corpus, machine_and_load, refuse, write_page
from benchmarks.many_inputs import litert, measure

NETWORKS = (
    "dense_1024",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_1.0_224_quant_embedding_extractor",
    "mobilenet_v2_1.0_224_quant",
)
_INPUTS = 4
"""Those that are run and made on the lifted program, to be compared."""
_BOUND = 1800
"""Seconds that a command may take."""

_VELA_CHIP = "ethos-u65-512"
_ARRAY = 64
"""Rows and columns of SCALE-Sim's array: as many cells as the chip has multipliers."""

# Sections in the order in which SCALE-Sim reads them; it asks for each of these keys.
_SCALE_SIM: dict[str, dict[str, object]] = {
    "general": {"run_name": "peers"},
    "architecture_presets": {
        "ArrayHeight": _ARRAY,
        "ArrayWidth": _ARRAY,
        **{f"{each}SramSzkB": 4096 for each in ("Ifmap", "Filter", "Ofmap")},
        "IfmapOffset": 0,
        "FilterOffset": 10_000_000,
        "OfmapOffset": 20_000_000,
        "Bandwidth": 10,
        "Dataflow": "ws",
        "MemoryBanks": 1,
        "ReadRequestBuffer": 32,
        "WriteRequestBuffer": 32,
    },
    "layout": {
        f"{operand}{key}": value
        for operand in ("Ifmap", "Filter")
        for key, value in {
            "CustomLayout": False,
            "SRAMBankBandwidth": 10,
            "SRAMBankNum": 10,
            "SRAMBankPort": 2,
        }.items()
    },
    "sparsity": {
        "SparsitySupport": False,
        "SparseRep": "ellpack_block",
        "OptimizedMapping": False,
        "BlockSize": 8,
        "RandomNumberGeneratorSeed": 40,
    },
    "run_presets": {"InterfaceBandwidth": "CALC", "UseRamulatorTrace": False},
}
_RUN_SCALE_SIM = """
from scalesim.scale_sim import scalesim
simulation = scalesim(save_disk_space=True, verbose=False, config="c.cfg", topology="t.csv",
                      layout="t.csv", input_type_gemm=True)
simulation.run_scale(top_path="out")
"""

_HEAD = """# Beside other tools

Written by `python -m benchmarks.peers --tools TOOLS/bin --write benchmarks/peers.md` (`--help`
says how to install the others) on {machine}.
Each tool counts the cycles of its own chip, so this is no race. The columns show which question a
tool answers, and how long the answer takes.

| tool | input | computes the outputs | gives the time of | on which chip |
|---|---|---|---|---|
| `darwinn` | the compiled executable | yes | each instruction, transfers | the Edge TPU |
| LiteRT | the model before compilation | yes | nothing | - |
| Vela | the model before compilation | no | each operator, transfers | Arm Ethos-U65, 512 MACs |
| SCALE-Sim | sizes of matrix products | no | each product | an array of 64 x 64 cells |

Vela 5.2.0 has its default system. SCALE-Sim 3.0.0 keeps weights in place, and has unlimited memory.
It gets convolutions and fully connected layers as matrix products, and a depthwise convolution as
one product for each channel. Its cycles exclude other operators, the host and transfers.
`darwinn cycles` counts an inference whose parameters are on the chip already.

"s" is the time of the whole command, from its start; `verify` runs five inferences or more. "ms" is
the time of one inference on one thread: "run" on the simulated chip, "lifted" on the
[lifted program](../docs/api.md#many-inputs), which gives the same bytes, and "LiteRT" in LiteRT.
Other work on the machine makes all times longer; the load before the start shows how much.
The networks are public, each compiled and before compilation, in the folder DARWINN_CORPUS.
"""
_COLUMNS = (
    "network",
    "`verify`",
    "s",
    "run, ms",
    "lifted, ms",
    "`cycles`",
    "s",
    "LiteRT, ms",
    "Vela cycles",
    "s",
    "SCALE-Sim cycles",
    "s",
)


class ToolError(Exception):
    """A tool did not do what it was asked for; the text says which and why."""


@dataclass(frozen=True)
class Product:
    """Matrix products of ``m`` x ``k`` and ``k`` x ``n`` elements, ``times`` of them alike."""

    m: int
    n: int
    k: int
    times: int = 1


def products(model: Model) -> Iterator[Product]:
    """The products of a network's convolutions and fully connected layers, in order."""
    (graph,) = model.subgraphs
    for operator in graph.operators:
        kind = model.operator_codes[operator.opcode_index].operator
        if kind in _PRODUCTS:
            yield _PRODUCTS[kind](graph, operator)


def _convolution(graph: SubGraph, operator: Operator) -> Product:
    channels, *kernel = graph.tensors[operator.inputs[1]].shape
    return Product(_pixels(graph, operator), channels, math.prod(kernel))


def _depthwise(graph: SubGraph, operator: Operator) -> Product:
    _, height, width, channels = graph.tensors[operator.inputs[1]].shape
    return Product(_pixels(graph, operator), 1, height * width, times=channels)


def _pixels(graph: SubGraph, operator: Operator) -> int:
    return math.prod(graph.tensors[operator.outputs[0]].shape[:-1])


_PRODUCTS: dict[BuiltinOperator, Callable[[SubGraph, Operator], Product]] = {
    BuiltinOperator.CONV_2D: _convolution,
    BuiltinOperator.DEPTHWISE_CONV_2D: _depthwise,
    BuiltinOperator.FULLY_CONNECTED: _convolution,
}


def _command(words: Sequence[object], folder: Path) -> tuple[str, float]:
    """What a command prints, and its seconds."""
    begin = time.perf_counter()
    try:
        ran = subprocess.run(
            [str(each) for each in words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_BOUND,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(str(error)) from None
    seconds = time.perf_counter() - begin
    if ran.returncode not in (0, 1):
        told = (ran.stderr or ran.stdout).strip().splitlines() or ["nothing was said"]
        raise ToolError(f"{Path(str(words[0])).name}: exit code {ran.returncode}: {told[-1]}")
    return ran.stdout, seconds


def darwinn(command: str, folder: Path, *arguments: object) -> tuple[dict[str, Any], float]:
    """What `darwinn COMMAND --json` reports, and its seconds."""
    words = (sys.executable, "-m", "darwinn_testbench", command, *arguments, "--json")
    text, seconds = _command(words, folder)
    report: dict[str, Any] = json.loads(text)
    return report, seconds


def folder_of_tools(text: str) -> Path:
    """The folder of an environment that the tools are installed in, as commands run elsewhere."""
    folder = Path(text).absolute()
    if missing := [name for name in ("python", "vela") if not (folder / name).is_file()]:
        raise argparse.ArgumentTypeError(f"{text} has no {' and no '.join(missing)}")
    return folder


def vela(tools: Path, folder: Path, original: Path) -> tuple[int, float]:
    """Cycles of an inference on an Ethos-U65, and Vela's seconds."""
    words = (tools / "vela", original, "--output-dir", "vela", "--accelerator-config", _VELA_CHIP)
    _, seconds = _command(words, folder)
    (summary,) = (folder / "vela").glob("*_summary_*.csv")
    with summary.open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    return round(float(row["cycles_total"])), seconds


def scale_sim(tools: Path, folder: Path, original: Path) -> tuple[int, float]:
    """Cycles of a network's matrix products on SCALE-Sim's array, and its seconds."""
    found = list(products(load(original)))
    # Many layers are of the same size: each is simulated once.
    sizes = list({(each.m, each.n, each.k): None for each in found})
    lines = [f"size{i},{m},{n},{k},\n" for i, (m, n, k) in enumerate(sizes)]
    (folder / "t.csv").write_text("Layer,M,N,K,\n" + "".join(lines))
    with (folder / "c.cfg").open("w") as config:
        for name, section in _SCALE_SIM.items():
            values = (f"{key} = {value}" for key, value in section.items())
            config.write("\n".join([f"[{name}]", *values, "\n"]))
    _, seconds = _command((tools / "python", "-c", _RUN_SCALE_SIM), folder)
    try:
        with (folder / "out" / "peers" / "COMPUTE_REPORT.csv").open(newline="") as rows:
            cycles = [int(float(row[" Total Cycles"])) for row in csv.DictReader(rows)]
    except (OSError, KeyError, ValueError) as error:
        raise ToolError(f"SCALE-Sim's report cannot be read: {error!r}") from None
    each_of = dict(zip(sizes, cycles, strict=True))
    return sum(each_of[each.m, each.n, each.k] * each.times for each in found), seconds


_PEERS = (vela, scale_sim)


def row(name: str, tools: Path | None) -> tuple[bool, list[str]]:
    """Whether a network is verified, and its row of the table."""
    path, original = compiled(name), corpus("tflite") / f"{name}.tflite"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        verified, verify_seconds = darwinn("verify", folder, path, "--reference", original)
        timed, cycles_seconds = darwinn("cycles", folder, path)
        simulated = alone(measure, path, _INPUTS, 3)
        inference = alone(litert, original, 5)
        peers = [] if tools is None else [each(tools, folder, original) for each in _PEERS]
    verdict = str(verified["verdict"])
    cells = [f"`{name}`", verdict, f"{verify_seconds:.1f}"]
    if isinstance(simulated, str):
        cells += ["-", "-"]
    else:
        cells += [f"{1e3 * each:.1f}" for each in (simulated.run, simulated.single)]
    cells += [f"{_of_inference(timed):,}", f"{cycles_seconds:.1f}"]
    cells.append("-" if inference is None else f"{1e3 * inference:.2f}")
    for cycles, seconds in peers:
        cells += [f"{cycles:,}", f"{seconds:.1f}"]
    return verdict == "pass", cells + ["-"] * (len(_COLUMNS) - len(cells))


def _of_inference(report: dict[str, Any]) -> int:
    """Cycles of an inference whose parameters are on the chip already."""
    return sum(each["cycles"] for each in report["rows"] if each["type"] != "PARAMETER_CACHING")


def _require(networks: Sequence[str]) -> None:
    """Exit with 2 where a network is not there compiled and as it was before."""
    for name in networks:
        for path in (compiled(name), corpus("tflite") / f"{name}.tflite"):
            if not path.exists():
                refuse(f"no network {name}: there is no {path}")


def main() -> int:
    """Print the table, and write it where asked."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--tools", type=folder_of_tools, metavar="FOLDER", help="where vela and python are"
    )
    options.add_argument("--write", type=Path, metavar="FILE", help="the page to write")
    options.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    chosen = options.parse_args()
    _require(chosen.networks)
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---|---|" + "---:|" * (len(_COLUMNS) - 2)]
    here = machine_and_load()
    print(here, *lines, sep="\n", flush=True)
    all_pass = True
    for name in chosen.networks:
        try:
            passes, cells = row(name, chosen.tools)
        except ToolError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        all_pass &= passes
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if chosen.write:
        page = "\n".join([_HEAD.format(machine=here), *lines, ""])
        write_page(chosen.write, page.encode())
    return 0 if all_pass else 1


if __name__ == "__main__":
    sys.exit(main())
