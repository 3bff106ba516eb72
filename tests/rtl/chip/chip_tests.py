"""Executables through the whole chip: every row, flag, output and interrupt line is checked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pyuvm
from darwinn_formats.darwinn import Executable
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.rtl.chip.environment import ChipEnvironment, ChipTest
from darwinn_testbench.rtl.chip.host_agent import Infer, LoadParameters, OpenDevice, RunProgram
from whole_chip import INFERENCES, MODEL, RESULTS, random_inputs


@pyuvm.test()
class ModelThroughTheChip(ChipTest):
    """Parameters are loaded, and inferences give the model's rows, flags and outputs."""

    async def scenario(self, environment: ChipEnvironment) -> None:
        (model,) = open_models(Path(os.environ[MODEL]))
        compiled, random = model.compiled, Random(self.bench.seed)
        outputs: list[dict[str, str]] = []
        await environment.do(OpenDevice)
        inferences = int(os.environ[INFERENCES])
        runs: list[tuple[type[RunProgram], Executable]] = [(Infer, compiled.inference)] * inferences
        if compiled.caching is not None:
            runs.insert(0, (LoadParameters, compiled.caching))
        for kind, executable in runs:
            inputs = random_inputs(executable, random)
            done = await environment.do(kind, executable=executable, inputs=inputs)
            environment.scoreboard.check_outputs(done.outputs)
            outputs.append({name: data.hex() for name, data in done.outputs.items()})
        assert environment.scoreboard.programs == len(runs)
        assert environment.lines.raised[0] == len(runs)
        cycles = [each["rtl_cycles"] for each in environment.host.statistics]
        Path(os.environ[RESULTS]).write_text(json.dumps({"cycles": cycles, "outputs": outputs}))
