"""The page docs/accuracy.md, from the report of `darwinn accuracy`."""

from __future__ import annotations

from collections.abc import Mapping

from darwinn_testbench.accuracy.predict import AccuracyRow
from darwinn_testbench.report import Report

GOAL_PER_POINT = 0.05
"""Error of each prediction for MobileNet v1 and v2 over five hosts that the project aims at."""

GOAL_MEAN = 0.10
"""Mean absolute error over all points, each predicted without its own model."""

_HEAD = """# Predicted and published latencies

`darwinn accuracy --document docs/accuracy.md` writes this page. The binaries are not part of this
repository. [timing.md](timing.md) describes the model and its parameters.
[machines.md](machines.md) has the published points of all machines, with other networks too.

All figures are for {chip}. A prediction is the sum of two times: the simulated time of the binary,
including the host's link, and the host's fixed cost of a request. We fit only two things: the fixed
cost, on the *other* models of the same host, and the bandwidth, on Inception v4. So no figure of a
model takes part in its own prediction, and no model has a parameter of its own.

Two baselines show what a simpler model would predict. The first divides the graph's multiplications
by the chip's peak rate. The second is a roofline: the larger of the first and the time of the bytes
of input, output and uncached weights at the host's bandwidth, plus a fixed cost that is fitted as
above. With slow links the bytes of the instructions dominate, and only the binary shows them. There
a roofline with these bytes would be about as good as the model.

The full binary of MobileNet v1 1.0 is no longer public. Two parts replace it: the embedding
extractor up to its last convolution, and the end of the 2019 build of MobileNet v1 0.25, after its
last convolution, with its cycles and instruction bytes. The time of that build's pool is multiplied
by 12.25, because the pool of MobileNet v1 1.0 gathers 12.25 times as many values.

"""

_COLUMNS = (
    "model",
    "host",
    "source",
    "published ms",
    "simulated ms",
    "fixed ms",
    "predicted ms",
    "error",
    "calibrates",
    "multiplications at peak",
    "roofline",
)

_SLOW_DIFFERENCE = 0.5
"""Milliseconds that the simulation gives between two models behind a slow link, at least."""

_TAIL = """
{verdict}.

Goals: every point of the table within {per_point:.0%}, and a mean absolute error of at most
{mean:.0%}. {missed}

## Left out

| model | source | published ms | reason |
|---|---|---|---|
"""

_MISSED = """The first is missed on {hosts}: there the published times of the two models differ
by {published} ms, and the simulated times by {simulated} ms. Published times have noise of that
size: on hosts with fast links, the published times of the same two models differ by {least:.2f} to
{most:.2f} ms."""


def page(report: Report[AccuracyRow]) -> str:
    """The page, in Markdown."""
    figures = report.figures
    head = _HEAD.format(chip=figures["chip"])
    predicted = [row for row in report.rows if row.predicted is not None]
    left = [row for row in report.rows if row.predicted is None]
    rule = "|".join("---" for _ in _COLUMNS)
    table = "\n".join([f"| {' | '.join(_COLUMNS)} |", f"|{rule}|", *map(_line, predicted)])
    tail = _TAIL.format(
        verdict=verdict_text(figures)[:1].upper() + verdict_text(figures)[1:],
        per_point=GOAL_PER_POINT,
        mean=GOAL_MEAN,
        missed=_why(predicted) if figures["worst_error"] > GOAL_PER_POINT else "Both are met.",
    )
    return head + table + "\n" + tail + "\n".join(map(_left_out, left)) + "\n"


def verdict_text(figures: Mapping[str, float]) -> str:
    """The worst and the mean error against the goals, and the means of the baselines."""
    worst, average = figures["worst_error"], figures["mean_error"]
    return (
        f"worst {worst:.3%} (goal {GOAL_PER_POINT:.0%}: {_met(worst <= GOAL_PER_POINT)}), "
        f"mean {average:.1%} (goal {GOAL_MEAN:.0%}: {_met(average <= GOAL_MEAN)}); multiplications "
        f"at peak {figures['mean_mac_error']:.1%}, roofline {figures['mean_roofline_error']:.1%}"
    )


def _met(holds: bool) -> str:
    return "met" if holds else "missed"


def _line(row: AccuracyRow) -> str:
    return (
        f"| {row.model} | {row.host} | {row.source} | {row.published} | {row.simulated:.3f} | "
        f"{row.fixed:.3f} | {row.predicted:.3f} | {row.error:+.1%} | "
        f"{row.calibration} | {row.mac_error:+.0%} | {row.roofline_error:+.1%} |"
    )


def _left_out(row: AccuracyRow) -> str:
    return f"| {row.model} | {row.source} | {row.published} | {row.message} |"


def _why(rows: list[AccuracyRow]) -> str:
    """How published and simulated differences of two models compare on the hosts that miss."""
    wrong = {row.host for row in rows if row.error is not None and abs(row.error) > GOAL_PER_POINT}
    pairs: dict[str, list[AccuracyRow]] = {}
    for row in rows:
        pairs.setdefault(row.host, []).append(row)
    published = {host: float(b.published) - float(a.published) for host, (a, b) in pairs.items()}
    simulated = {host: (b.simulated or 0) - (a.simulated or 0) for host, (a, b) in pairs.items()}
    fast = [published[host] for host in pairs if simulated[host] < _SLOW_DIFFERENCE]
    return _MISSED.format(
        hosts=", ".join(f"{host}" for host in pairs if host in wrong),
        published=", ".join(f"{published[host]:.2f}" for host in pairs if host in wrong),
        simulated=", ".join(f"{simulated[host]:.2f}" for host in pairs if host in wrong),
        least=min(fast),
        most=max(fast),
    )
