"""PopInput: random instructions against a slow model of the input buffers."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import given
from slow_model import input_pop as slow
from slow_model.traversal import walk as walk_elements
from stimulus import Walk, constrained_random
from unit_bench import Bench
from unit_cases.input_pop import BINS, cases, cover


def test_pops_fill_the_buffers_of_the_slow_model() -> None:
    """Buffers, flags and what is left in the FIFO agree."""
    coverage = Coverage("input pop", BINS)

    @constrained_random(200)
    @given(cases())
    def check(case: tuple[dict[str, Any], dict[int, int], bytes]) -> None:
        fields, flags, stream = case
        bench = Bench([("PopInput", fields)])
        bench.core["input"]["head"] = chip.HOST_FIFO_BYTES - 17
        bench.feed(fields["fifo"], stream)
        for flag, value in flags.items():
            bench.core["flags"][flag] = value
        core = bench.slow_core()
        left = slow.run(core, fields, stream)
        popped = (len(stream) - len(left)) // slow.UNIT_BYTES[fields["fifo"]]
        ended = popped == len(walk_elements(fields, "buffer"))
        bench.run()
        bench.assert_core(core)
        bench.assert_tiles([])
        assert int(bench.core["input"]["length"][fields["fifo"]]) == len(left)
        assert (bench.waiting == ()) == ended
        cover(coverage, fields, len(stream), len(left), ended)

    coverage.close(check)


def test_parameters_and_activations_do_not_hold_each_other_back() -> None:
    """Each stream has its own FIFO and its own unit."""
    one = Walk((1, 1, 1), (0, 0, 0)).fields("PopInput", "buffer")
    bench = Bench([("PopInput", one | {"fifo": 0}), ("PopInput", one | {"fifo": 1})])
    bench.feed(1, bytes(range(8)))
    bench.run()
    assert bench.core["activations"][:8].tolist() == list(range(8))
    (line,) = bench.waiting
    assert line.startswith("parameter pop")
