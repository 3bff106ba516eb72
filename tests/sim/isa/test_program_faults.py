"""What mutations change: the fields that they name, of one instruction, and nothing else."""

from __future__ import annotations

from random import Random

import averaging_program as sample
import numpy as np
import pytest
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.table import BY_NAME
from program_faults import Kind, draw, mutated_executable

EXECUTABLE = sample.executable()
(CHUNK,) = EXECUTABLE.instruction_bitstreams
PROGRAM = decode(CHUNK.bitstream)

KINDS = [kind for kind in Kind if kind not in (Kind.TABLE, Kind.SIDE)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutation_changes_what_it_names_and_nothing_else(kind: Kind) -> None:
    random = Random(4)
    for _ in range(20):
        mutation = draw(random, [[PROGRAM]], kind)
        assert mutation is not None and mutation.changes
        (chunk,) = mutated_executable(EXECUTABLE, mutation).instruction_bitstreams
        mutant = decode(chunk.bitstream)
        instruction = BY_NAME[mutation.instruction]
        at = int(PROGRAM.row[PROGRAM.pc == mutation.pc][0])
        for code, columns in PROGRAM.columns.items():
            for name, column in columns.items():
                places = np.argwhere(mutant.columns[code][name] != column).tolist()
                if code != instruction.opcode:
                    assert not places
                    continue
                named = [change for change in mutation.changes if change.field == name]
                assert places == [[at, each.place][: column.ndim] for each in named]
                for each in named:
                    where = (at, each.place)[: column.ndim]
                    assert column[where] == each.before != each.after
                    assert mutant.columns[code][name][where] == each.after


def test_mutations_follow_from_the_seed() -> None:
    drawn = [
        [str(draw(random, [[PROGRAM]], Kind.DESCRIPTOR)) for _ in range(30)]
        for random in (Random(1), Random(1), Random(2))
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) > 10


def test_a_program_without_such_a_place_has_no_mutation() -> None:
    assert draw(Random(0), [[PROGRAM]], Kind.TABLE) is None
