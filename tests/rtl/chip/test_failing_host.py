"""The whole chip when its surroundings fail: words that host memory refuses, resets under way.

Host memory does whatever AXI4 lets it, and units, ring and hand-over wait at random (a build with
stalls). What is expected comes from the model of the chip, and from what the driver has mapped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from broken_chip import BreakableChip, BrokenOff, Host
from darwinn_formats.darwinn import Executable
from darwinn_rtl.chip.host import WINDOW_BASE
from darwinn_rtl.harness import HarnessDescription
from darwinn_rtl.registers_rdl import HARNESS_REGISTERS
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.buffers import Request
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.package import compile_network
from harness_runs import require_toolchain
from nightly import nightly_seed, nightly_too, note
from whole_chip import random_inputs

BEHIND = 2_000
"""Cycles, at most, that the chip goes on when the core has stopped, before it is reset."""

KINDS = (
    TransferKind.INPUT,
    TransferKind.PARAMETER,
    TransferKind.OUTPUT,
    TransferKind.INSTRUCTION,
)
"""What is refused."""

HOLE = 64
"""Bytes that host memory refuses: whole words of any bus."""

BUS_BYTES = HarnessDescription().data_bytes

_ERRORS = next(each for each in HARNESS_REGISTERS if each.name == "harness_dma_error")


@cache
def chip() -> BreakableChip:
    """The chip of this process, held back at random."""
    require_toolchain()
    from darwinn_rtl.chip.player import design

    return BreakableChip(2026, design(stalls=True), stall_seed=2026)


@cache
def programs() -> tuple[Executable, Executable]:
    """What caches the parameters of two small layers, and what infers."""
    inference, caching = compile_network(random_dense((24, 20, 12), 2026)).executables
    return caching, inference


class Case:
    """A host that has opened the chip, and what its programs are to give."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.host = Host(chip(), random.getrandbits(31))
        self.model = Accelerator()

    def run(self, executable: Executable) -> dict[str, bytes]:
        """Run a program, whose outputs must be the model's."""
        inputs = random_inputs(executable, self.random)
        request = self.host.prepared(executable, inputs)
        outputs = self.host.run(request)
        assert outputs == self.model.run(executable, inputs).outputs
        return outputs

    def infers(self) -> None:
        """Cache the parameters and infer, as ever."""
        caching, inference = programs()
        assert self.run(caching) == {} and self.run(inference)


def recovers(random: Random) -> None:
    """After a reset another host finds the chip as new."""
    chip().mend()
    Case(random).infers()


def hole_in(random: Random, request: Request, kind: TransferKind) -> range:
    """Bus addresses within something of this kind that was mapped for a request."""
    every = [*request.buffers.values(), *request.chunks]
    mapped = random.choice([each for each in every if each.mapping.kind is kind])
    place = mapped.address - WINDOW_BASE + random.randrange(mapped.mapping.size)
    first = place // HOLE * HOLE
    return range(first, first + HOLE)


def refuse_a_word(random: Random, kind: TransferKind) -> bool:
    """Run a program in whose host memory something of this kind has a hole: it fails exactly if a
    transfer meets the hole. Whether it did."""
    from darwinn_rtl.player import RtlFailure

    chip().mend()
    case, (caching, inference) = Case(random), programs()
    executable = caching
    if kind is not TransferKind.PARAMETER:
        case.run(caching)
        executable = inference
    inputs = random_inputs(executable, random)
    request = case.host.prepared(executable, inputs)
    chip().hole = hole = hole_in(random, request, kind)
    failed = False
    try:
        outputs = case.host.run(request)
    except RtlFailure as failure:
        assert "host memory answered a transfer with an error" in str(failure)
        failed = True
    transfers = case.host.interface.transfers
    met = [
        each
        for each in transfers
        if each.address - WINDOW_BASE < hole.stop
        and each.address - WINDOW_BASE + each.size > hole.start
    ]
    assert failed == bool(met), (hole, kind, transfers)
    request.check_guards()
    if not failed:
        assert outputs == case.model.run(executable, inputs).outputs
        return False
    writes = kind is TransferKind.OUTPUT
    name = "write_response" if writes else "read_response"
    found = chip().read_register(_ERRORS.offset)
    assert found == _ERRORS.field(name).mask, f"{kind}: {found:#x}"
    return True


def break_off(random: Random) -> bool:
    """Reset the chip at some moment of a program; whether it was in the middle of it."""
    chip().mend()
    case, (caching, inference) = Case(random), programs()
    executable = caching
    if random.random() < 0.7:
        case.run(caching)
        executable = inference
    request = case.host.prepared(executable, random_inputs(executable, random))
    chip().hand_overs, chip().cycles = random.randrange(40), random.randrange(BEHIND)
    try:
        case.host.run(request)
    except BrokenOff:
        chip().reset()
        chip().run(random.randrange(BEHIND))
        request.check_guards()
        return True
    return False


@nightly_too
def test_a_refused_word_is_an_error_and_a_reset_helps(nightly: bool) -> None:
    """Of inputs, parameters, outputs and instructions, each at least once."""
    seed = nightly_seed() if nightly else 1
    print(f"seed {seed}")
    random = Random(seed)
    kinds = (*KINDS,) * (25 if nightly else 1)
    failed = set()
    for kind in kinds:
        if refuse_a_word(random, kind):
            failed.add(kind)
        recovers(random)
    assert failed == set(KINDS)
    if nightly:
        note("words that host memory refuses the whole chip", len(kinds), seed)


def refusing(word: int | None) -> Callable[[int, bytes, int], bool]:
    """Takes all words but this one, if it is one."""
    return lambda address, data, strobes: word is None or address != word * BUS_BYTES


@pytest.mark.parametrize("unruly", [False, True])
def test_each_word_that_a_host_elsewhere_refuses_is_an_error(unruly: bool) -> None:
    """Also the last word of a burst, or its only one; and the next burst has its own answer."""
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer, design

    chosen = design(stalls=True) if unruly else design()
    played = ChipPlayer(2026, chosen, stall_seed=2026 if unruly else None)
    failed = _ERRORS.field("write_response").mask
    for words in (1, 2, 5):
        for refused in (None, *range(words)):
            played.unmap_all()
            played.reset()
            played.map_elsewhere(lambda address, size: None, refusing(refused))
            for repeated in (False, True):
                # What is refused lies in the first of two transfers.
                place = words * BUS_BYTES * repeated
                played.descriptor(DescriptorTag.OUTPUT, WINDOW_BASE + place, words * BUS_BYTES)
                for word in range(words * BUS_BYTES // 4):
                    played.push(word)
            played.settle()
            found = played.read_register(_ERRORS.offset)
            assert found == (failed if refused is not None else 0), (words, refused)
    played.close()


@nightly_too
def test_a_reset_in_the_middle_of_bursts_leaves_nothing_behind(nightly: bool) -> None:
    """Whatever host memory owes, and whatever waits in queues and tiles."""
    seed = nightly_seed() if nightly else 1
    print(f"seed {seed}")
    random = Random(seed)
    cases = 100 if nightly else 4
    broken = 0
    for _ in range(cases):
        broken += break_off(random)
        recovers(random)
    assert 2 * broken >= cases
    if nightly:
        note("resets of the whole chip beside unruly memory", cases, seed)
