"""The browser that looks at pages; judgements apart; tasks of many files in one process."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from darwinn_testbench.chip import kept


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1200,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as opened:
        opened.set_page_load_timeout(60)
        yield opened


@pytest.fixture
def nothing_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of judgements: a new one, so that nothing is known from before."""
    folder = tmp_path / "judgements"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(kept, "folder", folder)
    return folder


@pytest.fixture
def tasks_performed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """`regress`, `survey` and `evaluate` do their tasks in this process, which has loaded the model
    of the chip; time limits and limits of the kernel are what the pool adds to that.
    """

    def perform(tasks: Iterable[Any], jobs: int | None = None) -> Iterator[Any]:
        return (task.perform() for task in tasks)

    for name in ("regression", "survey", "evaluation"):
        monkeypatch.setattr(f"darwinn_testbench.{name}.run.perform_here", perform)
