"""Stretches of a plan that the event model ends at once hold nothing that may hold it up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from corpus_models import path_of
from darwinn_formats.darwinn import load
from darwinn_sim.machine.lowering import lower_executable
from darwinn_sim.timing.stretches import stretches


def test_a_stretch_holds_segments_that_only_send_results_on(corpus: Path) -> None:
    (model,) = load(path_of(corpus, "mobilenet_v1_0.25_128_quant_2019")).models
    tables = lower_executable(model.inference, addresses=False).tables
    plan = tables.tensor_plan
    found = stretches(tables.tensor, plan)
    starts = np.flatnonzero(found.end)
    assert len(starts) > 1000
    lasts = {int(place["segment"] + place["segments"] - 1) for place in plan.place}
    for start in np.random.default_rng(0).choice(starts, 200):
        end = int(found.end[start])
        segments, behind = plan.segment[start:end], plan.segment[start + 1 : end + 1]
        words = np.diff(found.words[start : end + 1])
        assert lasts.isdisjoint(range(start, end))
        assert not segments["parameter_reads"].any() and not segments["sum_writes"].any()
        assert not behind["waits"].any()
        assert (words > 0).all() and (words <= behind["count"]).all()
        place = plan.place[(plan.place["segment"] <= start).nonzero()[0][-1]]
        first = int(place["write"]) + int(found.words[start])
        assert not plan.write_flag[first : first + int(words.sum())].any()
