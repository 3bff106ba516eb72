"""What may come together on the host's side: its record, and what its programs are drawn by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from coincidences import Record
from harness_runs import design

if TYPE_CHECKING:
    from darwinn_rtl.build import Design

READ = ("output_bytes", "output_bursts", "output_answers")
"""Signals of the module that a test reads."""


def small_host() -> Design:
    """The harness on a narrow bus, with queues of two places, and the module that counts."""
    seen = tuple((HOST.module, name) for name in READ)
    chosen = design(DataBytes=4, FifoDepth=2, QueueDepth=2)
    return replace(HOST.counted(chosen, "harness"), seen=seen)


_LEAVES = "data_begins|fence_passes|refused"
_ON_THE_BUS = "read_asked|word_read|write_asked|word_written|write_answered"
IMPOSSIBLE = (
    (
        "activations_full *|outputs_full *|no_room_for_a_burst *|reads_full *|writes_full *|"
        "interrupt_waits *|output_full ends",
        "fence_passes",
        "a fence passes when nothing is pending, and this is a descriptor that is",
    ),
    (
        "error_answered|read_to_the_edge|write_to_the_edge",
        "fence_passes",
        "so is this; of the queue's own accesses none fails or reaches 4 KiB in these programs",
    ),
    (
        "pause begins|pause lasts",
        f"{_LEAVES}|interrupt_raised|chunk_taken",
        "during a pause none begins",
    ),
    (
        "paused begins|paused lasts",
        _ON_THE_BUS,
        "DMA is paused when nothing is on the bus, and nothing was begun in the cycle before",
    ),
    (
        "paused ends",
        "word_read|write_answered",
        "the first request is offered in this cycle: its words and answers come later",
    ),
    (
        "descriptors_full begins|descriptors_full lasts",
        "descriptor_taken|chunk_taken",
        "there is no room",
    ),
    (
        "core_halted begins|core_halted lasts|queue_on ends",
        "chunk_taken",
        "the queue offers nothing while the core is halted or the queue is off",
    ),
    (
        "reset",
        f"{_ON_THE_BUS}|descriptor_taken|chunk_taken|register_*",
        "what surrounds the harness offers and takes nothing in reset",
    ),
    ("queue_on begins", "chunk_taken", "the queue has read nothing yet"),
    ("ring_full ends", "chunk_taken", "the core asks for a chunk when it has the one before"),
    (
        "fence_at_head begins|fence_at_head lasts",
        "data_begins",
        "the fence is at the head, so nothing else leaves",
    ),
    ("fence_at_head ends", "fence_passes", "no fence is at the head any more"),
    (
        "refused_at_head begins|refused_at_head lasts",
        "data_begins|fence_passes",
        "what is at the head is refused",
    ),
    ("refused_at_head ends", "refused", "nothing to refuse is at the head any more"),
    ("interrupt_waits begins|interrupt_waits lasts", "interrupt_raised", "it waits"),
    (
        "writes_full *|output_full ends",
        "interrupt_raised",
        "an interrupt waits until no burst is unanswered",
    ),
    ("output_full begins|output_full lasts", "output_taken", "there is no room"),
    ("output_full ends", "output_waits", "there is room"),
    (
        "pause begins|pause ends|paused ends|core_halted begins|core_halted ends|queue_on begins|"
        "queue_on ends",
        "register_*",
        "the level follows an access of the host, which has one at a time in these programs",
    ),
)


@dataclass(frozen=True)
class Knobs:
    """What a program and its surroundings are drawn by: shares from 0 to 1, and numbers.

    Attributes:
        bus, sinks, source: share of cycles in which these are held back.
        gaps: share of descriptors before which the core waits.
        count: descriptors.
        fences, interrupts, refused, outputs: shares of these among descriptors; the rest reads.
        longest: bytes of a transfer.
        edges: share of transfers that begin or end at 4 KiB.
        errors: share of transfers with a word that answers with an error.
        limit: of a burst in words; 0 is none.
        chunks: that the core asks for.
        ahead: entries that the host posts before one is asked for.
        pauses, pause_gap: pauses of DMA, and cycles before each.
        halts: halts of the core.
        switches: times that the queue is turned off and on.
        accesses: share of cycles after which the host accesses a register.
        resets: programs before it that a reset breaks off.
        block: the host asks for the status block.
    """

    bus: float = 0.0
    sinks: float = 0.0
    source: float = 0.0
    gaps: float = 0.0
    count: int = 10
    fences: float = 0.1
    interrupts: float = 0.15
    refused: float = 0.05
    outputs: float = 0.3
    longest: int = 600
    edges: float = 0.1
    errors: float = 0.1
    limit: int = 0
    chunks: int = 3
    ahead: int = 1
    pauses: int = 0
    pause_gap: int = 200
    halts: int = 0
    switches: int = 0
    accesses: float = 0.05
    resets: int = 0
    block: bool = True


_LEVELS = (0.0, 0.1, 0.5, 0.8)
ANY: Mapping[str, tuple[Any, ...]] = {
    "bus": _LEVELS,
    "sinks": _LEVELS,
    "source": _LEVELS,
    "gaps": _LEVELS,
    "count": (4, 10, 16),
    "longest": (8, 40, 300, 1000),
    "limit": (0, 0, 1, 3),
    "chunks": (1, 3, 6),
    "pauses": (0, 0, 1, 2),
    "block": (True, True, False),
}
RECIPES: Mapping[str, Mapping[str, Any]] = {
    "pause": {"pauses": 15, "pause_gap": 25, "count": 24},
    "paused": {"pauses": 15, "pause_gap": 40, "count": 24},
    "descriptors_full": {"count": 24, "gaps": 0.0, "sinks": 0.8, "longest": 300},
    "activations_full": {"count": 24, "outputs": 0.0, "sinks": 0.8, "gaps": 0.0},
    "outputs_full": {"count": 24, "outputs": 0.6, "interrupts": 0.3, "gaps": 0.0, "longest": 40},
    "no_room_for_a_burst": {"outputs": 0.0, "sinks": 0.8, "longest": 1000, "bus": 0.0},
    "output_full": {"outputs": 0.7, "source": 0.0, "bus": 0.5, "longest": 1000},
    "reads_full": {"outputs": 0.1, "sinks": 0.0, "longest": 40, "bus": 0.8, "gaps": 0.0},
    "writes_full": {"outputs": 0.8, "longest": 40, "bus": 0.8, "source": 0.0, "limit": 1},
    "fence_at_head": {"fences": 0.4},
    "refused_at_head": {"refused": 0.7, "count": 24},
    "interrupt_waits": {"outputs": 0.5, "interrupts": 0.4, "longest": 40},
    "queue_on_the_bus": {"chunks": 20},
    "ring_full": {"chunks": 20, "ahead": 4, "count": 24, "longest": 40},
    "queue_on": {"switches": 15, "pause_gap": 40, "count": 24},
    "core_halted": {"halts": 15, "pause_gap": 40, "count": 24},
    "reset": {"resets": 8},
    "read_to_the_edge": {"edges": 0.9, "outputs": 0.0},
    "write_to_the_edge": {"edges": 0.9, "outputs": 0.8, "count": 6},
    "error_answered": {"errors": 0.9},
    "last_word_written": {"outputs": 0.7, "longest": 40},
    "chunk_taken": {"chunks": 20, "longest": 40},
    "fence_passes": {"fences": 0.4, "longest": 40},
    "refused": {"refused": 0.5, "count": 24},
    "activations_wait": {"sinks": 0.8},
    "output_waits": {"source": 0.0, "outputs": 0.3},
    "output_taken": {"outputs": 0.7},
    "word_written": {"outputs": 0.7},
    "write_asked": {"outputs": 0.7, "longest": 40},
    "write_answered": {"outputs": 0.7, "longest": 40},
    "write_done": {"outputs": 0.7, "longest": 40},
    "interrupt_raised": {"interrupts": 0.5, "longest": 40},
    "read_done": {"outputs": 0.1, "longest": 40},
    "register_written": {"accesses": 0.7},
    "register_read": {"accesses": 0.7},
    "host_told": {"chunks": 20, "longest": 40},
}

HOST = Record(0, "host_coincidences", Knobs, ANY, RECIPES, IMPOSSIBLE)
