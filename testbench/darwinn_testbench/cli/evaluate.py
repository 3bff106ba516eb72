"""`darwinn evaluate`: how often a model is right on a data set, on the chip and in LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from darwinn_formats.extras import require
from rich.console import RenderableType

from darwinn_testbench.cli import options, pictures
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.evaluation.task import EvaluationRow, Setting
from darwinn_testbench.report import Report, Verdict, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import refuse_no_file
from darwinn_testbench.vision.labels import Labels, labels_of
from darwinn_testbench.vision.preparation import Fit

EXAMPLES = """**Examples**

`darwinn evaluate model_edgetpu.tflite validation --reference model.tflite --labels labels.txt`

`darwinn evaluate model_edgetpu.tflite validation.csv --journal results --html evaluation.html`

`darwinn evaluate model_edgetpu.tflite validation --scheduler tcp://head:8786`
"""

_SHOWN = 10
"""Pairs and pictures that the tables show; --html and --json have more."""

DataSet = Annotated[
    Path,
    argument(
        "DATASET", "A folder with a folder of pictures for each class, or a CSV with image,label."
    ),
]
Twin = Annotated[
    str | None,
    option("--reference -r MODEL", "The model before compilation (.tflite); it runs in LiteRT."),
]
Html = Annotated[
    Path | None,
    option(
        "--html PATH",
        "Also write a page: tables, and pictures of wrong answers and the worst differences.",
    ),
]
Timeout = Annotated[
    float,
    option("--timeout S", "Greatest number of seconds for eight pictures.", min=0.001, max=1e9),
]


def command(
    model: pictures.CompiledModel,
    dataset: DataSet,
    reference: Twin = None,
    labels: pictures.LabelFile = None,
    out: settings.Out = Path("evaluation"),
    jobs: settings.Jobs = None,
    scheduler: settings.Scheduler = None,
    fresh: settings.Fresh = False,
    fit: pictures.FitOption = None,
    mean: pictures.Mean = None,
    std: pictures.Std = None,
    companions: settings.Companions = (),
    strict: settings.Strict = False,
    assumptions: settings.Assumptions = True,
    timeout: Timeout = 3600.0,
    html: Html = None,
    json: settings.Json = False,
) -> None:
    """Measure top-1 and top-5 of a classifier on a data set, on the chip and in LiteRT.

    A class is a folder, named by its number or by its name in --labels. Without labels, folders
    whose names are no numbers are classes in the order of their names. With --reference, chip and
    LiteRT are compared picture by picture.

    Every few finished pictures are written to disk at once (--journal). If an evaluation is
    killed, the same command continues where it stopped. It evaluates pictures again if a file, an
    option or this program has changed.
    """
    # Imported here: no other command should wait for what starts processes.
    from darwinn_testbench.evaluation.page import page_of
    from darwinn_testbench.evaluation.run import evaluate

    require("PIL")
    if Path(model).is_dir():
        raise InputError(f"{model}: a folder, and no model: MODEL comes first, then DATASET")
    source = options.compiled_source_of(model)
    if not isinstance(source, str):
        raise InputError(f"{model}: a stream cannot be read by several processes: name a file")
    options.only_one_on_stdout(json=json, html=html)
    refuse_no_file(html)
    names = labels_of(labels, source)
    setting = Setting(
        source,
        reference,
        tuple(map(str, companions)),
        fit or Fit.STRETCH,
        pictures.normalisation_of(mean, std),
        strict,
        assumptions,
    )
    with progress_bar() as progress:
        report = evaluate(
            dataset,
            setting,
            out,
            labels=names,
            jobs=jobs,
            scheduler=scheduler,
            fresh=fresh,
            timeout=timeout,
            progress=progress,
        )
    if html is not None:
        write_result(html, page_of(report, names))
    finish(
        report,
        file=model,
        as_json=json,
        body=lambda found: _body(found, names) if str(html) != "-" else [],
        next_step=_next_step(report, reference, html),
        summary_on_stderr=str(html) == "-",
    )


def _body(report: Report[EvaluationRow], labels: Labels) -> Sequence[RenderableType]:
    from darwinn_testbench.evaluation import page
    from darwinn_testbench.evaluation.run import worst, wrong

    parts: list[RenderableType] = [*_by_order(report.figures["folders"])]
    parts += [wrapped(f"warning: {each}") for each in report.figures["warnings"]]
    parts += [table(page.accuracy_columns(), page.accuracies(report))]
    confusion = report.figures.get("confusion", ())
    if confusion:
        parts += ["", table(page.confusion_columns(labels), confusion[:_SHOWN])]
    rows = worst(report.rows)[:_SHOWN]
    if rows:
        parts += ["", table(page.worst_columns(labels), rows)]
    mistaken = () if report.figures["reference"] else wrong(report.rows)
    if mistaken:
        parts += ["", table(page.wrong_columns(labels), mistaken[:_SHOWN])]
    if len(mistaken) > _SHOWN:
        parts.append(
            f"and {len(mistaken) - _SHOWN:,} more wrong answers; --csv PATH lists all answers"
        )
    known, tasks = report.figures["taken_from_journal"], report.figures["tasks"]
    if known:
        parts.append(f"{known:,} of {tasks:,} tasks were finished earlier; --fresh does them again")
    failed = [row for row in report.rows if row.verdict is not Verdict.PASS]
    parts += [wrapped(f"{row.name}: {row.message}") for row in failed[:_SHOWN]]
    if len(failed) > _SHOWN:
        parts.append(f"and {len(failed) - _SHOWN:,} more; --json has them all")
    return parts


def _by_order(folders: Sequence[str]) -> list[str]:
    """Which class each folder is taken for, where its place decides."""
    if not folders:
        return []
    shown = [f"{number} {name}" for number, name in enumerate(folders[:_SHOWN])]
    more = len(folders) - len(shown)
    shown += [f"and {more:,} more; --json has them all"] if more else []
    return [wrapped(f"classes by the order of folders: {', '.join(shown)}")]


def _next_step(report: Report[EvaluationRow], reference: str | None, html: Path | None) -> str:
    failed = [row for row in report.rows if row.verdict is not Verdict.PASS]
    wrong = next((row.name for row in failed if row.verdict is Verdict.BAD_INPUT), None)
    if wrong is not None:
        return f"mend {wrong}, or its class; the same command asks again about it"
    if failed:
        return "the same command asks again about what could not be asked"
    if reference is None:
        return "--reference MODEL.tflite compares with LiteRT, picture by picture"
    if html is not None and str(html) != "-":
        return f"open {html} in a browser"
    return "--html PATH shows the pictures of the worst differences"
