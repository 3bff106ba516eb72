"""Scripts for ``apex_client``: the runs of an accelerator, asked of /dev/apex_0."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.darwinn import Buffer, Description, Executable, link
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.buffers import PARAMETERS, AddressSpace, buffer_sizes, layer_bytes
from darwinn_sim.host.mmu import EXTENDED_BIT

SOURCES = Path(__file__).parent / "apex_client"
_TO_DEVICE, _FROM_DEVICE, _BOTH = 1, 2, 0
_INPUT = Description.BASE_ADDRESS_INPUT_ACTIVATION
_OUTPUT = Description.BASE_ADDRESS_OUTPUT_ACTIVATION


def build_client(folder: Path) -> Path:
    """The client, compiled."""
    program = folder / "apex_client"
    options = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
    subprocess.run(["cc", *options, "-o", program, *sorted(SOURCES.glob("*.c"))], check=True)
    return program


@dataclass(frozen=True)
class Call:
    """A run of an accelerator: what was given, and the bytes of its outputs."""

    executable: Executable
    inputs: Mapping[str, bytes]
    outputs: Mapping[str, bytes]


@contextmanager
def calls_of(accelerator: Accelerator) -> Iterator[list[Call]]:
    """The runs of ``accelerator`` meanwhile."""
    calls: list[Call] = []
    run = accelerator.run

    def noting(executable: Executable, inputs: Mapping[str, bytes], **named: Any) -> Any:
        result = run(executable, inputs, **named)
        calls.append(Call(executable, inputs, result.outputs))
        return result

    accelerator.run = noting  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        del accelerator.run


@dataclass
class Script:
    """Lines for the client; its files are within ``folder``, places within pages from ``seed``."""

    folder: Path
    seed: int = 0
    late: float = 0
    """Seconds before each chunk."""
    lines: list[str] = field(default_factory=lambda: ["open"])
    requests: int = 0

    def __post_init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=self.folder))
        self._random = np.random.default_rng(self.seed)
        self._space = AddressSpace(1 << 32)
        self._files = 0

    def _file(self, data: bytes) -> Path:
        self._files += 1
        path = self.folder / f"buffer{self._files}"
        path.write_bytes(data)
        return path

    def map(self, size: int, way: int, data: bytes | None, *, within: int = 0) -> int:
        """Map memory with ``data`` (None: a pattern), ``within`` bytes into a page."""
        address = EXTENDED_BIT | self._space.allocate(within + size) + within
        source = "-" if data is None else self._file(data.ljust(size, b"\0"))
        self.lines.append(f"map {address:#x} {size} {way} {source}")
        return address

    def queue(self, call: Call) -> dict[str, list[tuple[int, int]]]:
        """Queue a run without waiting for it; address and bytes of each output, by batch."""
        addresses = {
            buffer: self._map(call, buffer, size) if size else 0
            for buffer, size in buffer_sizes(call.executable).items()
        }
        for chunk in link(call.executable, addresses):
            at = self.map(len(chunk), _TO_DEVICE, chunk)
            if self.late:
                self.lines.append(f"sleep {self.late}")
            self.lines.append(f"queue {at:#x} {len(chunk)}")
        self.requests += 1
        return {
            layer.name or "": [
                (addresses[Buffer(_OUTPUT, layer.name or "", batch)], layer_bytes(layer))
                for batch in range(max(1, call.executable.batch_size))
            ]
            for layer in call.executable.output_layers
        }

    def _map(self, call: Call, buffer: Buffer, size: int) -> int:
        if buffer == PARAMETERS:
            return self.map(size, _TO_DEVICE, bytes(call.executable.parameters))
        if buffer.desc == _INPUT:
            part = len(call.inputs[buffer.name]) // max(1, call.executable.batch_size)
            data = call.inputs[buffer.name][buffer.batch * part : (buffer.batch + 1) * part]
            within = 64 * int(self._random.integers(64))
            return self.map(size, _TO_DEVICE, data, within=within)
        return self.map(size, _FROM_DEVICE if buffer.desc == _OUTPUT else _BOTH, None)

    def wait(self) -> None:
        """Wait for all that was queued."""
        self.lines.append(f"wait {self.requests}")

    def save(self, address: int) -> Path:
        """Where the client puts what the buffer at an address holds."""
        path = self._file(b"")
        self.lines.append(f"save {address:#x} {path}")
        return path

    def write(self, *more: str) -> Path:
        """The script as a file, with ``more`` lines behind it."""
        self._files += 1
        path = self.folder / f"script{self._files}"
        path.write_text("\n".join([*self.lines, *more]) + "\n")
        return path


class Replay:
    """The calls of an accelerator as a script: all queued at once, or one after another."""

    def __init__(
        self, folder: Path, calls: list[Call], *, at_once: bool = False, late: float = 0
    ) -> None:
        self.script = Script(folder, late=late)
        self._calls = calls
        places = []
        for number, call in enumerate(calls):
            places.append(self.script.queue(call))
            if not at_once and (number or len(calls) == 1):
                self.script.wait()
        self.script.wait()
        self._saved = [
            {
                name: [(self.script.save(address), size) for address, size in parts]
                for name, parts in place.items()
            }
            for place in places
        ]
        self.path = self.script.write("close")

    def check(self) -> None:
        """Every output byte is that of the accelerator's own run."""
        for call, saved in zip(self._calls, self._saved, strict=True):
            for name, parts in saved.items():
                found = b"".join(path.read_bytes()[:size] for path, size in parts)
                assert found == call.outputs[name], name
