"""Is every output right? One side against another, judged by one policy.

The left side is whatever is to be judged: a compiled model on the simulated chip, a model before
compilation, a program of another format. The right side says what it should give: the network that
a compiled model was made from, any other program, stored outputs, or nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from darwinn_formats.files import Source, name_of
from darwinn_sim.errors import SimulationError

from darwinn_testbench.chip.inputs import Inputs
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.check import Check, OutputRow
from darwinn_testbench.comparison.chip_check import ChipCheck
from darwinn_testbench.comparison.program_check import ProgramCheck
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import ExecutionError, InputError, Unavailable
from darwinn_testbench.policy import Policy
from darwinn_testbench.programs.formats import format_of, split_data
from darwinn_testbench.programs.handler import PLAIN_HOST, HostOptions, Natives
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.reference.protocol import Reference
from darwinn_testbench.report import Report
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.report.remarked import remarked


@remarked
def verify(
    source: Source,
    reference: Source | Reference | None = None,
    inputs: Inputs = None,
    *,
    expected: str | os.PathLike[str] | None = None,
    function: str | None = None,
    maps: Sequence[str] = (),
    model: int = 0,
    companions: Sequence[Source] = (),
    natives: Natives | str | None = None,
    host: HostOptions = PLAIN_HOST,
    engine: Engine = Engine.MODEL,
    waves: Path | None = None,
    stall_seed: int | None = None,
    policy: Policy | None = None,
    seed: int = 0,
    runs: int | None = None,
    inputs_kind: Sequence[str] = (),
    schedules: int = 0,
    schedule_seed: int | None = None,
    anyway: bool = False,
    proof: bool = True,
    require_proof: bool = False,
    parameters: bool = False,
    chip_only: bool = False,
    hazards: bool | None = None,
    strict: bool = False,
    layers: bool = False,
    localise: bool = False,
    require_reference: bool = False,
    assumptions: bool = True,
    progress: ProgressCallback = silent,
) -> Report[OutputRow]:
    """Run ``source`` and judge every output of every inference or call.

    Args:
        source: a compiled model, or a program of another format.
        reference: what says how it should be: of a compiled model the same model before
            compilation, as ``.tflite``; or a program of any format, not compiled for the Edge TPU,
            or an object that runs. Without one the verdict is at best RAN: the program ran to its
            end, and the DMA of a compiled model is as its hints say. A bundled ExecuTorch program
            brings its own.
        inputs: files, or arrays by tensor name, one mapping for each inference; without them those
            of ``expected``, or ``runs`` sets of the kinds ``inputs_kind`` that are drawn from
            ``seed`` (``inputs.choose_inputs``): by default one of each kind, and of a small
            compiled model, once these pass, up to 15 further sets, of which rows are made where
            they do not (``further_inferences`` in the figures); of stored outputs, and on the RTL,
            which takes its time, one.
        expected: stored outputs in place of a reference (``stored.read_stored``).
        function: which function of a program, and of the reference if it has one of this name.
        maps: which input or output of the reference is which: ``NAME=OTHER``, where OTHER is a
            name or an index; for programs ``:nchw`` or a shape such as ``:1x8`` may follow.
        model: which model of a compiled file.
        companions: files compiled together with it, of which one may cache its parameters; and
            external data (.ptd) of an ExecuTorch program, be it ``source`` or ``reference``.
        natives: native functions of BEF files, or the module that has them (``load_natives``).
        host: work queue, first function and codes of errors of BEF files, be it ``source`` or
            ``reference``.
        engine: what executes programs of other formats; RTL runs a compiled model in Verilog as
            well, whose outputs must equal the model's.
        waves: file for the waves of the RTL, an FST.
        stall_seed: hold the RTL back at random by this seed: outputs must be the same.
        policy: how far an output may be from its counterpart. Without it an output of a compiled
            model must equal the chip's arithmetic on every byte, and where that cannot be computed,
            be within ``LITERT_LAYER`` of LiteRT. Between programs integers have to be equal,
            quantised ones within ``policy.FLOAT_REFERENCE`` of a floating point counterpart, and
            floating point outputs within ``float32-reassociated`` (``float32`` of stored ones).
        schedules: how many random legal orders of the chip's units to make the inferences in again;
            a result that differs is a RACE (``chip.schedules``, in the figures).
        schedule_seed: seed of the first of them, the next has one more; by default ``seed``.
        proof: prove that a compiled model is the same function of its inputs as a ``.tflite``
            reference, for every input (``proof.verdict.Proof``, in the figures under ``proof``); an
            element that is another function is a MISMATCH. Where there is no hazard either, and the
            program cannot deadlock, the verdict is PROVED.
        require_proof: anything less than PROVED fails (NOT_PROVED, where nothing else is wrong).
        parameters: also say which element of a ``.tflite`` reference each byte of the parameters is
            (``proof.parameters.Parameters``, in the figures under ``parameters``).
        anyway: compare with a ``.tflite`` reference even if it is not the model before compilation;
            the figures then say under ``warnings`` what differs.
        chip_only: leave out the operators of a compiled model that the CPU runs; otherwise their
            outputs are rows as well (docs/whole-models.md).
        hazards: look for accesses to the chip's memories that nothing orders, unless this is False;
            there is one: HAZARD (``chip.hazards``, in the figures).
        strict: reading memory that nothing has written is a fault.
        layers: also compare what each layer leaves in the tiles with the chip's arithmetic; the
            rows (``layers.check.TensorRow``) are in the figures under ``tensors``.
        localise: also name the first value that differs, and each further one that does so of
            itself (``layers.localise.Divergence``, in the figures under ``divergences``).
        require_reference: an output that is compared with nothing fails (NOT_COMPARED, not RAN).
        assumptions: execute values of a compiled model whose meaning is assumed (docs/isa.md,
            "Values by grade"); those that it holds are in the figures under ``assumptions``.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError, PolicyError, ModelError: an argument does not fit.
        Unsupported, Unavailable: a program needs what its engine does not have; it is named.
    """
    programs = between_programs(source, reference, expected)
    if isinstance(natives, str):
        # A module is executed only where it is of use.
        natives = load_natives(natives) if programs else None
    data, companions = split_data(companions)
    asked = Asked(
        source=source,
        reference=reference,
        inputs=inputs,
        expected=expected,
        function=function,
        maps=maps,
        model=model,
        companions=companions,
        data=data,
        natives=natives,
        host=host,
        engine=engine,
        waves=waves,
        stall_seed=stall_seed,
        policy=policy,
        seed=seed,
        runs=runs,
        inputs_kind=inputs_kind,
        schedules=schedules,
        schedule_seed=schedule_seed,
        anyway=anyway,
        proof=proof,
        require_proof=require_proof,
        parameters=parameters,
        chip_only=chip_only,
        hazards=hazards,
        strict=strict,
        layers=layers,
        localise=localise,
        require_reference=require_reference,
        assumptions=assumptions,
    )
    if data and not any(map(asked.data_of, (source, reference))):
        raise InputError(f"{name_of(data[0])}: external data is for ExecuTorch programs")
    if host and not any(map(asked.host_of, (source, reference))):
        raise InputError("--work-queue, --init-function and --error-codes are for BEF files")
    if not programs:
        return _report(ChipCheck(asked, progress), progress)
    if layers:
        raise InputError("layers are compared with the model before compilation (.tflite) alone")
    return _report(ProgramCheck(asked), progress)


def between_programs(
    source: Source,
    reference: Source | Reference | None = None,
    expected: str | os.PathLike[str] | None = None,
) -> bool:
    """Whether a side is a program of another format, or stored; else a network decides.

    Raises:
        OSError: a file cannot be read.
    """
    if expected or format_of(source) is not None:
        return True
    if isinstance(reference, bytes | str | os.PathLike):
        return format_of(reference) is not None
    return reference is not None


def _report(check: Check, progress: ProgressCallback) -> Report[OutputRow]:
    """Make every call; a fault ends them, and the rows before it stay."""
    fault: Exception | None = None
    begin = time.perf_counter()
    try:
        check.begin(progress)
        for number, case in enumerate(check.cases):
            text = f"{check.noun} {number + 1} of {len(check.cases)}"
            progress(text, number, len(check.cases))
            check.run(number, case)
        check.go_further(progress)
        check.judge(progress)
    except Unavailable:
        raise
    except (SimulationError, ExecutionError) as error:
        fault = error
        check.judge(progress, fault)
    finally:
        check.close()
    return check.report(time.perf_counter() - begin, fault)
