"""The RTL beside the model: the same inferences on both, and whether every output byte is equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from darwinn_testbench.chip.dma_check import DmaFigures, dma_figures
from darwinn_testbench.chip.execution import Device, Session
from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.chip.model import BoundModel
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import Exact
from darwinn_testbench.report import Verdict, worst
from darwinn_testbench.rtl.chip.engine import RtlAccelerator

if TYPE_CHECKING:
    from darwinn_testbench.comparison.verify import OutputRow


class RtlCheck:
    """A compiled model on the chip in RTL, for comparison with what the model of the chip gave.

    Its waves go to the file ``waves``, if there is one.

    Raises:
        Unavailable: the RTL cannot be built here.
    """

    def __init__(self, bound: BoundModel, seed: int, waves: Path | None = None) -> None:
        self._bound = bound
        self._accelerator = RtlAccelerator(seed=seed, waves=waves)
        self._session = Session(bound, device=Device(accelerator=self._accelerator))

    def close(self) -> None:
        """End the simulation; the waves are complete then."""
        self._accelerator.close()

    def load_parameters(self) -> list[DmaFigures]:
        """Run the parameter-caching executable, if there is one; what its DMA was.

        Raises:
            SimulationError: the RTL fails, or waits for ever.
        """
        result, caching = self._session.load_parameters(), self._bound.compiled.caching
        if result is None or caching is None:
            return []
        return [dma_figures(caching, result.transfers, "parameter caching (RTL)")]

    def check(
        self, rows: Sequence[OutputRow], tensors: TensorMap, run: int
    ) -> tuple[list[OutputRow], DmaFigures]:
        """One inference on ``tensors`` (by port name): the model's rows with what the RTL gave.

        Raises:
            SimulationError: the RTL fails, or waits for ever.
        """
        inference = self._session.infer(tensors)
        cycles = inference.result.statistics["rtl_cycles"]
        ports = {item.port.name: item.port for item in self._bound.outputs}
        checked = []
        for row in rows:
            zero_point = ports[row.name].zero_point
            found = compare(inference.outputs[row.name], row.tensor, Exact(), zero_point=zero_point)
            message = f"the RTL differs from the model: {found.reason}" if found.reason else ""
            checked.append(
                replace(
                    row,
                    rtl=found,
                    rtl_cycles=cycles,
                    verdict=_with(row.verdict, Verdict(found.verdict)),
                    message="; ".join(filter(None, (row.message, message))),
                )
            )
        transfers = inference.result.transfers
        name = f"inference {run} (RTL)"
        return checked, dma_figures(self._bound.compiled.inference, transfers, name)


def _with(model: Verdict, rtl: Verdict) -> Verdict:
    """Both verdicts together: equal bytes are a comparison where the model had none."""
    return rtl if model is Verdict.RAN else worst((model, rtl))
