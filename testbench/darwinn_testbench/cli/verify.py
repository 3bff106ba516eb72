"""`darwinn verify`: is every output byte right?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from darwinn_testbench import policy as policies
from darwinn_testbench.cli import compared, options, results
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.comparison.verify import between_programs, verify
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of, split_data
from darwinn_testbench.programs.handler import HostOptions

EXAMPLES = """**Examples**

`darwinn verify model_edgetpu.tflite --reference model.tflite --runs 5`

`darwinn verify model_edgetpu.tflite --reference model.tflite --inputs photo.png`

`darwinn verify model_edgetpu.tflite --reference model.tflite --policy lsb:1,2%`

`darwinn verify model_edgetpu.tflite --reference model.tflite --layers`

`darwinn verify model_edgetpu.tflite --reference model.tflite --json --junit result.xml`

`darwinn verify model_edgetpu.tflite --reference model.pte --map image=x --localise`

`darwinn verify model_edgetpu.tflite --reference model.tflite --engine rtl`

`darwinn verify model_edgetpu.tflite --reference model.tflite --require-proof --junit result.xml`

`darwinn verify program.pte --expected outputs.npz --inputs x.npy`
"""

PolicyText = Annotated[
    str | None,
    option(
        "--policy P",
        "How far outputs may be from the reference: exact, lsb:N, lsb:N,F% or "
        "float:ATOL,RTOL. With a .tflite LiteRT then decides, not the chip's arithmetic.",
    ),
]

Expected = Annotated[
    str | None,
    option(
        "--expected PATH",
        "Stored outputs instead of a reference: .npz by output name, .npy, or an .npz of calls "
        "with call0_in0, call0_out0 and so on. Without inputs of its own, or --inputs, of the "
        "drawn ones of --seed: those of `darwinn run --seed N --output PATH`.",
    ),
]
Localise = Annotated[
    bool,
    option(
        "--localise",
        "Name the first layer or value that differs, and each further one that differs of "
        "itself: what follows is computed from the same values on both sides.",
    ),
]
Waves = Annotated[
    str | None,
    option(
        "--waves FILE.fst",
        "With --engine rtl: write the waves of the chip for Surfer and GTKWave; a .gtkw beside "
        "it shows them in groups.",
    ),
]
StallSeed = Annotated[
    int | None,
    option(
        "--stall-seed N",
        "With --engine rtl: hold host memory, the ring and every unit back at random, by this "
        "seed; the outputs must be the same.",
    ),
]

Layers = Annotated[
    bool,
    option("--layers", "Also compare every layer in the tiles with the tensors of --reference."),
]


def command(
    file: options.AnyFile,
    reference: options.Reference = None,
    inputs: options.Inputs = None,
    seed: options.Seed = 0,
    runs: options.Runs = None,
    inputs_kind: options.InputsKind = None,
    policy: PolicyText = None,
    model: options.Model = 0,
    companions: options.FurtherFiles = None,
    schedules: options.Schedules = 0,
    schedule_seed: options.ScheduleSeed = None,
    anyway: options.Anyway = False,
    no_proof: options.NoProof = False,
    require_proof: options.RequireProof = False,
    parameters: options.Parameters = False,
    chip_only: options.ChipOnly = False,
    no_hazards: options.NoHazards = False,
    strict: options.Strict = False,
    no_assumptions: options.NoAssumptions = False,
    layers: Layers = False,
    localise: Localise = False,
    maps: options.Maps = None,
    expected: Expected = None,
    require_reference: options.RequireReference = False,
    engine: options.VerifyEngine = Engine.MODEL,
    waves: Waves = None,
    stall_seed: StallSeed = None,
    function: options.Function = None,
    natives: options.Natives = None,
    work_queue: options.WorkQueue = None,
    init_function: options.InitFunction = None,
    error_codes: options.ErrorCodes = False,
    junit: results.JUnit = None,
    sarif: results.Sarif = None,
    markdown: results.Markdown = None,
    github: results.GitHub = False,
    json: options.Json = False,
) -> None:
    """Run a compiled model on the simulated chip and say whether every output byte is right.

    Some inputs are run, and every byte is compared with the chip's own arithmetic, computed from
    the model before compilation. Then it is proved, for every input, that the outputs are the
    network's functions, and that no legal timing gives other bytes or deadlocks. The verdict is
    proved if all that holds, and pass if something is only sampled: the line says what. With
    --policy, --engine rtl, --no-proof, --no-hazards, --anyway, a reference of another format or
    operators on the CPU it is pass at best. Without --reference nothing is compared: ran. Exit
    codes are 0 for these three, 1 if something is wrong or not as required, 2 for bad input,
    3 if the simulator does not implement something.

    The difference to LiteRT, whose rounding differs a little, is always shown and decides only
    under --policy.

    Operators that the compiler has left to the CPU run too, in LiteRT, unless --chip-only is given.
    What they give is a row as well: it must equal what the CPU operators of the reference give for
    the chip's arithmetic.

    A reference of another format is given the same inputs, dequantised where it computes in
    floating point; its outputs are quantised as FILE's and may then be 1 step off, integers must be
    equal. FILE itself may be of another format; a .bpte brings its expected outputs along.
    """
    written = results.Results(json, junit, sarif, markdown, github)
    if waves is not None and engine is not Engine.RTL:
        raise InputError("--waves is for --engine rtl: only the RTL writes them")
    if stall_seed is not None and engine is not Engine.RTL:
        raise InputError("--stall-seed is for --engine rtl: only the RTL can be held back")
    options.refuse_no_file(waves)
    if expected is None:
        options.maps_of(maps, reference)
    options.schedule_of(schedules, schedule_seed)
    declared = None if policy is None else policies.parse(policy)
    source = options.source_of(file)
    is_program = format_of(source) is not None
    if between_programs(source, reference, expected):
        options.only_for(
            "compiled models with a .tflite reference",
            layers=layers,
            anyway=anyway,
            no_proof=no_proof,
            parameters=parameters,
        )
        options.no_rtl(engine)
    else:
        options.only_for(
            "programs of other formats",
            function=function,
            natives=natives,
            work_queue=work_queue,
            init_function=init_function,
            error_codes=error_codes,
        )
        options.no_original(engine)
    if is_program:
        options.only_for(
            "DarwiNN files",
            with_=split_data(companions or ())[1] or None,
            model=model or None,
            schedules=schedules or None,
            chip_only=chip_only,
            hazards=False if no_hazards else None,
            strict=strict,
            no_assumptions=no_assumptions,
        )
    with progress_bar() as progress:
        report = verify(
            source,
            reference,
            inputs,
            expected=expected,
            function=function,
            maps=maps or (),
            model=model,
            companions=companions or (),
            natives=natives,
            host=HostOptions(work_queue, init_function, error_codes),
            engine=engine,
            waves=None if waves is None else Path(waves),
            stall_seed=stall_seed,
            policy=declared,
            seed=seed,
            runs=runs,
            inputs_kind=inputs_kind or (),
            schedules=schedules,
            schedule_seed=schedule_seed,
            anyway=anyway,
            proof=not no_proof,
            require_proof=require_proof,
            parameters=parameters,
            chip_only=chip_only,
            hazards=False if no_hazards else None,
            strict=strict,
            assumptions=not no_assumptions,
            layers=layers,
            localise=localise,
            require_reference=require_reference,
            progress=progress,
        )
    written.write([report])
    finish(
        report,
        file=file,
        as_json=json,
        body=compared.body,
        next_step=compared.next_step(report, file, waves),
    )
