"""Pictures of a survey, as SVG text: its models side by side, and what depends on assumptions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from darwinn_formats.errors import printable
from matplotlib.axes import Axes

from darwinn_testbench.profile.picture import picture_of, pictures_of
from darwinn_testbench.report import Verdict
from darwinn_testbench.survey.field_values import KNOWN, REFUSED
from darwinn_testbench.survey.task import SurveyRow

_COLOURS = {Verdict.PASS: "#1a7f37", Verdict.RAN: "#0969da", Verdict.REFUSED: "#9a6700"}
_OTHER = "#b42318"
_COMPARED = {"exact": "#1a7f37", "policy": "#8ccb9b", "missing": "#d0d7de"}
MODELS_NOTE = (
    "Left the cycles of an inference. Right how the operators of the reference were compared: dark "
    "green byte for byte, light green by policy only, grey not at all; white: no reference."
)


def verdicts(rows: Sequence[SurveyRow]) -> str:
    """One bar: how many rows have which verdict."""
    with picture_of(0) as (axes, picture):
        left = 0
        for verdict in Verdict:
            count = sum(row.verdict is verdict for row in rows)
            if count:
                label = f"{count} {verdict}"
                axes.barh(0, count, 0.5, left, color=colour_of(verdict), label=label)
                left += count
        axes.set_yticks([])
        axes.set_xlim(0, left)
        axes.set_xlabel("rows")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(Verdict), frameon=False)
    return picture.getvalue()


def models(rows: Sequence[SurveyRow]) -> str:
    """For each row its verdict (the colour), its cycles, and how its operators were compared."""
    names = [printable(row.name) for row in rows]
    colours = [colour_of(row.verdict) for row in rows]
    compared = any(row.operators for row in rows)
    with pictures_of(len(rows) + 2, 1 + compared) as ((cycles, *operators), picture):
        cycles.barh(range(len(rows)), [row.cycles or 0 for row in rows], color=colours)
        if any(row.cycles for row in rows):
            cycles.set_xscale("log")
        cycles.set_xlabel("cycles, approximate; colour: the verdict")
        cycles.set_yticks(range(len(rows)), names, parse_math=False)
        for label, colour in zip(cycles.get_yticklabels(), colours, strict=True):
            label.set_color(colour)
        cycles.set_ylim(len(rows) - 0.4, -0.6)
        for axes in operators:
            _compared(axes, rows)
    return picture.getvalue()


def _compared(axes: Axes, rows: Sequence[SurveyRow]) -> None:
    left = np.zeros(len(rows))
    for name, colour in _COMPARED.items():
        width = np.array([_share(row, name) for row in rows])
        axes.barh(range(len(rows)), width, left=left, color=colour)
        left += width
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the operators")


def dependence(rows: Sequence[SurveyRow]) -> str:
    """Which rows (down) hold which values that are assumed or refused (across); empty if none."""
    held = [
        (printable(row.name), each) for row in rows for each in row.values if each.grade != KNOWN
    ]
    if not held:
        return ""
    files = list(dict.fromkeys(name for name, _ in held))
    fields = sorted({f"{each.instruction}.{each.field}" for _, each in held})
    with picture_of(len(files) + 8) as (axes, picture):
        for name, each in held:
            x = fields.index(f"{each.instruction}.{each.field}")
            colour = _OTHER if each.grade == REFUSED else _COLOURS[Verdict.REFUSED]
            axes.plot(x, files.index(name), "s", color=colour, markersize=7)
        axes.set_xticks(range(len(fields)), fields, rotation=45, ha="left")
        axes.set_yticks(range(len(files)), files, parse_math=False)
        axes.xaxis.tick_top()
        axes.set_xlim(-0.5, max(len(fields), 12) - 0.5)
        axes.set_ylim(len(files) - 0.5, -0.5)
        axes.grid(alpha=0.3)
    return picture.getvalue()


def colour_of(verdict: Verdict) -> str:
    """The colour of a verdict, as the page has it."""
    return _COLOURS.get(verdict, _OTHER)


def _share(row: SurveyRow, name: str) -> float:
    operators = row.operators or {}
    return 100 * operators.get(name, 0) / max(sum(operators.values()), 1)
