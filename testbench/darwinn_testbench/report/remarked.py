"""Turn remarks about the files of a report into its warnings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import ParamSpec, TypeVar

from darwinn_formats.remarks import listening

from darwinn_testbench.report.result import Report, Row

P = ParamSpec("P")
RowKind = TypeVar("RowKind", bound=Row)


def remarked(make: Callable[P, Report[RowKind]]) -> Callable[P, Report[RowKind]]:
    """``make``, with the remarks about its files in the ``warnings`` of its report."""

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Report[RowKind]:
        with listening() as remarks:
            report = make(*args, **kwargs)
        if not remarks:
            return report
        warnings = [*report.figures.get("warnings", ()), *remarks]
        return replace(report, figures={**report.figures, "warnings": warnings})

    return made
