"""Numbers by which runs of sums are told from each other."""

from __future__ import annotations

import numpy as np
from darwinn_sim.lifting import passes

SIZES = range(1, 9)


def test_runs_that_differ_in_seed_and_size_have_different_keys() -> None:
    """All places are 0, as of products with one parameter each: seed and size have to tell."""
    runs = [(seed, size) for seed in range(9) for size in SIZES]
    end = np.cumsum([size for _, size in runs])
    begin = end - [size for _, size in runs]
    nothing = np.zeros(end[-1], np.int32)
    iterations = passes.Iterations(
        nothing, nothing, nothing.astype(np.uint8), nothing.astype(np.int16)
    )
    no = np.zeros(len(runs), np.bool_)
    none = np.zeros((0, 4), np.int32)
    found = np.empty(len(runs), np.uint64)
    seeds = np.array([seed for seed, _ in runs])
    passes.keys(begin, end, seeds, no, no, iterations, none[:, 0].copy(), none, found)
    assert len(set(found.tolist())) == len(runs)
