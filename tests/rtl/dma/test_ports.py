"""Each port of the harness, and each between its parts, has a checker that looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import design, require_toolchain, run

VALID_FELL = "valid fell before ready"
TOLD = (
    *(
        ("check_m_axi.port.tell", f"slave: {of}_request: ", f"(ID {n})")
        for of in "rb"
        for n in range(4)
    ),
    *(("host.check_dma.port.tell", "slave: r_request: ", f"(ID {number})") for number in range(3)),
    ("host.check_queue.port.tell", "slave: r_request: ", "(ID 3)"),
    *(
        ("host.check_queue.port.tell", "slave: b_request: ", f"(ID {number})")
        for number in range(3)
    ),
    ("host.check_dma.port.tell", "slave: b_request: ", "(ID 3)"),
    ("s_axil.check.port.tell", "master: ar_held: ", ""),
    ("host.check_descriptor", "", VALID_FELL),
    ("host.dma.writer.check_stream", "", VALID_FELL),
)
"""Who tells what, and how that ends, where memory, host, core and outfeed each break a rule."""


def test_every_port_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_toolchain()
    from darwinn_rtl.build import ARGUMENT_VARIABLE, SimulationFailed

    # Else the first of them would be the last.
    monkeypatch.setenv(ARGUMENT_VARIABLE, "+verilator+error+limit+10000")
    with pytest.raises(SimulationFailed):
        run(design(DataBytes=8), "ports_tests", "all_rules", tmp_path, seed=1)
    lines = (tmp_path / "all_rules.log").read_text().splitlines()
    for place, begin, end in TOLD:
        said = f"Assertion failed in harness.{place}: {begin}"
        assert any(said in line and line.endswith(end) for line in lines), (place, begin, end)
