"""Deliberate faults of the RTL, and the test of the suite that must catch each of them.

Every test builds the RTL with its faults in place if the environment variable
``DARWINN_RTL_MUTATION`` names one, so a fault is caught if its test then fails:
``python tests/support/mutations.py [NAME...]`` tries them and prints the list.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from darwinn_testbench.rtl.build import MUTATION_VARIABLE, source_folder

ROOT = Path(__file__).parents[2]

CONTROL = "None"
"""The mutation that changes nothing: with it every catching test passes."""

CYCLES = "tests/rtl/test_dma_programs.py::test_random_programs_equal_the_models_to_the_cycle"

TENSOR = "tests/rtl/test_tile_tensor_unit.py::test_multiply_accumulate[gate]"
MAXIMUM = "tests/rtl/test_tile_tensor_unit.py::test_maximum[gate]"
INTERPOLATION = "tests/rtl/test_tile_tensor_unit.py::test_interpolation[gate]"
TENSOR_BY_HAND = "tests/rtl/test_tile_tensor_unit.py::test_ties_round_to_even"
WATCHER = "tests/rtl/test_tile_tensor_unit.py::test_a_watcher_passes_at_its_value_and_not_before[1]"
PACKING = (
    "tests/rtl/test_tile_narrow_to_wide.py"
    "::test_random_instructions_pack_the_rows_of_the_slow_model[gate]"
)
SPREADING = (
    "tests/rtl/test_tile_wide_to_narrow.py"
    "::test_random_instructions_move_the_words_of_the_slow_model[gate]"
)
SCALES = (
    "tests/rtl/test_tile_wide_to_narrow.py"
    "::test_a_load_of_scales_begins_at_the_half_that_is_free[1]"
)
MESH = (
    "tests/rtl/test_tile_mesh_bus.py"
    "::test_random_instructions_send_and_write_the_words_of_the_slow_model[gate]"
)
RING = (
    "tests/rtl/test_tile_ring_bus.py"
    "::test_random_instructions_send_and_write_the_rows_of_the_slow_model[gate]"
)
WRITE_SIDES = (
    "tests/rtl/test_tile_narrow_to_wide.py"
    "::test_the_double_buffer_goes_on_across_guarded_instructions[guarded by flag 16]"
)
READ_SIDES = (
    "tests/rtl/test_tile_ring_bus.py"
    "::test_the_read_side_goes_on_until_a_fence_loads_its_flag[None-rows2]"
)
PARTIAL_SUMS = "tests/rtl/test_tile_tensor_unit.py::test_sums_in_wide_memory_go_on"
CHIP = "tests/rtl/test_chip_scalar_side.py::"
POP = CHIP + "test_pops_fill_the_buffers"
INFEED = CHIP + "test_infeeds_send_their_rows"
OUTFEED = CHIP + "test_outfeeds_take_their_units"
FULL_OUTFEED = CHIP + "test_a_full_outfeed_holds_the_ring"
SCALAR_FENCE = CHIP + "test_fences_wait_and_load"
TILE_FENCE = "tests/rtl/test_tile_fence.py::test_fences_wait_load_and_count[gate]"


def _event(name: str) -> str:
    return f"tests/rtl/test_dma_events.py::test_event[{name}]"


@dataclass(frozen=True)
class Mutation:
    """A fault by its name in ``mutation_pkg.sv``, in words, with the test that catches it."""

    name: str
    fault: str
    test: str = CYCLES


MUTATIONS = (
    Mutation("QueueOverflows", "a full queue takes one more entry"),
    Mutation("ByteQueueOverflows", "a full queue of bytes takes one more byte"),
    Mutation("BoundaryIgnored", "bursts cross 4 KiB"),
    Mutation("BurstOneLonger", "the longest burst has one word more than the limit"),
    Mutation("FenceIgnored", "a fence waits for nothing"),
    Mutation("FenceOneEarly", "a fence does not wait for the last descriptor"),
    Mutation("WindowOneLonger", "a byte behind the window can be reached"),
    Mutation("Length0NotReported", "a descriptor of no bytes is dropped without a word"),
    Mutation("CompletionsMerged", "two completions in one cycle count as one"),
    Mutation("PauseIgnored", "bursts are asked for during a pause", _event("Pause")),
    Mutation("ReadErrorIgnored", "words with an error response arrive as they are"),
    Mutation("ReadErrorNotReported", "an error response of a read leaves the status as it is"),
    Mutation("RoomForgotten", "bursts are asked for without room for their words"),
    Mutation("DoneOnArrival", "a read completes before its unit has taken the last beat"),
    Mutation("FirstWordNotShifted", "a read within a word gives the word's first bytes"),
    Mutation("StreamPreferred", "streams do not take turns"),
    Mutation("OneMoreOutstanding", "one read burst too many is on its way"),
    Mutation("StrobeDropped", "the last byte of a word has no strobe"),
    Mutation("StrobesBeyondEnd", "the last word of a write has strobes to its end"),
    Mutation("InterruptOvertakes", "an interrupt does not wait for the answers to its outputs"),
    Mutation("WriteErrorIgnored", "an error response of a write leaves the status as it is"),
    Mutation("BurstBeforeItsBytes", "a write begins with a byte missing"),
    Mutation("DoneAtFirstResponse", "a write completes with the answer to its first burst"),
    Mutation("InterruptLost", "a host interrupt does not set its status"),
    Mutation("InterruptCountedTwice", "a host interrupt counts as two"),
    Mutation("MaskIgnored", "a masked interrupt raises its line", _event("InterruptStorm")),
    Mutation("ErrorInterruptLost", "an error response of a write raises no fatal error"),
    Mutation("FirstErrorOverwritten", "a later error takes the place of the first"),
    Mutation("StatusNotCleared", "a status bit survives its clearing", _event("InterruptStorm")),
    Mutation("LimitOneMore", "every loop of a traversal runs once more", TENSOR),
    Mutation("AlternateLimitIgnored", "the last pass is as long as the others", TENSOR),
    Mutation("AlternateResetIgnored", "a shorter pass goes on from the wrong address", TENSOR),
    Mutation("DoubleBufferStays", "a traversal stays in its first buffer", TENSOR),
    Mutation("WatcherOneEarly", "a watcher passes one count early", WATCHER),
    Mutation("WatcherStrideIgnored", "a watcher waits for the same value again", TENSOR),
    Mutation("FlagCountedTwice", "an increment of a sync flag counts as two", TENSOR),
    Mutation("TileFenceIgnored", "a tile fence waits for nothing", TILE_FENCE),
    Mutation("TileFenceLoadsNothing", "a tile fence leaves the flags as they are", TILE_FENCE),
    Mutation("TokenCountIgnored", "a tile fence does not count tokens", TILE_FENCE),
    Mutation("TokensMayBeMore", "a tile fence passes with more tokens than awaited", TILE_FENCE),
    Mutation("WideWriteOneShort", "the last word of a row is not written", TENSOR),
    Mutation("MultiplierStands", "the fourth multiplier of every cell stands still", TENSOR),
    Mutation("ZeroPointIgnored", "the zero point of the parameters is 0", TENSOR),
    Mutation("SumsNotContinued", "sums in wide memory begin at 0 again", PARTIAL_SUMS),
    Mutation("LastBlockIgnored", "the last block has as many lanes as the others", TENSOR),
    Mutation("ScaleHalfStays", "scales and biases come from the first half", TENSOR),
    Mutation("ClipIgnored", "results are not clipped from above", TENSOR),
    Mutation("ReductionTakesRow", "a maximum of one byte plane takes all four", MAXIMUM),
    Mutation("NearestAsBias", "the bit of the nearest pixel adds a bias", INTERPOLATION),
    Mutation("HalfPixelForgotten", "the nearest pixel is the one before", INTERPOLATION),
    Mutation("RoundsHalfUp", "ties are rounded up, not to even", TENSOR_BY_HAND),
    Mutation("ResultsWrap", "results beyond the highest are cut off", TENSOR),
    Mutation("QueueHeadWrapsLate", "the queue's head wraps late", _event("InstructionQueue")),
    Mutation("PrologueCounted", "the words of a prologue count as ends of blocks", SPREADING),
    Mutation("PrologueOneShort", "a prologue has one element less", SPREADING),
    Mutation("RowOneWordShort", "narrow-to-wide closes a row after 63 words", PACKING),
    Mutation("BlockNotFilled", "an unfinished block keeps words of the row before", PACKING),
    Mutation("HalvesAsBytes", "blocks of halves are turned as blocks of bytes", PACKING),
    Mutation("WriteSideForgotten", "every guarded instruction starts at its side", WRITE_SIDES),
    Mutation("RowKeptAcrossBlocks", "wide-to-narrow uses every row up", SPREADING),
    Mutation("ScaleLoadAtFirstHalf", "a load of scales begins at the encoded half", SCALES),
    Mutation("ImmediateIgnored", "a mesh port writes what arrived last for a constant", MESH),
    Mutation("OffSideSends", "a side of the mesh that is off sends a word", MESH),
    Mutation("LinkFlagsSwapped", "words sent count for the opposite link", MESH),
    Mutation("TurnIgnored", "a ring producer does not wait for its turn", RING),
    Mutation("TokenLost", "the turn on the ring is not passed on", RING),
    Mutation("ReadSideForgotten", "every ring producer starts at its side", READ_SIDES),
    Mutation("RowWordsIgnored", "a ring consumer writes 64 words of every row", RING),
    Mutation("PopOneByteEarly", "a pop takes a unit whose last byte is missing", POP),
    Mutation("InfeedIncrementIgnored", "an infeed counts one, whatever it is told", INFEED),
    Mutation("InfeedTurnLost", "a turn within a row is not passed on", INFEED),
    Mutation("LastRowKept", "an infeed does not send its last row if it is short", INFEED),
    Mutation("RestOfRowKept", "the next outfeed takes the rest of the last row", OUTFEED),
    Mutation("ScalarFenceIgnored", "a scalar fence waits for nothing", SCALAR_FENCE),
    Mutation("TileFencesNotForgotten", "the fences of tiles go on counting", SCALAR_FENCE),
    Mutation("RingRoomIgnored", "rows arrive at an outfeed that is full", FULL_OUTFEED),
)

_REASON = re.compile(
    r"(?:WorkloadMismatch|Mismatch|WaitTimeout|AssertionError|%Error): .*|Assertion failed in.*"
)


def declared() -> list[str]:
    """Names of the faults that the RTL has places for."""
    text = (source_folder() / "pkg" / "mutation_pkg.sv").read_text()
    names = re.findall(r"^ {4}(\w+),$", text, re.MULTILINE)
    return [name for name in names if name not in (CONTROL, "Mutations")]


def run_with(name: str, test: str) -> tuple[bool, str]:
    """Run ``test`` on the RTL with fault ``name``; whether it passes, and the end of its output."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", test],
        cwd=ROOT,
        env={**os.environ, MUTATION_VARIABLE: name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), f"{test} did not run:\n{done.stdout}{done.stderr}"
    assert " skipped" not in done.stdout.splitlines()[-1], f"{test} was skipped"
    return done.returncode == 0, done.stdout


def how_caught(mutation: Mutation) -> str:
    """What the catching test says; raises ``AssertionError`` if it does not catch the fault."""
    passes, output = run_with(mutation.name, mutation.test)
    assert not passes, f"{mutation.name} ({mutation.fault}) is not caught by {mutation.test}"
    assert not re.search(r"SimulationFailed: \w+ cannot be built", output), output
    found = _REASON.search(output)
    assert found, f"{mutation.test} fails for another reason:\n{output}"
    return found[0].strip()


def row(mutation: Mutation, reason: str) -> str:
    """One line of the list."""
    test = mutation.test.rpartition("/")[2]
    return f"{mutation.name:<24} {mutation.fault:<66} {test}\n{'':<24} {reason}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try faults and print how each is caught; 1 if one is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults to try; all without")
    options = parser.parse_args(arguments)
    chosen = [m for m in MUTATIONS if not options.names or m.name in options.names]
    missed = 0
    for mutation in chosen:
        try:
            print(row(mutation, how_caught(mutation)), flush=True)
        except AssertionError as error:
            missed += 1
            print(f"{mutation.name:<24} NOT CAUGHT: {error}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} deliberate faults caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
