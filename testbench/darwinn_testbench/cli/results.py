"""Options that also write a result for servers, the same for every command that judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from darwinn_testbench.cli.options import only_one_on_stdout
from darwinn_testbench.report import Report, Row, github, to_junit, to_markdown, to_sarif
from darwinn_testbench.report.files import write_result
from darwinn_testbench.request import settings
from darwinn_testbench.request.setting import Setting, Use

FORMS: Mapping[str, Callable[[Sequence[Report[Row]]], bytes]] = {
    "junit": to_junit,
    "sarif": to_sarif,
    "markdown": to_markdown,
}
"""What each option writes."""

JUnit = Annotated[
    Path | None,
    Setting("--junit PATH", "Also write the rows as JUnit XML; - is stdout.", use=Use.RESULT),
]
Sarif = Annotated[
    Path | None,
    Setting(
        "--sarif PATH", "Also write the rows that did not pass as SARIF 2.1.0.", use=Use.RESULT
    ),
]
Markdown = Annotated[
    Path | None,
    Setting("--markdown PATH", "Also write the verdicts as a Markdown table.", use=Use.RESULT),
]
GitHub = Annotated[
    bool,
    Setting(
        "--github", "Also print annotations for GitHub Actions, and append to the step's summary."
    ),
]


@dataclass(frozen=True)
class Results:
    """What the options of one command line ask for.

    Raises:
        InputError: two results would go to standard output.
    """

    junit: JUnit = None
    sarif: Sarif = None
    markdown: Markdown = None
    github: GitHub = False
    json: settings.Json = False

    def __post_init__(self) -> None:
        self.refuse_beside()

    def refuse_beside(self, **others: object) -> None:
        """Refuse two results on standard output, of these and of ``others``, by option.

        Raises:
            InputError: there are two.
        """
        files = {name: getattr(self, name) for name in FORMS}
        only_one_on_stdout(json=self.json, **others, github=self.github, **files)

    def write(self, reports: Sequence[Report[Row]]) -> None:
        """Write every result that is asked for.

        Raises:
            OSError: a file cannot be written.
        """
        for error in self.attempt(reports):
            raise error

    def attempt(self, reports: Sequence[Report[Row]]) -> Iterator[OSError]:
        """Write every result that is asked for; the errors of those that cannot be written."""
        for write in self._writers(reports):
            try:
                write()
            except BrokenPipeError:
                raise
            except OSError as error:
                yield error

    def _writers(self, reports: Sequence[Report[Row]]) -> Iterator[Callable[[], object]]:
        for name, form in FORMS.items():
            target = getattr(self, name)
            if target is not None:
                yield partial(write_result, target, form(reports))
        if self.github:
            for line in github.workflow_commands(reports):
                yield partial(typer.echo, line)
            yield partial(github.append_summary, reports)
