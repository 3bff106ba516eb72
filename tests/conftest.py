"""Fixtures and profiles that every test shares: the corpus of real files, and hypothesis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default")
)


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


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Folder of real input files, named by the environment variable DARWINN_CORPUS."""
    folder = os.environ.get("DARWINN_CORPUS")
    if not folder:
        pytest.skip("DARWINN_CORPUS is not set: the real input files are not at hand")
    return Path(folder)
