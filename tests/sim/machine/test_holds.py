"""What holds a unit back is noted: nothing that is not asked for it could go on."""

from __future__ import annotations

from chip_programs import FROM_RESET, Operation, counted_turns, programs
from darwinn_formats.darwinn import Executable, InstructionBitstream
from darwinn_sim.accelerator import Accelerator, ModelEngine
from darwinn_sim.device.chip import Chip
from darwinn_sim.device.run import ProgramRun
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.machine import schedule
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.machine.observer import Wanted
from hypothesis import event, given
from hypothesis import strategies as st

NOTES = ("held", "obstacles", "waiting")
"""What a tile notes of who is not to be asked."""


class AskingRun(ProgramRun):
    """Asks every unit again where nothing moves any more."""

    def _run_chip(self) -> int:
        reason = super()._run_chip()
        if reason in schedule.SETTLES:
            work, before = int(self.core["work"]), self._contents()
            self.tiles["held"], self.tiles["awake"] = 0, 1
            assert super()._run_chip() == reason
            assert int(self.core["work"]) == work
            assert self._contents() == before
        return reason

    def _contents(self) -> dict[str, bytes]:
        names = set(self.tiles.dtype.names or ()) - {*NOTES, "awake"}
        return {name: self.tiles[name].tobytes() for name in names}


class AskingEngine(ModelEngine):
    def run_of(self, device: Chip, program: LoweredProgram, wanted: Wanted) -> ProgramRun:
        return AskingRun(device, program, wanted)


counting = counted_turns().map(lambda operations: [*FROM_RESET, *operations])


@given(
    programs() | counting, st.sets(st.integers(0, 40), max_size=3), st.none() | st.integers(0, 99)
)
def test_nothing_that_is_held_back_could_go_on(
    operations: list[Operation], dropped: set[int], order: int | None
) -> None:
    """With operations left out, others wait for ever for what these would have done."""
    left = [each for number, each in enumerate(operations) if number not in dropped]
    bitstream = InstructionBitstream(frame(build(left)))
    accelerator = Accelerator(engine=AskingEngine(), schedule=order, work_limit=1 << 20)
    try:
        accelerator.run(Executable(instruction_bitstreams=(bitstream,), batch_size=1), {})
    except SimulationError as error:
        event(type(error).__name__)
    else:
        event("ends")
