"""The settings, each once: spelling, help, bounds, what it applies to, its key in manifests.

A field of a record, or a parameter of a command, is annotated with one of them. A setting that
commands share stands here; what only one command takes stands with the command.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from darwinn_formats.files import Source
from darwinn_reference.protocol import Reference as Program

from darwinn_testbench import policy as policies
from darwinn_testbench.engine import Engine
from darwinn_testbench.request.inputs import InputKind
from darwinn_testbench.request.inputs import Inputs as GivenInputs
from darwinn_testbench.request.inputs import Natives as GivenNatives
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.request.setting import Needs, Setting, Use

# What is run, and on which data.

_SEED = Setting(
    "--seed N",
    "Seed of generated inputs and of unwritten memory; it is printed.",
    least=0,
    key="",
    project=True,
)
Seed = Annotated[int, _SEED]
ProgramSeed = Annotated[int, replace(_SEED, scope=Scope.PROGRAM)]
Runs = Annotated[
    int | None,
    Setting(
        "--runs K",
        "Number of inferences with generated inputs, each of the next kind. By default one of "
        "each kind; for `run`, --expected and the RTL one of noise.",
        least=1,
        most=1_000_000_000,
    ),
]
InputsKind = Annotated[
    Sequence[str],
    Setting(
        "--inputs-kind KIND",
        "Kind of generated inputs: noise, gradients, extremes, constants or edges. Repeat it for "
        "several. To repeat one row of the table, give its kind and seed: --inputs-kind KIND "
        "--seed N.",
        plain=Sequence[InputKind],
    ),
]
_INPUTS = Setting(
    "--inputs -i [NAME=]PATH",
    "Input data: .npy, .npz (arrays by tensor name), an image, or any other file as raw "
    "bytes. Repeat it for several inputs, with NAME= or in the order of the model.",
    plain=Sequence[str],
    use=Use.FILE,
)
Inputs = Annotated[GivenInputs, _INPUTS]
ProgramInputs = Annotated[GivenInputs, replace(_INPUTS, scope=Scope.PROGRAM)]
Model = Annotated[
    int,
    Setting("--model N", "Number of the compiled model in the file.", least=0, scope=Scope.CHIP),
]
_WITH = "A file that was compiled together with the model, and may hold its parameters"
Companions = Annotated[
    Sequence[Source],
    Setting("--with FILE", f"{_WITH}.", plain=Sequence[str], use=Use.FILE, key="with"),
]
FurtherFiles = Annotated[
    Sequence[Source],
    Setting(
        "--with --data FILE",
        f"--with: {_WITH[0].lower()}{_WITH[1:]}. --data: data of a program: .ptd of "
        "ExecuTorch, .irpa of IREE.",
        plain=Sequence[str],
        use=Use.FILE,
        key="with",
    ),
]
DataFiles = Annotated[
    Sequence[Source],
    Setting(
        "--data FILE",
        "Data of a program: .ptd of ExecuTorch, .irpa of IREE.",
        plain=Sequence[str],
        scope=Scope.PROGRAM,
        use=Use.FILE,
    ),
]
Executable = Annotated[
    int | None,
    Setting(
        "--executable N",
        "Only this executable (numbers as `darwinn inspect` prints them).",
        least=0,
        scope=Scope.CHIP,
    ),
]

# How the chip runs it.

Schedules = Annotated[
    int,
    Setting(
        "--schedules N",
        "Repeat the inferences in N random legal orders of the chip's units. If bytes differ, a "
        "synchronisation is missing (race, exit code 1).",
        least=0,
        most=1_000_000,
        scope=Scope.CHIP,
    ),
]
ScheduleSeed = Annotated[
    int | None,
    Setting(
        "--schedule-seed N",
        "Seed of the first random order; each further order has the next number. By default "
        "that of --seed.",
        least=0,
        scope=Scope.CHIP,
        needs=Needs(
            names=("schedules",),
            why="--schedule-seed is for --schedules N: say how many orders",
        ),
    ),
]
ChipOnly = Annotated[
    bool,
    Setting(
        "--chip-only",
        "Leave out the operators that the compiler left to the CPU: inputs and outputs are then "
        "those of the chip.",
        scope=Scope.CHIP,
    ),
]
Hazards = Annotated[
    bool | None,
    Setting(
        "--no-hazards",
        "Skip the check that every legal timing gives this result: look neither for accesses "
        "to the chip's memories that no flag, fence or queue orders, nor for deadlocks.",
        plain=bool,
        scope=Scope.CHIP,
        project=True,
    ),
]
Strict = Annotated[
    bool,
    Setting("--strict", "Reading unwritten memory is a fault.", scope=Scope.CHIP, project=True),
]
StrictPage = Annotated[
    bool,
    Setting("--strict/--no-strict", "Whether reading unwritten memory is a fault."),
]
Assumptions = Annotated[
    bool,
    Setting(
        "--no-assumptions",
        "Refuse a program with values of instruction fields that no known program holds, instead "
        "of executing them by an assumed rule.",
        scope=Scope.CHIP,
        project=True,
    ),
]

# What of it is looked at, and what there is beside it.

Until = Annotated[
    str | None,
    Setting(
        "--until POINT",
        "Stop the inference at layer:N (its end) or at pc:CHUNK:PC.",
        scope=Scope.CHIP,
        use=Use.VALUE,
    ),
]
Taps = Annotated[
    Sequence[str],
    Setting(
        "--tap WHAT",
        "Copy out narrow:TILE:START:END (bytes), wide:TILE:ROW:ROW, scalar:START:END (bytes), "
        "or layer:N, the results of a layer (`darwinn layers` numbers them). Of an "
        "ExecuTorch, IREE or BEF program: values by name, or by the operation that computes "
        "them; `'*'` and `'?'` stand for any characters, and `'*'` alone lists all values. "
        "Repeat it for several; --output FILE.npz stores them as tap0, tap1 and so on.",
        use=Use.VALUE,
    ),
]
Preloads = Annotated[
    Sequence[str],
    Setting(
        "--preload WHAT",
        "Fill wide memory before anything runs: wide:TILES:ROW=FILE, or "
        "wide:TILES:ROW:END=pattern:SEED for random bytes. TILES is like 0 or 0-3,5.",
        scope=Scope.CHIP,
        use=Use.FILE,
    ),
]
Then = Annotated[
    Sequence[Source],
    Setting(
        "--then FILE",
        "The next segment of a pipeline, on its own chip. It takes, by name, outputs of the "
        "segments before it. Repeat it for more segments, in their order.",
        plain=Sequence[str],
        scope=Scope.CHIP,
        use=Use.FILE,
    ),
]
Calls = Annotated[
    int | None,
    Setting(
        "--runs K",
        "Number of measured pairs of calls: the first call of a pair runs as usual, in the "
        "second each operator is timed. Two calls before them are not measured. 5 by default.",
        least=1,
        most=100_000,
        scope=Scope.PROGRAM,
    ),
]

# What executes programs of other formats.

_ENGINES = (
    "model: the simulated chip, and the project's CPU references of other formats; original: the "
    "original runtime of an ExecuTorch or IREE program, if it is installed"
)
_CHOICES = {
    Engine.RTL: (
        Scope.NETWORK,
        "--engine rtl is for `darwinn verify` of a compiled model, alone or with a .tflite "
        "reference",
    ),
    Engine.ORIGINAL: (
        Scope.PROGRAM,
        "--engine original is for ExecuTorch and IREE programs: the original of a DarwiNN file "
        "is an Edge TPU",
    ),
}
RunEngine = Annotated[
    Engine,
    Setting("--engine model|original", f"{_ENGINES}.", choices=_CHOICES, read=Engine, key=""),
]
VerifyEngine = Annotated[
    Engine,
    Setting(
        "--engine",
        f"{_ENGINES}; rtl: verify a compiled model also on the chip in SystemVerilog, if a C++ "
        "compiler is installed.",
        choices=_CHOICES,
        read=Engine,
        key="",
    ),
]
Waves = Annotated[
    Path | None,
    Setting(
        "--waves FILE.fst",
        "With --engine rtl: write the waves of the chip for Surfer and GTKWave; a .gtkw beside "
        "it shows them in groups.",
        use=Use.RESULT,
        plain=Path | None,
        read=Path,
        needs=Needs(
            names=("engine",),
            value=Engine.RTL,
            why="--waves is for --engine rtl: only the RTL writes them",
        ),
    ),
]
StallSeed = Annotated[
    int | None,
    Setting(
        "--stall-seed N",
        "With --engine rtl: delay host memory, the ring and every unit at random, from this "
        "seed. The outputs must stay the same.",
        needs=Needs(
            names=("engine",),
            value=Engine.RTL,
            why="--stall-seed is for --engine rtl: only the RTL can be held back",
        ),
    ),
]
Function = Annotated[
    str | None,
    Setting(
        "--function NAME",
        "Method or function of an ExecuTorch, IREE or BEF program.",
        scope=Scope.PROGRAM,
        use=Use.VALUE,
    ),
]
Natives = Annotated[
    GivenNatives | str | None,
    Setting(
        "--natives MODULE",
        "Python module, or .py file, whose mapping NATIVES has, by name, the native "
        "functions of a BEF file, the imports of an IREE module, or operators and delegates of an "
        "ExecuTorch program. The module is executed.",
        plain=str | None,
        scope=Scope.PROGRAM,
        use=Use.MODULE,
    ),
]
WorkQueue = Annotated[
    str | None,
    Setting(
        "--work-queue TYPE",
        "Work queue for the kernels of a BEF file: s (default), mstd, mstd:THREADS or "
        "mstd:THREADS,BLOCKING. Threads take turns, so every run is the same.",
        scope=Scope.PROGRAM,
        use=Use.VALUE,
    ),
]
InitFunction = Annotated[
    str | None,
    Setting(
        "--init-function NAME",
        "A function of a BEF file that is called before any other.",
        scope=Scope.PROGRAM,
        use=Use.VALUE,
    ),
]
ErrorCodes = Annotated[
    bool,
    Setting(
        "--error-codes",
        "Show the code of errors that functions of a BEF file return.",
        scope=Scope.PROGRAM,
    ),
]

# What it is compared with, and how it is judged.

Reference = Annotated[
    Source | Program | None,
    Setting(
        "--reference -r MODEL",
        "The model before compilation (.tflite), or the same network as ExecuTorch .pte, IREE "
        ".vmfb or BEF: it gives the expected outputs.",
        plain=str | None,
        use=Use.FILE,
    ),
]
Names = Annotated[
    Source | None,
    Setting(
        "--reference -r MODEL",
        "The model before compilation (.tflite): its operators name the layers. The command "
        "matches them by an inference on generated inputs.",
        plain=str | None,
        scope=Scope.CHIP,
        use=Use.FILE,
    ),
]
Expected = Annotated[
    str | os.PathLike[str] | None,
    Setting(
        "--expected PATH",
        "Stored outputs instead of a reference: .npz by output name, .npy, or an .npz of calls "
        "with call0_in0, call0_out0 and so on. If it holds no inputs and --inputs is not given, "
        "the inputs are generated from --seed, as by `darwinn run --seed N --output PATH`.",
        plain=str | None,
        use=Use.FILE,
    ),
]
_MAPS = Setting(
    "--map NAME=OTHER",
    "Pair input or output NAME of FILE with OTHER (a name or an index) of the reference; "
    "OTHER:nchw states its layout, OTHER:1x8 its shape. Needed if names differ and shapes fit "
    "in several ways. Repeat it for several.",
    needs=Needs(
        names=("reference", "expected"),
        why="--map {value}: it names an input or output of --reference MODEL: give one",
    ),
    use=Use.VALUE,
)
Maps = Annotated[Sequence[str], _MAPS]
NetworkMaps = Annotated[Sequence[str], replace(_MAPS, scope=Scope.CHIP)]
Policy = Annotated[
    policies.Policy | None,
    Setting(
        "--policy P",
        f"How far outputs may be from the reference: {', '.join(policies.FORMS[:-1])} or "
        f"{policies.FORMS[-1]}. With a .tflite LiteRT then decides, not the chip's arithmetic.",
        plain=str | None,
        read=policies.parse,
        use=Use.VALUE,
        offers=(*policies.NAMED, "lsb:1"),
        project=True,
    ),
]
Anyway = Annotated[
    bool,
    Setting(
        "--anyway",
        "Compare with a .tflite reference even if FILE was compiled from another model, with other "
        "weights, biases, scales or zero points.",
        scope=Scope.NETWORK,
    ),
]
Proof = Annotated[
    bool,
    Setting(
        "--no-proof",
        "Only sample: compare the outputs for the inputs of this run, without a proof for "
        "other inputs.",
        scope=Scope.NETWORK,
    ),
]
RequireProof = Annotated[
    bool,
    Setting(
        "--require-proof",
        "Fail (exit code 1) unless every output is proved for every input and every legal timing.",
        project=True,
    ),
]
RequireReference = Annotated[
    bool,
    Setting(
        "--require-reference",
        "Fail (not-compared, exit code 1) if an output, or an operator before it, has no "
        "comparison.",
        project=True,
    ),
]
Parameters = Annotated[
    bool,
    Setting(
        "--parameters",
        "Also identify each byte of the parameters: an element of a tensor of --reference, "
        "padding, or unexplained.",
        scope=Scope.NETWORK,
    ),
]
Layers = Annotated[
    bool,
    Setting(
        "--layers",
        "Also compare every layer in the tiles with the tensors of --reference.",
        scope=Scope.NETWORK,
    ),
]
Localise = Annotated[
    bool,
    Setting(
        "--localise",
        "Name the first layer or value that differs. Also name each later one that differs "
        "although it was computed from equal values on both sides.",
    ),
]

# Work of many tasks.

Out = Annotated[
    Path,
    Setting(
        "--journal DIR",
        "Folder for finished work. If the command is killed, the same command continues from "
        "there.",
        use=Use.RESULT,
    ),
]
Jobs = Annotated[
    int | None,
    Setting(
        "--jobs -j N",
        "Processes on this machine; one for each core by default.",
        least=1,
        most=1024,
        project=True,
    ),
]
Scheduler = Annotated[
    str | None,
    Setting(
        "--scheduler ADDRESS",
        "Give the work to the Dask cluster with this scheduler; its workers must see the same "
        "paths.",
        use=Use.VALUE,
    ),
]
Fresh = Annotated[bool, Setting("--fresh", "Repeat work that is finished already.")]
Json = Annotated[
    bool,
    Setting("--json", "Print one JSON object (`darwinn docs cli-json`) instead of tables."),
]
