"""`darwinn device`: the simulated chip for programs that open it themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from darwinn_sim.device.pace import Pace
from darwinn_sim.host.register_space import silent
from darwinn_sim.kernel.compiling import announced
from darwinn_sim.pcie.function import Watcher as PcieWatcher
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_sim.usb.function import UsbFunction, Watcher
from rich.console import RenderableType

from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.progress import say_compiling
from darwinn_testbench.cli.terminal import Exit, print_line
from darwinn_testbench.device.answers import Answers
from darwinn_testbench.device.pcie import attach as pcie_attach
from darwinn_testbench.device.pcie import events as pcie_events
from darwinn_testbench.device.pcie import replay as pcie_replay
from darwinn_testbench.device.pcie.log import Log as PcieLog
from darwinn_testbench.device.trace import CutShort, RecordedSession, SessionFile
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
        metavar="[-- COMMAND]",
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
        "--booted", help="Start the device with its firmware, so that it does not wait for it."
    ),
]
TimedOption = Annotated[
    bool,
    typer.Option(
        "--timed",
        help="Outputs and interrupts of a program leave no earlier than `darwinn cycles` predicts.",
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
    port: Port = None,
    json: settings.Json = False,
) -> None:
    """Attach the simulated chip as a device for other programs, or replay a recorded session.

    With --usb, COMMAND and its children find a stand-in for libusb-1.0 (LD_LIBRARY_PATH) and the
    device at its port. With --pcie they find /dev/apex_0, by a library in front of the C library
    (LD_PRELOAD). One program at a time can use the device. The exit code is that of COMMAND. If the
    chip had a fault, it is 1, and standard error names the fault. With --usbip, a kernel can import
    the device (`usbip attach`), until you interrupt the command.

    With --timed, the device holds back the results of a program (an inference, or the loading of
    parameters) until the time has passed that the event model predicts for a chip of 500 MHz at
    this host link, with the host's fixed cost. If the simulation takes longer, or the program
    cannot be timed, a line says so once. With --log, lines give the times of each program.
    """
    if [usb, pcie, usbip, replay is not None].count(True) != 1:
        raise InputError(
            "exactly one of --usb -- COMMAND, --pcie -- COMMAND, --usbip and --replay FILE is "
            "needed"
        )
    if command and replay is not None:
        raise InputError(f"--replay takes one file, {replay}, and no command: {command[0]}")
    if command and usbip:
        raise InputError("a command needs --usb or --pcie")
    if port and not usbip:
        raise InputError("--port is for --usbip")
    if replay is not None:
        if record:
            raise InputError("--replay takes no --record")
        if booted or speed:
            raise InputError("--replay takes neither --booted nor --speed: the session says both")
        if timed:
            raise InputError("--replay takes no --timed: it waits for nothing")
        with announced(say_compiling):
            _replay(replay, log, json)
    if (usb or pcie) and not command:
        name = "--usb" if usb else "--pcie"
        raise InputError(f"{name} needs a command: darwinn device {name} -- COMMAND")
    if pcie and (booted or speed):
        raise InputError("--booted and --speed are for --usb and --usbip")
    if json:
        raise InputError("--json is for --replay")
    attachment = _Attachment(record, log, speed or CableSpeed.SUPER, booted or usbip, timed)
    with announced(say_compiling):
        if usbip:
            raise Exit(attachment.by_usbip(port or USUAL_PORT))
        raise Exit((attachment.by_pcie if pcie else attachment.by_usb)(command or []))


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


class _Attachment:
    """A device that is plugged in, and watched as the options say."""

    def __init__(
        self, record: Path | None, log: bool, speed: CableSpeed, booted: bool, timed: bool
    ) -> None:
        self._record, self._log = record, log
        self._tell = _say if log else silent
        self._speed = {CableSpeed.HIGH: Speed.HIGH, CableSpeed.SUPER: Speed.SUPER}[speed]
        self._booted, self._timed = booted, timed
        self._faults, self._downloads = Faults(_say), Downloads()
        self._status: int | None = None
        """How the command has ended."""

    def by_usb(self, command: Sequence[str]) -> int:
        """The exit code of ``command``, which uses the device."""
        from darwinn_testbench.device.usb.wrapped import run_command, stand_in

        # What is missing is said before anything is compiled.
        stand_in()
        with self._plugged_in() as function:
            self._status = run_command(function, command)
        if not (self._booted or self._downloads.count):
            _say(f"the device stayed {BOOT_IDS}, waiting for firmware (--booted: it has some)")
        return self._exit_code(self._status)

    def by_pcie(self, command: Sequence[str]) -> int:
        """The exit code of ``command``, which uses the device."""
        from darwinn_testbench.device.pcie.wrapped import run_command, shim

        shim()
        with self._recording() as file, self._pace("pcie") as pace:
            watchers: list[PcieWatcher] = [PcieLog(_say)] if self._log else []
            if file is not None:
                watchers.append(pcie_events.Recorder(file.write))
            function = pcie_attach.new_function(tuple(watchers), self._tell, pace)
            self._status, faults = run_command(function, command, _say)
        return EXIT_CODES[Verdict.FAULT] if faults else self._status

    def by_usbip(self, port: int) -> int:
        """The exit code of a server that was interrupted."""
        from darwinn_testbench.device.usb.usbip import serve_until_signal

        with self._plugged_in() as function:
            asyncio.run(serve_until_signal(function, port, _say))
        return self._exit_code(0)

    def _exit_code(self, status: int) -> int:
        return EXIT_CODES[Verdict.FAULT] if self._faults.count else status

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
            if self._status is None:
                raise
            raise CutShort(f"{error}; the command's exit status was {self._status}") from None

    @contextmanager
    def _pace(self, link: str) -> Iterator[Pace]:
        """When completions leave; what was timed is said at the end."""
        if not self._timed:
            yield Pace()
            return
        from darwinn_testbench.device.timed import Timed

        timed = Timed(link, _say, log=self._log)
        timed.prepare()
        yield timed.pace
        timed.end()

    @contextmanager
    def _plugged_in(self) -> Iterator[UsbFunction]:
        with ExitStack() as stack:
            watchers: list[Watcher] = [self._faults, self._downloads]
            if self._log:
                watchers.append(Log(_say))
            file = stack.enter_context(self._recording())
            if file is not None:
                mode = Mode.APPLICATION if self._booted else Mode.BOOT
                watchers.append(Recorder(file.write, Device.of(mode, self._speed)))
            yield stack.enter_context(
                attached(
                    speed=self._speed,
                    boot=not self._booted,
                    watchers=tuple(watchers),
                    log=self._tell,
                    pace=stack.enter_context(self._pace(_LINKS[self._speed])),
                )
            )
