"""What tests of /dev/apex_0 share: the shim, the client, a device that copies."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apex_bench import Bench, bench_in
from apex_script import build_client
from darwinn_formats.errors import Unavailable
from darwinn_testbench.device.pcie.wrapped import environment, shim


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(tmp_path) as made:
        yield made
        assert made.device.faults == 0


@pytest.fixture(scope="session")
def library() -> Path:
    try:
        return shim()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def client(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_client(tmp_path_factory.mktemp("client"))


@pytest.fixture
def run(bench: Bench, client: Path, library: Path) -> Callable[[Path], subprocess.Popen[bytes]]:
    def start(script: Path) -> subprocess.Popen[bytes]:
        environ = environment(library, bench.folder)
        return subprocess.Popen([client, script], env=environ, stdout=subprocess.PIPE)

    return start
