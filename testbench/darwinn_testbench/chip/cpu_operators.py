"""The operators of a compiled model that the compiler has left to the CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from darwinn_formats import tflite
from darwinn_formats.darwinn import DarwinnFile
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR

from darwinn_testbench.report import Column


@dataclass(frozen=True)
class CpuOperator:
    """An operator that the CPU runs: ``operator`` is its number in the compiled graph.

    ``inputs`` and ``outputs`` are names of tensors, constants left out; ``shape`` and ``dtype`` are
    those of the first output, as the file says them.
    """

    operator: int
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.operator} {self.name}"


CPU_COLUMNS: tuple[Column[CpuOperator], ...] = (
    Column("on the CPU", str),
    Column("reads", lambda each: ", ".join(each.inputs), may_shrink=True),
    Column("gives", lambda each: ", ".join(each.outputs), may_shrink=True),
    Column(
        "result", lambda each: f"{each.dtype} {'x'.join(map(str, each.shape))}".strip(), "right"
    ),
)


def cpu_operators(file: DarwinnFile) -> tuple[CpuOperator, ...]:
    """The operators of a compiled model that the CPU runs, in their order; none of a package."""
    return () if file.shell is None else operators_on_cpu(file.shell)


def operators_on_cpu(shell: tflite.Model) -> tuple[CpuOperator, ...]:
    """The operators of a model's first graph that are not the chip's, in their order."""
    if not shell.subgraphs:
        return ()
    graph = shell.subgraphs[0]
    found = []
    for number, operator in enumerate(graph.operators):
        name = name_of_operator(shell, operator)
        if name == CUSTOM_OPERATOR:
            continue
        outputs = [graph.tensors[k] for k in operator.outputs if k >= 0]
        inputs = [graph.tensors[k] for k in operator.inputs if k >= 0]
        dtype = tflite.DTYPES.get(outputs[0].type) if outputs else None
        found.append(
            CpuOperator(
                number,
                name,
                tuple(each.name for each in inputs if not shell.buffers[each.buffer].data),
                tuple(each.name for each in outputs),
                outputs[0].shape if outputs else (),
                "" if dtype is None else str(dtype),
            )
        )
    return tuple(found)


def name_of_operator(model: tflite.Model, operator: tflite.Operator) -> str:
    """CONV_2D and so on, or the name of a custom operator."""
    code = model.code(operator)
    is_custom = code.operator is tflite.BuiltinOperator.CUSTOM
    return code.custom_code if is_custom else code.operator.name


def named_operators(operators: Sequence[CpuOperator]) -> str:
    """Their kinds and how many there are of each, for people."""
    counts = Counter(each.name for each in operators)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.items())
