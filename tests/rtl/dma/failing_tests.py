"""Tests that pass, fail, and fail otherwise (see test_several_tests.py)."""

from __future__ import annotations

from typing import Any

import cocotb


@cocotb.test()
async def passes(dut: Any) -> None:
    assert dut.rst_n is not None


@cocotb.test()
async def fails(dut: Any) -> None:
    raise AssertionError("it fails")


@cocotb.test()
async def breaks(dut: Any) -> None:
    raise ValueError("it breaks")


@cocotb.test()
async def passes_behind(dut: Any) -> None:
    assert dut.rst_n is not None
