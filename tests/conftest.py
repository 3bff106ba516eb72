"""Fixtures and profiles that every test shares: the folders of real files, and hypothesis."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from random import SystemRandom
from types import FrameType
from typing import Any

import nightly
import pytest
import watchdog
from darwinn_rtl import bounded
from hypothesis import Phase, settings

# A suite that passes today passes tomorrow: the same examples in every run. Nights draw others.
settings.register_profile(
    "default", deadline=None, print_blob=True, derandomize=True, max_examples=60
)
# Whether a test fails is all that is asked (tests/mutation): no failure is made smaller.
settings.register_profile(
    "mutation", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("recording", settings.get_profile("mutation"), max_examples=20)
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Tables are printed as nobody's terminal and nobody's log unless a test says otherwise.
os.environ.pop("CI", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--waves",
        metavar="FOLDER",
        help="write the waves (FST, and groups for GTKWave) of every RTL simulation to FOLDER",
    )
    parser.addoption(
        "--rtl-coverage",
        metavar="FOLDER",
        help="write line, toggle and functional coverage of every RTL simulation to FOLDER",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Simulations are processes of their own: what they are to write is in their environment.
    asked = {"--waves": "DARWINN_RTL_WAVES", "--rtl-coverage": "DARWINN_RTL_COVERAGE"}
    for option, variable in asked.items():
        folder = config.getoption(option)
        if folder:
            os.environ[variable] = str(Path(folder).absolute())
    in_gate = config.getoption("-m") == "not nightly"
    bounds = watchdog.GATE if in_gate else watchdog.NIGHT
    config.pluginmanager.register(watchdog.Watchdog(bounds))
    os.environ.setdefault(bounded.CYCLES_VARIABLE, str(bounds.cycles))
    os.environ.setdefault(bounded.SECONDS_VARIABLE, f"{bounds.processor / 2:g}")
    if in_gate:
        # The RTL tests of the gate simulate seconds of what takes a minute to build.
        os.environ.setdefault("DARWINN_RTL_OPTIMIZATION", "1")
    os.environ.setdefault(nightly.SEED_VARIABLE, str(SystemRandom().randrange(1 << 31)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What random tests drew nightly travels in the report, from workers as well."""
    report = yield
    report.user_properties += [("nightly", noted) for noted in nightly.take_notes()]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was drawn: how many cases of what, and from which seeds."""
    cases: dict[str, int] = defaultdict(int)
    seeds: dict[str, set[int]] = defaultdict(set)
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, noted in getattr(report, "user_properties", ()):
                if name == "nightly":
                    what, count, seed = noted
                    cases[what] += count
                    seeds[what].add(seed)
    if not cases:
        return
    terminalreporter.section(f"random cases, from {nightly.SEED_VARIABLE}={nightly.nightly_seed()}")
    for what in sorted(cases):
        first, last = min(seeds[what]), max(seeds[what])
        through = f" to {last}" if last > first else ""
        terminalreporter.line(f"{cases[what]:>7,} {what}, seed {first}{through}")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the sample networks, which the tests of a module share."""
    # Loaded where it is asked for: it takes half a second.
    from sample_files import sample

    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    return folder


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Folder of real input files, named by the environment variable DARWINN_CORPUS."""
    return _folder_of("DARWINN_CORPUS")


@pytest.fixture(scope="session")
def wild() -> Path:
    """Folder of executables of strangers, of the same layout, named by DARWINN_WILD."""
    return _folder_of("DARWINN_WILD")


@pytest.fixture(scope="session")
def wild2() -> Path:
    """Folder of executables that were met later, of the same layout, named by DARWINN_WILD2."""
    return _folder_of("DARWINN_WILD2")


@pytest.fixture(scope="session")
def traces() -> Path:
    """Folder of sessions of the vendor's driver: DARWINN_TRACES, or the one beside the corpus."""
    folder = os.environ.get("DARWINN_TRACES")
    if folder:
        return Path(folder)
    beside = _folder_of("DARWINN_CORPUS").parent / "traces"
    if not beside.is_dir():
        pytest.skip(f"DARWINN_TRACES is not set, and there is no {beside}")
    return beside


def _folder_of(variable: str) -> Path:
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} is not set: the real input files are not at hand")
    return Path(folder)


@pytest.fixture
def signals_not_ignored() -> Iterator[None]:
    """These tests, and what they start, get all signals, also under `nohup`."""
    handlers: dict[signal.Signals, Callable[[int, FrameType | None], Any] | signal.Handlers] = {
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGINT: signal.default_int_handler,
        signal.SIGQUIT: signal.SIG_DFL,
    }
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is signal.SIG_IGN
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
