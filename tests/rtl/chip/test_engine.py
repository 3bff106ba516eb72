"""Real executables end to end on the RTL: every output byte equals model and CPU reference."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from chip_runs import rtl_chip
from darwinn_formats.darwinn import Executable
from darwinn_rtl import toolchain
from darwinn_rtl.build import RATIO_VARIABLE
from darwinn_sim import timing
from darwinn_sim.errors import UnsupportedInstruction
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.table import BY_NAME
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler.assembler import Assembler, walk
from darwinn_testbench.compiler.program import begin, end
from darwinn_testbench.engine import Engine
from darwinn_testbench.report import Verdict
from harness_runs import require_toolchain
from nightly import nightly_too
from stimulus import Walk, nothing

SMALL = ("gabor_64x64_7k_4o_2s", "bright_16x16", "looming_64x64_3x3", "keras_lstm_mnist_ptq")
LARGER = (
    "bright_64x64",
    "color_red_64x64",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_0.25_128_quant_2019",
    "mobilenet_v1_0.5_160_quant",
    "mobilenet_v1_1.0_224_quant_embedding_extractor",
)


def check(compiled: Path, reference: Path | None, **options: Any) -> int:
    """Verify on the RTL; the cycles of the first inference, which the event model predicts."""
    require_toolchain()
    report = verify(compiled, reference, engine=Engine.RTL, **options)
    assert report.verdict is Verdict.PASS, report.message
    for row in report.rows:
        assert row.rtl is not None and row.rtl.elements > 0 and row.rtl.differing == 0
    # The DMA of both, parameters and inferences, is what the compiler announced.
    names = {each.name for each in report.figures["dma"] if each.name.endswith("(RTL)")}
    assert names >= {"inference 0 (RTL)"}
    assert all(each.verdict is Verdict.PASS for each in report.figures["dma"])
    cycles = report.rows[0].rtl_cycles
    assert cycles is not None
    (model,) = open_models(compiled)
    harness, link = timing.chip_description("harness"), timing.host_link("harness")
    predicted = timing.simulate(model.compiled.inference, harness, link).cycles
    print(f"{compiled.name}: {cycles:,} cycles, {predicted:,} predicted")
    assert predicted == cycles
    return cycles


@pytest.mark.parametrize("network", ["dense", "convolution"])
def test_samples_run_on_the_rtl(samples: Path, network: str) -> None:
    """Parameters are cached, and two inferences give the bytes of model and chip arithmetic."""
    reference = samples / f"{network}.tflite"
    cycles = check(samples / f"{network}_edgetpu.tflite", reference, runs=2)
    again = check(samples / f"{network}_edgetpu.tflite", reference, seed=1)
    assert cycles == again > 0, "the time does not depend on the data, nor on what reset leaves"


@pytest.mark.nightly
@pytest.mark.parametrize("network", ["dense", "convolution"])
def test_samples_run_in_block_ram_in_the_same_cycles(
    samples: Path, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = samples / f"{network}_edgetpu.tflite", samples / f"{network}.tflite"
    cycles = check(*files)
    monkeypatch.setenv(RATIO_VARIABLE, "7")
    assert check(*files) == cycles


@pytest.mark.nightly  # it builds the chip anew, with stalls
@pytest.mark.asked_of_mutants
@pytest.mark.parametrize("network", ["dense", "convolution"])
def test_random_stalls_change_no_byte(samples: Path, network: str) -> None:
    """Host memory, ring, hand-over and units wait at random: only the cycles are others."""
    require_toolchain()
    cycles: list[int] = []
    for stall_seed in (None, 1, 1, 2):
        report = verify(
            samples / f"{network}_edgetpu.tflite",
            samples / f"{network}.tflite",
            engine=Engine.RTL,
            stall_seed=stall_seed,
        )
        assert report.verdict is Verdict.PASS, report.message
        assert (f"held back at random from seed {stall_seed}" in report.message) == bool(stall_seed)
        assert all(row.rtl and row.rtl.elements and not row.rtl.differing for row in report.rows)
        cycles.append(report.rows[0].rtl_cycles or 0)
    plain, first, again, other = cycles
    assert first == again and len({plain, first, other}) == 3
    assert first > plain and other > plain


def test_dense_256_runs_on_the_rtl(corpus: Path) -> None:
    """The smallest program of the real compiler that uses every part of the scalar side."""
    name = "dense_256"
    check(corpus / f"darwinn/{name}_edgetpu.tflite", corpus / f"tflite/{name}.tflite")


@pytest.mark.parametrize("name", ["padding_2x2x3", "stride_64x64x3"])
def test_programs_of_2019_run_on_the_rtl(wild: Path, name: str) -> None:
    """Their tile fences count the tokens of ring producers; the prediction is exact."""
    compiled, reference = f"darwinn/{name}_edgetpu.tflite", f"tflite/{name}.tflite"
    check(wild / compiled, wild / reference)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["mnist_lenet_quant", "dense_2x2x3x100x200"])
def test_executables_of_strangers_run_on_the_rtl(wild: Path, name: str) -> None:
    """Maxima of one byte plane a step, and 10,213 tokens that a fence awaits."""
    check(wild / f"darwinn/{name}_edgetpu.tflite", None, chip_only=True)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*SMALL, *LARGER])
def test_real_models_run_on_the_rtl(corpus: Path, name: str) -> None:
    """Convolutions, halos over the mesh, and an LSTM with base registers and tile sets."""
    check(corpus / f"darwinn/{name}_edgetpu.tflite", None)


def test_the_command_reports_the_rtl(samples: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`--json` has comparison and cycles, and nothing else is on standard output."""
    require_toolchain()
    file = samples / "dense_edgetpu.tflite"
    assert run_command_line(["verify", str(file), "--engine", "rtl", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    (row,) = report["rows"]
    assert row["rtl"]["differing"] == 0 and row["rtl_cycles"] > 0
    assert (row["verdict"], row["decided_by"], row["policy"]) == ("pass", "RTL", "exact")
    assert "compared with nothing" not in report["message"]
    assert "1 of 1 outputs of the RTL equal the model's" in report["message"]


def test_a_missing_compiler_is_one_line(
    samples: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The line says what to install; what only the model does is refused in one line as well."""
    monkeypatch.setattr(toolchain, "missing", lambda *, waves: ("apt-get install g++",))
    file = str(samples / "dense_edgetpu.tflite")
    assert run_command_line(["verify", file, "--waves", "chip.fst"]) == 2
    assert "--waves is for --engine rtl" in capfd.readouterr().err
    assert run_command_line(["verify", file, "--stall-seed", "1"]) == 2
    assert "--stall-seed is for --engine rtl" in capfd.readouterr().err
    assert run_command_line(["verify", file, "--engine", "rtl"]) == 3
    (line,) = capfd.readouterr().err.splitlines()
    assert "apt-get install g++" in line
    assert run_command_line(["run", file, "--engine", "rtl"]) == 3
    (line,) = capfd.readouterr().err.splitlines()
    assert "verify" in line


def test_ctrl_c_ends_a_wait() -> None:
    """Python would hear of it only when the wait is over, days later."""
    player = rtl_chip()
    before = signal.getsignal(signal.SIGINT)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        player.run(1 << 40)
    assert signal.getsignal(signal.SIGINT) is before, "who runs this may ignore it, as nohup does"
    player.run(10)


def test_a_fault_of_the_rtl_is_a_mismatch(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong byte is found wherever it comes from; here a tile is told another zero point."""
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer

    hand_over = ChipPlayer.hand_over

    def spoil(
        self: ChipPlayer, name: str, bits: bytes, tiles: int = 0, base: int | None = None
    ) -> None:
        if name.startswith("TensorMac"):
            place = BY_NAME["TensorMac"].field("output_zero_point").offset + 1
            bits = (int.from_bytes(bits, "little") ^ 1 << place).to_bytes(len(bits), "little")
        hand_over(self, name, bits, tiles, base)

    monkeypatch.setattr(ChipPlayer, "hand_over", spoil)
    report = verify(samples / "dense_edgetpu.tflite", engine=Engine.RTL)
    assert report.verdict is Verdict.MISMATCH
    assert report.rows[0].decided_by == "RTL"
    assert "the RTL differs from the model" in report.rows[0].message


def test_a_wait_without_end_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pop whose bytes never come: the message has the fence, the unit and what went before."""
    player = rtl_chip()
    from darwinn_rtl.player import RtlTimeout

    monkeypatch.setattr("darwinn_rtl.player.STANDSTILL", 3000)
    player.reset()
    units = Walk((4, 1, 1), (1, 0, 0)).fields("PopInput", "buffer")
    player.hand_over("PopInput of chunk 0, pc 5", build([("PopInput", units | {"fifo": 1})]))
    with pytest.raises(RtlTimeout) as caught:
        player.hand_over("ScalarFence of chunk 0, pc 7", build([("ScalarFence", {"wait_idle": 1})]))
    message = str(caught.value)
    assert "waited for ScalarFence of chunk 0, pc 7" in message
    assert "activation pop busy" in message
    assert "cycle 0: PopInput of chunk 0, pc 5" in message


def test_chips_of_a_process_end_in_any_order() -> None:
    """The first one outlives the second, and ends as well."""
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer

    first, second = ChipPlayer(1), ChipPlayer(2)
    second.close()
    first.run(10)
    first.close()
    ChipPlayer(3).close()


def test_tiles_that_a_build_lacks_are_refused_by_name() -> None:
    """Fences on absent tiles count as reached; instructions that move data there do not start."""
    from darwinn_rtl.chip.engine import check_tiles
    from darwinn_sim.machine.lowering import lower

    write = Walk((1, 1, 1, 1), (0, 0, 0, 0)).fields("RingConsumerA", "wide_write")
    fence = ("TileFence", {"tiles": 0xFFFF})
    check_tiles(lower((frame(build([fence, ("RingConsumerA", write | {"tiles": 3})])),)), 2)
    for operation in (
        ("RingConsumerA", write | {"tiles": 4}),
        ("RingInfeed", {"targets": 1 << 5, "fifo": 2}),
        ("MeshWest", {"tiles": 1}),
    ):
        with pytest.raises(UnsupportedInstruction):
            check_tiles(lower((frame(build([operation])),)), 2)


def test_assumed_values_that_the_rtl_lacks_are_refused() -> None:
    from darwinn_rtl.chip.engine import check_assumptions
    from darwinn_sim.machine.lowering import lower

    check_assumptions(lower((frame(build([("MeshEast", {"tiles": 1, "trace": 1})])),)))
    lowered = lower((frame(build([("WideToNarrow", {"tiles": 1, "transpose": 1})])),))
    with pytest.raises(
        UnsupportedInstruction, match="the RTL lacks what the model assumes"
    ) as error:
        check_assumptions(lowered)
    assert (error.value.pc, error.value.field, error.value.value) == (1, "transpose", 1)


@nightly_too
def test_a_long_instruction_is_no_standstill(
    monkeypatch: pytest.MonkeyPatch, nightly: bool
) -> None:
    """One sum of 2^14 products, nightly of 2^19: nothing shows that it goes on, for longer than
    the bound, which is a smaller one in the gate."""
    require_toolchain()
    from darwinn_rtl import player
    from darwinn_rtl.chip.engine import RtlAccelerator, quiet_cycles

    limits = [127, 127, 31] if nightly else [127, 127, 0]
    iterations = math.prod(limit + 1 for limit in limits)
    if not nightly:
        monkeypatch.setattr(player, "STANDSTILL", 2048)
    assert iterations > player.STANDSTILL
    program = Assembler()
    begin(program)
    program.tile(
        "TensorMac",
        1,
        nothing("TensorMac") | {"main_limit": [*limits, 0, 0, 0, 0, 0]},
        walk("TensorMac", "narrow_read", 0, [(1, 0)]),
        walk("TensorMac", "partial_sum", 0, [(1, 0)]),
        walk("TensorMac", "narrow_write", 64, [(16, 4)]),
        partial_sum_read=3,
        block_lanes=63,
        last_block_lanes=63,
    )
    end(program)
    accelerator = RtlAccelerator()
    executable = Executable(instruction_bitstreams=(program.chunk(),))
    assert quiet_cycles(accelerator.load(executable)) >= iterations
    result = accelerator.run(executable, {})
    assert result.statistics["rtl_cycles"] > iterations
