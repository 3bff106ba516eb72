"""Seeds of the fuzzer: files of every format, written by the project itself at run time.

So they are always of today's compiler, and none has to be kept.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
from apex_queue import PAGE
from bus_chip import program
from darwinn_formats import darwinn
from darwinn_formats.darwinn import (
    Description,
    Direction,
    DmaDescriptorHint,
    Executable,
    InstructionHint,
    InterruptHint,
)
from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import Datatype
from darwinn_sim.host.buffers import buffer_sizes
from darwinn_sim.host.registers import RUN_CONTROLS
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.device.pcie.events import Recorder
from darwinn_testbench.device.trace import Octets, SessionFile
from darwinn_testbench.device.usb.events import Control, Device, Event, Received, Sent
from darwinn_testbench.regression.journal import Journal
from darwinn_testbench.regression.task import Outcome
from darwinn_testbench.report import Verdict
from iree_modules import FunctionSource, module, rodata
from pcie_machine import BUFFER, PROGRAM_AT, Machine
from PIL import Image
from xnnpack_cases import Draw, convolution

Seeds = Mapping[str, bytes]
"""Files by name."""

TILES = 0x48788


def files(*names: str) -> Callable[[Path], Seeds]:
    return lambda folder: {name: (folder / name).read_bytes() for name in names}


def programs(folder: Path) -> Seeds:
    """Portable programs, and one with a delegate of XNNPACK."""
    draw = Draw(np.random.default_rng(0), Datatype.QINT8)
    convolution(schema.DepthwiseConv2d)(draw)
    delegate = draw.case("delegate").program
    return {**files("dense.pte", "convolution.pte")(folder), "delegate.pte": delegate}


def streams(folder: Path) -> Seeds:
    found = {}
    for name in ("dense", "convolution"):
        package = (folder / f"{name}_stand_alone_edgetpu.tflite").read_bytes()
        (executable,) = darwinn.load(package).executables
        (chunk,) = executable.instruction_bitstreams
        found[name] = bytes(chunk.bitstream)
    return found


def modules(folder: Path) -> Seeds:
    loop = FunctionSource(
        "loop",
        "0i_i",
        [
            "start",
            ("const.i32", [15, 4]),
            ("and.i32", [0, 4, 0]),
            ("const.i32", [1, 4]),
            ("const.i32.zero", [8]),
            ("add.i32", [0, 4, 0]),
            ("br", ["again", []]),
            "again",
            ("add.i32", [8, 0, 8]),
            ("sub.i32", [0, 4, 0]),
            ("cmp.nz.i32", [0, 12]),
            ("cond_br", [12, "again", [], "end", []]),
            "end",
            ("return", [[8]]),
        ],
    )
    choice = FunctionSource(
        "choice",
        "0iI_i",
        [
            "start",
            ("br_table", [0, "end", [(0, 4)], [("other", [(0, 4)])]]),
            "other",
            ("fail", [0, b"message"]),
            "end",
            ("return", [[4]]),
        ],
        attributes={"iree.abi.declaration": "sync func @choice(%a: i32)"},
    )
    inner = module([FunctionSource("kernel", "0v_v", ["start", ("return", [[]])])])
    return {
        "loop": module([loop]),
        "choice": module([choice, loop], rodata_segments=rodata(b"text", inner)),
    }


MANIFESTS = {
    "manifest": b"""
[defaults]
reference = "{name}.tflite"
runs = 2
strict = true

[[case]]
file = "*_edgetpu.tflite"
seeds = [0, 1]
name = "all {name}"

[[case]]
file = "dense_edgetpu.tflite"
name = "one"
inputs = ["input=x.npy"]
inputs_kind = ["noise"]
engines = ["model"]
policy = "lsb:1"
timeout = 5.5
require_reference = true
"""
}


def baselines(folder: Path) -> Seeds:
    path = folder / "baseline.json"
    words = ("--baseline", str(path), "--update", "--reason", "seed")
    run_command_line(("cycles", str(folder / "convolution_edgetpu.tflite"), *words))
    return {"baseline": path.read_bytes()}


def descriptions(package: ModuleType, folder: str) -> Callable[[Path], Seeds]:
    where = Path(str(package.__file__)).parent / folder
    return lambda _: {path.stem: path.read_bytes() for path in sorted(where.glob("*.toml"))}


def journals(folder: Path) -> Seeds:
    path = folder / "journal"
    with Journal(path, Outcome) as journal:
        for number in range(3):
            verdict = (Verdict.PASS, Verdict.MISMATCH)[number % 2]
            journal.append(
                Outcome(
                    name=f"case {number}",
                    verdict=verdict,
                    key=f"{number:064x}",
                    file="model",
                    engine="model",
                    seed=number,
                    command="",
                )
            )
    return {"journal": path.read_bytes()}


def sessions(folder: Path) -> Seeds:
    """An inference by USB, and a request by PCIe."""
    usb, pcie = folder / "usb.session", folder / "pcie.session"
    (executable,) = darwinn.load(folder / "convolution_stand_alone_edgetpu.tflite").executables
    with SessionFile(usb) as file:
        file.write(Device.of(Mode.APPLICATION, Speed.SUPER))
        for event in _inference(executable):
            file.write(event)
    with SessionFile(pcie) as file:
        machine = Machine(Recorder(file.write))
        chunk = program((1, PAGE, BUFFER), (4, 0, 0))
        machine.give(PROGRAM_AT, chunk, BUFFER)
        machine.queue(BUFFER, len(chunk))
        machine.work()
        machine.driver.close()
    return {"usb": usb.read_bytes(), "pcie": pcie.read_bytes()}


def _inference(executable: Executable) -> Iterator[Event]:
    """What passes on the cable while a program runs, by its DMA hints; data are zeros."""
    one = Octets((1).to_bytes(8, "little"))
    for offset in (TILES, *(run.control for run in RUN_CONTROLS.values())):
        yield Control(0x40, 0, offset & 0xFFFF, offset >> 16, one, 8, None)
    addresses = {buffer: BUFFER + (n << 20) for n, buffer in enumerate(buffer_sizes(executable))}
    chunks = darwinn.link(executable, addresses)
    for hint in executable.dma_hints.hints if executable.dma_hints else ():
        match hint.any_hint:
            case InstructionHint(index):
                yield from _message(0, chunks[index])
            case DmaDescriptorHint(_, _, size) if hint.direction is Direction.OUTFEED:
                yield Received(1, Octets(bytes(size)))
            case DmaDescriptorHint(meta, _, size):
                is_parameter = meta.desc is Description.BASE_ADDRESS_PARAMETER
                yield from _message(2 if is_parameter else 1, bytes(size))
            case InterruptHint():
                yield Received(2, Octets(bytes(12) + b"\4" + bytes(3)))


def _message(tag: int, payload: bytes) -> Iterator[Event]:
    yield Sent(1, Octets(len(payload).to_bytes(4, "little") + tag.to_bytes(4, "little")))
    yield Sent(1, Octets(payload))


def arrays(folder: Path) -> Seeds:
    """An input of the convolution, as an array, an archive and a picture."""
    image = np.arange(24 * 32 * 4, dtype=np.uint8).reshape(1, 24, 32, 4)
    array, archive, picture = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(array, image)
    np.savez_compressed(archive, input=image)
    Image.fromarray(image[0]).save(picture, "PNG")
    return {"x.npy": array.getvalue(), "x.npz": archive.getvalue(), "x.png": picture.getvalue()}
