"""Compare one side with another under one policy: is every output right?

The left side is the one to judge: a compiled model on the simulated chip, a model before
compilation, or a program of another format. The right side gives the expected outputs: the network
that a compiled model was made from, any other program, stored outputs, or nothing.
"""

from __future__ import annotations

import time

from darwinn_formats.errors import ExecutionError, Unavailable
from darwinn_sim.errors import SimulationError

from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.asked import between_programs as between_programs
from darwinn_testbench.comparison.check import Check, OutputRow
from darwinn_testbench.comparison.chip_check import ChipCheck
from darwinn_testbench.comparison.program_check import ProgramCheck
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.report import Report
from darwinn_testbench.report.progress import ProgressCallback
from darwinn_testbench.report.remarked import remarked
from darwinn_testbench.request.record import takes


@remarked
def answer(asked: Asked) -> Report[OutputRow]:
    """Run the source and judge every output of every inference or call.

    The fields of :class:`Asked` are described where they are declared (``request.settings``), and
    are the options of ``darwinn verify``. Beyond that:

    Args:
        source: a compiled model, or a program of another format.
        reference: a file, or an object that runs. Without one the verdict is at best RAN: the
            program ran to its end, and the DMA of a compiled model is as its hints say. A bundled
            ExecuTorch program brings its own.
        inputs: files, or arrays by tensor name, one mapping for each inference; without them those
            of ``expected``, or drawn ones (``inputs.choose_inputs``). Of a small compiled model,
            once these pass, up to 15 further sets are drawn, of which rows are made where they do
            not pass (``further_inferences`` in the figures).
        natives: native functions by name, or the module that has them (``load_natives``).
        policy: without one an output of a compiled model must equal the chip's arithmetic on every
            byte, and where that cannot be computed, be within ``LITERT_LAYER`` of LiteRT. Between
            programs integers have to be equal, quantised ones within ``policy.FLOAT_REFERENCE`` of
            a floating point counterpart, and floating point outputs within
            ``float32-reassociated`` (``float32`` of stored ones).
        schedules, hazards, proof, parameters: what comes of them is in the figures under the same
            names (``chip.schedules``, ``chip.hazards``, ``proof.verdict``, ``proof.parameters``).
        layers: the rows (``layers.check.TensorRow``) are in the figures under ``tensors``.
        localise: what is found (``layers.localise.Divergence``) is under ``divergences``.
        assumptions: those that a model holds are under ``assumptions`` (docs/isa.md).

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError, PolicyError, ModelError: an argument does not fit, or does not apply.
        Unsupported, Unavailable: a program needs what its engine does not have; it is named.
    """
    asked.refuse_unfit()
    if not asked.between_programs:
        return _report(ChipCheck(asked, asked.progress), asked.progress)
    # Executed once, for both sides.
    asked = asked.but(natives=load_natives(asked.natives))
    return _report(ProgramCheck(asked), asked.progress)


verify = takes(Asked, "verify")(answer)


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
