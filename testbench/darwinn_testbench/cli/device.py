"""`darwinn device`: the simulated chip for programs that open it themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from darwinn_sim.device.pace import Pace
from darwinn_sim.host.register_space import silent
from darwinn_sim.kernel.compiling import announced
from darwinn_sim.pcie.function import PcieFunction
from darwinn_sim.pcie.function import Watcher as PcieWatcher
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_sim.usb.function import UsbFunction, Watcher
from rich.console import RenderableType

from darwinn_testbench.chip.scratch_hints import warnings_of
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.progress import say_compiling
from darwinn_testbench.cli.terminal import Exit, print_line
from darwinn_testbench.device.answers import Answers
from darwinn_testbench.device.clock import Clock
from darwinn_testbench.device.pcie import attach as pcie_attach
from darwinn_testbench.device.pcie import events as pcie_events
from darwinn_testbench.device.pcie import messages as pcie_messages
from darwinn_testbench.device.pcie import replay as pcie_replay
from darwinn_testbench.device.pcie.log import Log as PcieLog
from darwinn_testbench.device.trace import CutShort, RecordedSession, SessionFile
from darwinn_testbench.device.usb import messages as usb_messages
from darwinn_testbench.device.usb import replay as usb_replay
from darwinn_testbench.device.usb.attach import attached
from darwinn_testbench.device.usb.events import Device, Recorder
from darwinn_testbench.device.usb.log import BOOT_IDS, Downloads, Faults, Log
from darwinn_testbench.device.usb.usbip import USUAL_PORT
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import EXIT_CODES, Column, Report, Verdict, table
from darwinn_testbench.request import settings

EXAMPLES = """**Examples**

`darwinn device --usb -- python application.py`

`darwinn device --usb --record session.trace --log -- ./application`

`darwinn device --pcie -- ./application`

`darwinn device --usb --chips 2 -- python two_models.py`

`darwinn device --replay session.trace`

`darwinn device --usbip`, and in another terminal `sudo modprobe vhci_hcd` and
`sudo usbip attach -r 127.0.0.1 -b 2-1`
"""


class CableSpeed(StrEnum):
    """Speeds of the cable."""

    HIGH = "high"
    SUPER = "super"


Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- COMMAND",
        help="With --usb or --pcie: the program that uses the device, and its arguments.",
        show_default=False,
    ),
]
Usb = Annotated[
    bool,
    typer.Option(
        "--usb",
        help="Run COMMAND with the device at a USB port, for programs with libusb-1.0 or PyUSB.",
    ),
]
Pcie = Annotated[
    bool,
    typer.Option(
        "--pcie",
        help="Run COMMAND with the device as /dev/apex_0 (experimental; Linux on x86-64).",
    ),
]
Replay = Annotated[
    str | None,
    typer.Option(
        "--replay",
        metavar="FILE",
        help="Play a recorded session without its program, and compare the chip's answers.",
        show_default=False,
    ),
]
Record = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Write the session to FILE, for --replay. It grows as FILE.*.part until it ends.",
    ),
]
Logged = Annotated[
    bool,
    typer.Option("--log", help="Show the traffic on standard error, with registers by name."),
]
CableSpeedOption = Annotated[
    CableSpeed | None,
    typer.Option(
        "--speed", help="Speed of the USB cable.", metavar="high|super", show_default="super"
    ),
]
Booted = Annotated[
    bool,
    typer.Option(
        "--booted", help="Start the device with its firmware; otherwise it waits for a download."
    ),
]
TimedOption = Annotated[
    bool,
    typer.Option(
        "--timed",
        help="Outputs and interrupts of a program leave no earlier than `darwinn cycles` predicts.",
    ),
]
Chips = Annotated[
    int,
    typer.Option(
        "--chips",
        metavar="N",
        min=1,
        max=min(usb_messages.MAX_DEVICES, pcie_messages.MAX_DEVICES),
        help="With --usb or --pcie: attach N chips, each with its own state, memory and times.",
    ),
]
ClockOption = Annotated[
    Clock | None,
    typer.Option(
        "--clock",
        metavar="chip|wall",
        help="With --usb: the clock of time-outs. chip: it stands still while the simulation "
        "computes; wall: real time.",
        show_default="chip",
    ),
]
UsbIp = Annotated[
    bool,
    typer.Option(
        "--usbip", help="Serve the device by USB/IP on 127.0.0.1, for a kernel to import."
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        min=1,
        max=65535,
        help="TCP port of --usbip.",
        show_default=str(USUAL_PORT),
    ),
]

_LINKS = {Speed.HIGH: "usb2", Speed.SUPER: "usb3"}
"""Host links of the event model."""

_TAKEN_BY: Mapping[str, tuple[tuple[str, ...], str]] = {
    "--booted or --speed": (
        ("--usb", "--usbip"),
        "--booted and --speed are for --usb and --usbip; a recorded session says both",
    ),
    "--chips": (("--usb", "--pcie"), "--chips is for --usb and --pcie; others have one chip"),
    "--clock": (("--usb",), "--clock is for --usb, where this project is the program's libusb"),
    "--json": (("--replay",), "--json is for --replay"),
    "--port": (("--usbip",), "--port is for --usbip"),
    "--record": (("--usb", "--pcie", "--usbip"), "the session is recorded already"),
    "--timed": (("--usb", "--pcie", "--usbip"), "it waits for nothing"),
    "command": (("--usb", "--pcie"), "a command needs --usb or --pcie"),
}
"""Which ways of attaching take an option, and why others do not."""

_COLUMNS: tuple[Column[Answers], ...] = (
    Column("answers from", lambda row: row.name),
    Column("answers", lambda row: row.answers, "right"),
    Column("bytes", lambda row: row.bytes, "right"),
    Column("differences", lambda row: row.differences, "right"),
    Column("verdict", lambda row: row.verdict),
    Column("first difference", lambda row: row.message, may_shrink=True),
)


def command(
    command: Command = None,
    usb: Usb = False,
    pcie: Pcie = False,
    usbip: UsbIp = False,
    replay: Replay = None,
    record: Record = None,
    log: Logged = False,
    speed: CableSpeedOption = None,
    booted: Booted = False,
    timed: TimedOption = False,
    chips: Chips = 1,
    clock: ClockOption = None,
    port: Port = None,
    json: settings.Json = False,
) -> None:
    """Attach the simulated chip as a device for other programs, or replay a recorded session.

    With --usb, COMMAND and its children find a stand-in for libusb-1.0 (LD_LIBRARY_PATH) and the
    device at its port. With --pcie they find /dev/apex_0, by a library in front of the C library
    (LD_PRELOAD). One program at a time can use a device. With --chips N there are N of them: by USB
    at ports 1 to N, by PCIe /dev/apex_0 to /dev/apex_N-1. The exit code is that of COMMAND. If the
    chip had a fault, it is 1, and standard error names the fault. With --usbip, a kernel can import
    the device (`usbip attach`), until you interrupt the command.

    With --timed, the device holds back the results of a program (an inference, or the loading of
    parameters) until the time has passed that the event model predicts for a chip of 500 MHz at
    this host link, with the host's fixed cost. If the simulation takes longer, or the program
    cannot be timed, a line says so once. With --log, lines give the times of each program.
    """
    ways = {"--usb": usb, "--pcie": pcie, "--usbip": usbip, "--replay": replay is not None}
    way = _the_one(ways)
    given = {
        "--booted or --speed": booted or speed is not None,
        "--chips": chips > 1,
        "--clock": clock is not None,
        "--json": json,
        "--port": port is not None,
        "--record": record is not None,
        "--timed": timed,
        "command": bool(command),
    }
    for option, (takers, reason) in _TAKEN_BY.items():
        if given[option] and way not in takers:
            raise InputError(f"{way} takes no {option}: {reason}")
    if replay is not None:
        with announced(say_compiling):
            _replay(replay, log, json)
    if way != "--usbip" and not command:
        raise InputError(f"{way} needs a command: darwinn device {way} -- COMMAND")
    cable = {CableSpeed.HIGH: Speed.HIGH, CableSpeed.SUPER: Speed.SUPER}[speed or CableSpeed.SUPER]
    wanted = _Wanted(record, log, cable, booted or usbip, timed, clock or Clock.CHIP)
    attachment = _Attachment(wanted, chips)
    with announced(say_compiling):
        if usbip:
            raise Exit(attachment.by_usbip(port or USUAL_PORT))
        raise Exit((attachment.by_pcie if pcie else attachment.by_usb)(command or []))


def _the_one(ways: Mapping[str, bool]) -> str:
    """The option that was given."""
    given = [option for option, is_given in ways.items() if is_given]
    if len(given) != 1:
        raise InputError(
            "exactly one of --usb -- COMMAND, --pcie -- COMMAND, --usbip and --replay FILE is "
            "needed"
        )
    return given[0]


def _say(text: str) -> None:
    print_line(f"darwinn device: {text}")


def _replay(file: str, log: bool, json: bool) -> None:
    session = RecordedSession(Path(file))
    if session.first_kind in pcie_events.KINDS:
        watchers = (PcieLog(_say),) if log else ()
        report = pcie_replay.replay(session, pcie_attach.new_function, watchers)
    else:
        report = usb_replay.replay(session, watchers=(Log(_say),) if log else ())
    finish(report, file=file, as_json=json, body=_body, next_step="")


def _body(report: Report[Answers]) -> Sequence[RenderableType]:
    return [table(_COLUMNS, report.rows)]


@dataclass(frozen=True)
class _Wanted:
    """What the options say of each device."""

    record: Path | None
    log: bool
    speed: Speed
    booted: bool
    timed: bool
    clock: Clock


class _Attachment:
    """Devices that are plugged in, and watched as the options say."""

    def __init__(self, wanted: _Wanted, chips: int) -> None:
        self._wanted = wanted
        self._chips = range(chips)

    def by_usb(self, command: Sequence[str]) -> int:
        """The exit code of ``command``, which uses the devices."""
        from darwinn_testbench.device.usb.wrapped import run_command, stand_in

        # What is missing is said before anything is compiled.
        stand_in()
        for text in (text for word in command for text in warnings_of(Path(word))):
            _say(text)
        chips = [_Chip(self._wanted, *self._place("usb", number)) for number in self._chips]
        with ExitStack() as stack:
            functions = [stack.enter_context(chip.plugged_in()) for chip in chips]
            status = run_command(functions, command, self._wanted.clock)
            for chip in chips:
                chip.status = status
        for chip in chips:
            chip.say_if_unused()
        return _exit_code(chips, status)

    def by_pcie(self, command: Sequence[str]) -> int:
        """The exit code of ``command``, which uses the devices."""
        from darwinn_testbench.device.pcie.wrapped import run_command, shim

        shim()
        chips = [_Chip(self._wanted, *self._place("pci", number)) for number in self._chips]
        with ExitStack() as stack:
            functions = [(stack.enter_context(chip.on_bus()), chip.say) for chip in chips]
            status, faults = run_command(functions, command)
            for chip in chips:
                chip.status = status
        return EXIT_CODES[Verdict.FAULT] if faults else status

    def by_usbip(self, port: int) -> int:
        """The exit code of a server that was interrupted."""
        from darwinn_testbench.device.usb.usbip import serve_until_signal

        chip = _Chip(self._wanted, *self._place("usb", 0))
        with chip.plugged_in() as function:
            asyncio.run(serve_until_signal(function, port, chip.say))
        return _exit_code([chip], 0)

    def _place(self, bus: str, number: int) -> tuple[str, Path | None]:
        """The runtime's name of a chip, if there are several, and where its session is written."""
        record = self._wanted.record
        if len(self._chips) == 1:
            return "", record
        named = record and record.with_name(f"{record.stem}.{number}{record.suffix}")
        return f"{bus}:{number}: ", named


def _exit_code(chips: Sequence[_Chip], status: int) -> int:
    return EXIT_CODES[Verdict.FAULT] if any(chip.faults.count for chip in chips) else status


class _Chip:
    """One device, with what watches it.

    Args:
        wanted: the options.
        name: begins each line about it.
        record: where its session is written.
    """

    def __init__(self, wanted: _Wanted, name: str, record: Path | None) -> None:
        self._wanted, self._name, self._record = wanted, name, record
        self._tell = self.say if wanted.log else silent
        self.faults, self._downloads = Faults(self.say), Downloads()
        self.status: int | None = None
        """How the command has ended."""

    def say(self, text: str) -> None:
        """Write a line about it."""
        _say(f"{self._name}{text}")

    def say_if_unused(self) -> None:
        """Say that no program has given it firmware, if that is so."""
        if not (self._wanted.booted or self._downloads.count):
            self.say(f"the device stayed {BOOT_IDS}, waiting for firmware (--booted: it has some)")

    @contextmanager
    def _recording(self) -> Iterator[SessionFile | None]:
        """Where the session is written; if that fails, how the command ended is said as well."""
        if self._record is None:
            yield None
            return
        try:
            with SessionFile(self._record) as file:
                yield file
        except CutShort as error:
            if self.status is None:
                raise
            raise CutShort(f"{error}; the command's exit status was {self.status}") from None

    @contextmanager
    def _pace(self, link: str) -> Iterator[Pace]:
        """When completions leave; what was timed is said at the end."""
        if not self._wanted.timed:
            yield Pace()
            return
        from darwinn_testbench.device.timed import Timed

        timed = Timed(link, self.say, log=self._wanted.log)
        timed.prepare()
        yield timed.pace
        timed.end()

    @contextmanager
    def on_bus(self) -> Iterator[PcieFunction]:
        """The device on a PCIe bus."""
        with self._recording() as file, self._pace("pcie") as pace:
            watchers: list[PcieWatcher] = [PcieLog(self.say)] if self._wanted.log else []
            if file is not None:
                watchers.append(pcie_events.Recorder(file.write))
            yield pcie_attach.new_function(tuple(watchers), self._tell, pace)

    @contextmanager
    def plugged_in(self) -> Iterator[UsbFunction]:
        """The device at a cable, computing."""
        wanted = self._wanted
        with ExitStack() as stack:
            watchers: list[Watcher] = [self.faults, self._downloads]
            if wanted.log:
                watchers.append(Log(self.say))
            file = stack.enter_context(self._recording())
            if file is not None:
                mode = Mode.APPLICATION if wanted.booted else Mode.BOOT
                watchers.append(Recorder(file.write, Device.of(mode, wanted.speed)))
            yield stack.enter_context(
                attached(
                    speed=wanted.speed,
                    boot=not wanted.booted,
                    watchers=tuple(watchers),
                    log=self._tell,
                    pace=stack.enter_context(self._pace(_LINKS[wanted.speed])),
                )
            )
