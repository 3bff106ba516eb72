"""The host's instruction queue."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness_runs import design, failures, names_of_tests, require_toolchain, run, shared_simulation
from host_coincidences import small_host
from nightly import nightly_seed, note

TESTS = names_of_tests("queue_tests")

failed = shared_simulation("queue_tests")
failed_on_a_wide_bus = shared_simulation("queue_tests", data_bytes=32)


@pytest.mark.parametrize("test", TESTS)
def test_queue(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]


NARROW = ("QueueErrors", "RingOfChunks")
"""What an entry of several words can break."""


def test_queue_on_a_bus_of_4_bytes(tmp_path: Path) -> None:
    """An entry, and the status block, are several words; the queues hold two descriptors."""
    failed = failures(small_host(), "queue_tests", NARROW, tmp_path, seed=1)
    assert not any(failed.values()), failed


@pytest.mark.nightly
@pytest.mark.asked_of_mutants
@pytest.mark.parametrize("test", TESTS)
def test_queue_on_a_bus_of_32_bytes(test: str, failed_on_a_wide_bus: dict[str, str]) -> None:
    """Descriptors and the status block are a part of a word."""
    assert not failed_on_a_wide_bus[test], failed_on_a_wide_bus[test]


@pytest.mark.parametrize(
    ("data_bytes", "programs"), [(8, 40), pytest.param(32, 20, marks=pytest.mark.nightly)]
)
def test_transfers_beside_the_queue(data_bytes: int, programs: int, tmp_path: Path) -> None:
    run_beside(data_bytes, programs, 1, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("data_bytes", [4, 8, 16, 32])
def test_many_transfers_beside_the_queue(data_bytes: int, tmp_path: Path) -> None:
    programs, chosen = 300, nightly_seed() + data_bytes
    run_beside(data_bytes, programs, chosen, tmp_path)
    note(f"DMA programs beside the queue, {8 * data_bytes}-bit bus", programs, chosen)


IN_ORDER = (
    ("assign answers_queue = m_axi_write.bid != 2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT);", ""),
    (
        "  logic answers_queue;",
        """  logic answers_queue, order_room, order_waits;
  descriptor_fifo #(.Width(1), .Depth(16)) order (
      .clk, .rst_n,
      .push_valid(m_axi_write.wvalid && m_axi_write.wready && m_axi_write.wlast),
      .push_ready(order_room), .push_data(queue_writes),
      .pop_valid(order_waits), .pop_ready(m_axi_write.bvalid && m_axi_write.bready),
      .pop_data(answers_queue)
  );
  logic unused;
  assign unused = &{1'b0, order_room, order_waits};
""",
    ),
)
"""What makes the bus take answers to writes in the order of the writes, whatever their
identifiers."""


@pytest.mark.nightly
def test_answers_that_are_matched_by_their_order_are_noticed() -> None:
    require_toolchain()
    from darwinn_rtl.build_folders import build_root, locked
    from darwinn_rtl.source_files import SOURCES_VARIABLE, source_folder

    copy = build_root() / "answers-in-order"
    with locked(build_root() / "answers-in-order-lock"):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source_folder(), copy)
        text = (copy / "host" / "bus_share.sv").read_text()
        for old, new in IN_ORDER:
            assert text.count(old) == 1
            text = text.replace(old, new)
        (copy / "host" / "bus_share.sv").write_text(text)
        test = f"{Path(__file__)}::test_transfers_beside_the_queue[8-40]"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:xdist",
                "-p",
                "no:cacheprovider",
                test,
            ],
            env={**os.environ, SOURCES_VARIABLE: str(copy)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1, done.stdout
    assert "cannot be built" not in done.stdout, done.stdout
    assert "beside_tests.Beside failed" in done.stdout, done.stdout


def run_beside(data_bytes: int, programs: int, seed: int, work: Path) -> None:
    chosen = design(DataBytes=data_bytes)
    run(chosen, "beside_tests", "Beside", work, seed=seed, DARWINN_PROGRAMS=programs)
