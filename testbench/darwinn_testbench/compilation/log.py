"""The log beside a compiled model: the fields that scripts parse, in the vendor's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from darwinn_testbench.compilation.outcome import CompileRow
from darwinn_testbench.report import Report

_UNITS = ("B", "KiB", "MiB", "GiB")
_STEP = 1024


def size(count: int) -> str:
    """Bytes as the log has them: 0.00B, 3.33MiB."""
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.2f}{_UNITS[unit]}"


def log_of(report: Report[CompileRow], output: str, log: str, *, operations: bool = True) -> str:
    """The text of the log; ``operations``: with the table of operators."""
    lines = [*_head(report, output, log)]
    if operations:
        lines += ["", *_operations(report)]
    return "\n".join(lines) + "\n"


def _head(report: Report[CompileRow], output: str, log: str) -> Iterator[str]:
    figures = report.figures
    yield f"Edge TPU Compiler version {figures['compiler']}"
    yield ""
    yield f"Model compiled successfully in {1000 * figures['seconds']:.0f} ms."
    yield ""
    yield f"Input model: {report.file}"
    yield f"Input size: {size(figures['input_bytes'])}"
    yield f"Output model: {output}"
    yield f"Output size: {size(figures['output_bytes'])}"
    yield f"On-chip memory used for caching model parameters: {size(figures['cached_bytes'])}"
    remaining = size(figures["remaining_bytes"])
    yield f"On-chip memory remaining for caching model parameters: {remaining}"
    streamed = size(figures["streamed_bytes"])
    yield f"Off-chip memory used for streaming uncached model parameters: {streamed}"
    yield f"Number of Edge TPU subgraphs: {figures['subgraphs']}"
    yield f"Total number of operations: {len(report.rows)}"
    yield f"Operation log: {log}"
    if figures["operators_on_cpu"]:
        yield ""
        yield (
            "Model successfully compiled but not all operations are supported by the Edge TPU. A "
            "percentage of the model will instead run on the CPU, which is slower."
        )
        yield f"Number of operations that will run on Edge TPU: {figures['operators_on_chip']}"
        yield f"Number of operations that will run on CPU: {figures['operators_on_cpu']}"
    yield ""
    yield f"Verification: {report.verdict.value}: {report.headline}"


def _operations(report: Report[CompileRow]) -> Iterator[str]:
    yield f"{'Operator':<30} {'Count':<10} Status"
    yield ""
    counts = Counter((row.operator, row.status) for row in report.rows)
    for (operator, status), count in counts.items():
        yield f"{operator:<30} {count:<10} {status}"
    reasons = [row for row in report.rows if row.reason]
    if reasons:
        yield ""
        yield "Reasons:"
        for row in reasons:
            yield f"{row.number} {row.operator}: {row.reason}"
