"""Executables through the whole chip: every row, flag, output and interrupt line is checked."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from random import Random

import cocotb
import pyuvm
from cocotb.triggers import ClockCycles
from darwinn_formats.darwinn import CompiledModel, Executable
from darwinn_rtl.chip import coverage
from darwinn_rtl.chip.core_agent import ChipReset
from darwinn_rtl.chip.coverage import FOLLOWERS, UNDER_WAY, Act, Moment
from darwinn_rtl.chip.environment import ChipEnvironment, ChipTest
from darwinn_rtl.chip.host_agent import (
    CloseDevice,
    Infer,
    InferTwo,
    LoadParameters,
    OpenDevice,
    ResetDevice,
    RunProgram,
)
from darwinn_rtl.chip.monitors import RowCarried
from darwinn_rtl.chip.reference import OUTFEED
from darwinn_rtl.chip.scoreboard import ChipScoreboard
from darwinn_rtl.coverage_report import keep_bins
from darwinn_testbench.chip.model import open_models
from pyuvm import uvm_factory
from whole_chip import INFERENCES, LONGEST, MODEL, RESETS, RESULTS, random_inputs

MOST_STEPS = 200
"""Bound of a walk."""


def opened_model() -> CompiledModel:
    """The model of the environment variable."""
    (model,) = open_models(Path(os.environ[MODEL]))
    return model.compiled


@pyuvm.test()
class ModelThroughTheChip(ChipTest):
    """Parameters are loaded, and inferences give the model's rows, flags and outputs."""

    async def scenario(self, environment: ChipEnvironment) -> None:
        compiled, random = opened_model(), Random(self.bench.seed)
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


class Walk:
    """A driver that does one thing after another, until every possible step has been done."""

    def __init__(self, environment: ChipEnvironment, compiled: CompiledModel) -> None:
        self.environment, self.random = environment, environment.bench.random
        self.compiled = compiled
        self.before = Act.RESET
        self.longest = int(os.environ[LONGEST])

    def next_act(self) -> Act:
        """A step that is missing, or the first one on the shortest way to it."""
        missing = coverage.missing()
        now = [act for before, act, when in missing if (before, when) == (self.before, Moment.IDLE)]
        if now:
            return self.random.choice(now)
        wanted = {before for before, _, _ in missing}
        ways = [(act, act) for act in sorted(FOLLOWERS[self.before], key=str)]
        for reached, first in ways:
            if reached in wanted or len(ways) > len(Act) ** 3:
                return first
            ways += [(act, first) for act in sorted(FOLLOWERS[reached], key=str)]
        raise AssertionError(f"no way from {self.before} to {wanted}")

    async def do(self, act: Act) -> None:
        """Do something, and check what came of it."""
        environment, compiled = self.environment, self.compiled
        match act:
            case Act.OPEN:
                await environment.do(OpenDevice)
            case Act.CLOSE:
                await environment.do(CloseDevice)
            case Act.RESET:
                await environment.do(ResetDevice, cycles=self.random.randint(1, 20))
            case Act.INFER_TWO:
                inputs = tuple(random_inputs(compiled.inference, self.random) for _ in range(2))
                done = await environment.do(InferTwo, executable=compiled.inference, inputs=inputs)
                for outputs in done.outputs:
                    environment.scoreboard.check_outputs(outputs)
            case Act.LOAD | Act.INFER:
                kind = LoadParameters if act is Act.LOAD else Infer
                executable = compiled.caching if act is Act.LOAD else compiled.inference
                assert executable is not None
                chosen = random_inputs(executable, self.random)
                done = await environment.do(kind, executable=executable, inputs=chosen)
                environment.scoreboard.check_outputs(done.outputs)

    async def break_off(self, act: Act) -> bool:
        """Begin something, and reset the chip in the middle; False if it had ended by then."""

        async def broken() -> None:
            with suppress(ChipReset):
                await self.do(act)

        doing = cocotb.start_soon(broken())
        wanted = 2 if act is Act.INFER_TWO else 1
        bench, host = self.environment.bench, self.environment.host
        await bench.until(lambda: host.queued == wanted, "programs to be queued", 2000)
        cycles = self.random.randint(1, self.longest)
        reset = await self.environment.do(ResetDevice, cycles=cycles)
        await doing
        return bool(reset.queued == wanted)

    async def step(self) -> None:
        """Do what comes next; a run that no reset has broken off yet is."""
        act = self.next_act()
        coverage.sample_step(self.before, act, Moment.IDLE)
        self.before = act
        moment = UNDER_WAY.get(act)
        if moment is None or (act, Act.RESET, moment) not in coverage.missing():
            await self.do(act)
            return
        if await self.break_off(act):
            coverage.sample_step(act, Act.RESET, moment)
        self.before = Act.RESET


@pyuvm.test()
class DriverSteps(ChipTest):
    """Whatever a driver does behind whatever else: open, load, infer, two at a time, close, and
    resets at any moment."""

    async def scenario(self, environment: ChipEnvironment) -> None:
        await ClockCycles(self.bench.clk, 3)
        walk = Walk(environment, opened_model())
        for _ in range(MOST_STEPS):
            if not coverage.missing():
                break
            await walk.step()
        assert not coverage.missing(), f"steps that were never done: {coverage.missing()}"
        for _ in range(int(os.environ[RESETS])):
            for act in (Act.RESET, Act.OPEN, Act.LOAD):
                await walk.do(act)
            await walk.break_off(walk.random.choice((Act.LOAD, Act.INFER, Act.INFER_TWO)))
        self.bench.log.info(
            "%d programs in %d cycles", environment.scoreboard.programs, self.bench.cycle
        )
        keep_bins("driver", coverage.bins())


class Twice(Infer):
    """An inference that is done twice; the chip has to say the same."""

    done = 0

    async def body(self) -> None:
        await super().body()
        first = self.outputs
        await super().body()
        assert self.outputs == first
        Twice.done += 1


class Counting(ChipScoreboard):
    """Counts the rows that the outfeed gets."""

    outfeed_rows = 0

    def carried_row(self, event: RowCarried) -> None:
        super().carried_row(event)
        self.outfeed_rows += event.row.targets >> OUTFEED & 1


@pyuvm.test()
class ReplacedParts(ChipTest):
    """A test of somebody else: another sequence and another checker, by the factory."""

    def build_phase(self) -> None:
        uvm_factory().set_type_override_by_type(Infer, Twice)
        uvm_factory().set_type_override_by_type(ChipScoreboard, Counting)
        super().build_phase()

    async def scenario(self, environment: ChipEnvironment) -> None:
        compiled, board = opened_model(), environment.scoreboard
        assert compiled.caching is not None
        await environment.do(OpenDevice)
        await environment.do(LoadParameters, executable=compiled.caching, inputs={})
        inputs = random_inputs(compiled.inference, self.bench.random)
        done = await environment.do(Infer, executable=compiled.inference, inputs=inputs)
        assert isinstance(done, Twice) and Twice.done == 1
        assert isinstance(board, Counting) and board.outfeed_rows > 0
        assert board.programs == 3
