"""Charts of a survey: its models side by side, and what depends on assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from darwinn_testbench.pages import Chart, Columns
from darwinn_testbench.pages.charts import bars, names_down
from darwinn_testbench.report import Verdict
from darwinn_testbench.survey.field_values import KNOWN, REFUSED
from darwinn_testbench.survey.task import SurveyRow

_VERDICTS = {Verdict.PASS: "#1a7f37", Verdict.RAN: "#0969da", Verdict.REFUSED: "#9a6700"}
_OTHER = "#b42318"
_COMPARED = {
    "exact": ("byte for byte", "#1a7f37"),
    "policy": ("by policy only", "#8ccb9b"),
    "missing": ("not at all", "#8a8f98"),
}
_COLOURS = {
    **{str(verdict): _VERDICTS.get(verdict, _OTHER) for verdict in Verdict},
    **dict(_COMPARED.values()),
}
MODELS_NOTE = (
    "First the cycles of an inference, approximate, coloured by the verdict. Then how the "
    "operators of the reference were compared; no bar: no reference."
)


def key_of(row: SurveyRow) -> str:
    """What all parts of the page that are about the row have."""
    return f"row {row.name}"


def verdicts(rows: Sequence[SurveyRow]) -> Chart:
    """One bar: how many rows have which verdict."""
    counts = {
        str(verdict): sum(row.verdict is verdict for row in rows)
        for verdict in Verdict
        if any(row.verdict is verdict for row in rows)
    }
    columns: Columns = {
        "name": ["rows"] * len(counts),
        "part": list(counts),
        "value": [*counts.values()],
    }
    return bars(columns, unit="rows", label="verdicts", parts=list(counts), colours=_COLOURS)


def models(rows: Sequence[SurveyRow]) -> list[Chart]:
    """For each row its verdict (the colour), its cycles, and how its operators were compared."""
    timed = [row for row in rows if row.cycles]
    cycles: Columns = {
        "name": [row.name for row in timed],
        "value": [row.cycles for row in timed],
        "part": [str(row.verdict) for row in timed],
        "key": [key_of(row) for row in timed],
    }
    parts = list(dict.fromkeys(cycles["part"]))
    label = "cycles of each model"
    found = [bars(cycles, unit="cycles", label=label, parts=parts, colours=_COLOURS, log=True)]
    compared = [
        (row, text, _share(row, name))
        for row in rows
        for name, (text, _) in _COMPARED.items()
        if _share(row, name)
    ]
    shares: Columns = {
        "name": [row.name for row, _, _ in compared],
        "value": [share for _, _, share in compared],
        "part": [text for _, text, _ in compared],
        "key": [key_of(row) for row, _, _ in compared],
    }
    parts = [text for text, _ in _COMPARED.values()]
    label = "how operators were compared"
    more = bars(shares, unit="% of the operators", label=label, parts=parts, colours=_COLOURS)
    return [*(found if timed else ()), *([more] if compared else ())]


def dependence(rows: Sequence[SurveyRow]) -> Chart | None:
    """Which rows (down) hold which values that are assumed or refused (across); None if none."""
    held = [(row, each) for row in rows for each in row.values if each.grade != KNOWN]
    if not held:
        return None
    columns: Columns = {
        "name": [row.name for row, _ in held],
        "value": [f"{each.instruction}.{each.field}" for _, each in held],
        "grade": ["refused" if each.grade == REFUSED else "assumed" for _, each in held],
        "key": [key_of(row) for row, _ in held],
    }
    across = {"orient": "top", "labelAngle": -45, "grid": True}
    colours = {"domain": ["assumed", "refused"], "range": [_VERDICTS[Verdict.REFUSED], _OTHER]}
    spec = {
        "height": {"step": 17},
        "mark": {"type": "square", "size": 60, "opacity": 1},
        "encoding": {
            "y": names_down("name"),
            "x": {"field": "value", "type": "nominal", "title": None, "axis": across},
            "color": {"field": "grade", "type": "nominal", "scale": colours},
            "tooltip": [
                {"field": "name", "title": ""},
                {"field": "value", "title": "value"},
                {"field": "grade", "title": "is"},
            ],
        },
    }
    return Chart(spec, columns, label="values that are not known")


def _share(row: SurveyRow, name: str) -> float:
    operators = row.operators or {}
    return 100 * operators.get(name, 0) / max(sum(operators.values()), 1)
