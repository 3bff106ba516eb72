"""A plugin of pytest that notes which lines each test function executes, and how long it takes.

It writes them to the file that DARWINN_MUTATION_RECORD names. Lines of compiled kernels, and those
that other processes execute, are not seen. Of a property a fifth of the examples is tried, which
executes nearly the same lines; its time is that of all of them.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest
from hypothesis import settings

FILE_VARIABLE = "DARWINN_MUTATION_RECORD"
PROFILE = "recording"
SOURCES = ("sim/darwinn_sim", "formats/darwinn_formats/darwinn")
"""Folders of what is changed, and seen to be executed."""


class Recorder:
    """What is seen of a session."""

    def __init__(self, file: Path, root: Path) -> None:
        self._file, self._root = file, root
        source = [str(root / folder) for folder in SOURCES]
        self._coverage = coverage.Coverage(data_file=None, source=source, config_file=False)
        self._seconds: dict[str, float] = defaultdict(float)
        self._passed: set[str] = set()
        self._failed: set[str] = set()
        self._factor: dict[str, float] = {}

    def pytest_sessionstart(self) -> None:
        # What is executed at import is no test's, not even of the one that imports a module first.
        for folder in SOURCES:
            import_all(".".join(Path(folder).parts[1:]))
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        test = function_of(item.nodeid)
        self._factor[test] = _factor(item)
        self._coverage.switch_context(test)
        result = yield
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = function_of(report.nodeid)
        self._seconds[test] += report.duration
        if report.failed:
            self._failed.add(test)
        elif report.when == "call" and report.passed:
            self._passed.add(test)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, dict[str, list[int]]] = {}
        for name in data.measured_files():
            by_test: dict[str, list[int]] = defaultdict(list)
            for line, contexts in data.contexts_by_lineno(name).items():
                for context in filter(None, contexts):
                    by_test[context].append(line)
            lines[Path(name).relative_to(self._root).as_posix()] = by_test
        good = self._passed - self._failed
        seconds = {
            test: round(self._seconds[test] * self._factor[test], 3) for test in sorted(good)
        }
        self._file.write_text(json.dumps({"seconds": seconds, "lines": lines}))


def import_all(package: str) -> None:
    """Import a package and all modules in it."""
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, f"{package}."):
        importlib.import_module(module.name)


def _factor(item: pytest.Item) -> float:
    """How many times as long a test takes as it does while it is recorded."""
    chosen = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
    recording = settings.get_profile(PROFILE).max_examples
    if chosen is None or chosen.max_examples != recording:
        return 1.0
    return settings.get_profile("mutation").max_examples / recording


def function_of(test: str) -> str:
    """The test without its parameters."""
    return test.partition("[")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Record where the environment asks for it."""
    if file := os.environ.get(FILE_VARIABLE):
        config.pluginmanager.register(Recorder(Path(file), config.rootpath))
