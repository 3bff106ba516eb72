"""`--timed`: what the event model predicts for programs that a device recognises, and says of them.

The prediction is that of `darwinn cycles` for the chip and the host link: from the request to the
last interrupt, with the fixed cost of the host. It is made once for each program.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from darwinn_sim import timing
from darwinn_sim.device.pace import PredictedPace
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.machine.lowering import LoweredProgram, lower

from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_dense
from darwinn_testbench.report import one_line
from darwinn_testbench.request.timing import DEFAULT_CHIP

MAX_KNOWN = 1 << 12
"""Programs whose predictions are kept."""


class Timed:
    """Predictions for a device at a host link.

    Args:
        link: name of a built-in host link.
        say: takes a line for people.
        log: whether each program is said.
    """

    def __init__(self, link: str, say: Callable[[str], None], *, log: bool) -> None:
        self.pace = PredictedPace(self.predict, self._note)
        self._chip = timing.chip_description(DEFAULT_CHIP)
        self._link = timing.host_link(link)
        self._say, self._log = say, log
        self._known: dict[bytes, float | None] = {}
        self._said: set[str] = set()
        self._took = self._predicted = 0.0
        self._programs = self._slower = self._unknown = 0

    def prepare(self) -> None:
        """Compile the kernels of the event model: clients do not wait for that."""
        network = random_dense([8, 8], 0)
        measure(edgetpu_model(network, compile_network(network)), host=self._link.name)

    def predict(self, program: LoweredProgram, chunks: int) -> float | None:
        """Seconds of a program of which so many chunks were taken; None if it cannot be timed."""
        streams = program.streams[:chunks]
        digest = blake2b(digest_size=16)
        for stream in streams:
            digest.update(len(stream).to_bytes(8, "little") + stream)
        key = digest.digest()
        if key not in self._known:
            if len(self._known) == MAX_KNOWN:
                self._known.clear()
            self._known[key] = self._simulated(program, streams)
        return self._known[key]

    def _simulated(self, program: LoweredProgram, streams: tuple[bytes, ...]) -> float | None:
        try:
            if len(streams) < len(program.chunks):
                program = lower(streams)
            timed = timing.simulate_linked(program, self._chip, self._link)
        except (SimulationError, DecodeError) as error:
            self._say_once("refused", f"a program cannot be timed, and is not: {one_line(error)}")
            return None
        return timed.seconds

    def _note(self, took: float, seconds: float | None) -> None:
        """A program is over."""
        self._programs += 1
        if seconds is None:
            self._unknown += 1
            return
        self._took += took
        self._predicted += seconds
        if self._log:
            self._say(f"a program: predicted {_text(seconds)}, computed in {_text(took)}")
        if took > seconds:
            self._slower += 1
            self._say_once(
                "slower",
                f"the model takes {_text(took)} for a program of {_text(seconds)}: where it is "
                "slower than the chip, its time counts",
            )

    def _say_once(self, what: str, text: str) -> None:
        if what not in self._said:
            self._said.add(what)
            self._say(f"timed: {text}")

    def end(self) -> None:
        """Say what was timed."""
        timed = self._programs - self._unknown
        text = (
            f"timed: {timed} programs, predicted {_text(self._predicted)} ({self._chip.name}, host "
            f"link {self._link.name}), computed in {_text(self._took)}; {self._slower} later than "
            "predicted"
        )
        self._say(text + (f"; {self._unknown} not timed" if self._unknown else ""))


def _text(seconds: float) -> str:
    return f"{1e3 * seconds:,.3f} ms"
