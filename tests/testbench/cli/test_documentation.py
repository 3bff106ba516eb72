"""docs/cli*.md names every key that --json prints, and docs/api.md holds code that works."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from darwinn_testbench.accuracy.measured import CalibrationRow
from darwinn_testbench.accuracy.predict import AccuracyRow
from darwinn_testbench.chip.bit_coverage import CoverageRow
from darwinn_testbench.chip.cpu_operators import CpuOperator
from darwinn_testbench.chip.cpu_time import CpuTime
from darwinn_testbench.chip.cycles import CyclesRow
from darwinn_testbench.chip.disassembly import ChunkRow
from darwinn_testbench.chip.dma_check import DmaFigures
from darwinn_testbench.chip.execution import RunRow, TapFigures
from darwinn_testbench.chip.inspection import ExecutableRow, LayerFigures
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.compare import Comparison
from darwinn_testbench.comparison.operator_coverage import OperatorFigures, OperatorRecord
from darwinn_testbench.compiler import SampleRow
from darwinn_testbench.difference.difference import AspectFigures, FileFigures
from darwinn_testbench.difference.rows import DifferenceRow
from darwinn_testbench.evaluation.run import Accuracy, Confusion
from darwinn_testbench.evaluation.task import EvaluationRow
from darwinn_testbench.explain.advice import Advice
from darwinn_testbench.explain.crossing import Crossing, Piece
from darwinn_testbench.explain.explain import ExplainRow
from darwinn_testbench.kernels import KernelsRow
from darwinn_testbench.layers.check import TensorRow
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.layers.rows import LayerRow, ParameterRange
from darwinn_testbench.layers.view import PortFigures, ScalarCoreFigures
from darwinn_testbench.profile.profile import ProfileFigures, ProfileRow, UnitFigures
from darwinn_testbench.programs.contents import FunctionRow, PartRow
from darwinn_testbench.regression.baseline import MetricRow
from darwinn_testbench.regression.task import Outcome
from darwinn_testbench.report import EXIT_CODES
from darwinn_testbench.survey.field_values import FieldValues
from darwinn_testbench.survey.plan import LeftOut
from darwinn_testbench.survey.task import SurveyRow
from darwinn_testbench.vision.answers import Answer, Box, Keypoint, Person, Region
from darwinn_testbench.vision.beside import Agreement
from darwinn_testbench.vision.look import PictureRow

DOCUMENTS = Path(__file__).parents[3] / "docs"
PRINTED = (
    AccuracyRow,
    Agreement,
    CalibrationRow,
    CyclesRow,
    AspectFigures,
    DifferenceRow,
    FileFigures,
    Advice,
    Crossing,
    ExplainRow,
    Piece,
    Accuracy,
    Confusion,
    EvaluationRow,
    Answer,
    Box,
    ChunkRow,
    Comparison,
    CoverageRow,
    CpuOperator,
    CpuTime,
    Divergence,
    DmaFigures,
    ExecutableRow,
    FieldValues,
    FunctionRow,
    KernelsRow,
    Keypoint,
    LayerFigures,
    LayerRow,
    LeftOut,
    MetricRow,
    Outcome,
    OperatorFigures,
    OperatorRecord,
    OutputRow,
    ParameterRange,
    PartRow,
    Person,
    PictureRow,
    PortFigures,
    ProfileFigures,
    ProfileRow,
    Region,
    RunRow,
    SampleRow,
    ScalarCoreFigures,
    SurveyRow,
    TapFigures,
    TensorRow,
    UnitFigures,
)


@pytest.mark.parametrize("row", PRINTED)
def test_every_key_is_documented(row: type) -> None:
    text = "".join(page.read_text() for page in DOCUMENTS.glob("cli*.md"))
    words = set(re.findall(r"`(\w+)`", text))
    printed = {item.name for item in dataclasses.fields(row) if item.metadata.get("json", True)}
    assert printed - words == set()


def test_exit_codes_are_documented() -> None:
    text = (DOCUMENTS / "cli.md").read_text()
    section = text.split("## Exit codes and verdicts", 1)[1].split("\n## ", 1)[0]
    table = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", section, re.MULTILINE)
    # From best to worst, as the verdicts are ordered; none is left out, none is there that is none.
    assert table == [(str(verdict), str(code)) for verdict, code in EXIT_CODES.items()]


def test_examples_of_the_library_run(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All code of docs/api.md, in order, on a real model under the names that it uses."""
    import numpy as np
    from PIL import Image

    name = "gabor_64x64_7k_4o_2s"
    (tmp_path / "model_edgetpu.tflite").symlink_to(corpus / "darwinn" / f"{name}_edgetpu.tflite")
    (tmp_path / "model.tflite").symlink_to(corpus / "tflite" / f"{name}.tflite")
    Image.new("L", (64, 64), 77).save(tmp_path / "photo.png")
    monkeypatch.chdir(tmp_path)
    text = (DOCUMENTS / "api.md").read_text()
    values = {"actual": np.zeros(4, np.uint8), "expected": np.ones(4, np.uint8)}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/api.md", "exec"), values)
    assert (tmp_path / "result.xml").exists()


ROOT = DOCUMENTS.parent
PAGES = [*DOCUMENTS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
_PLACE = re.compile(r"\bdarwinn_(formats|sim|testbench)((?:[./]\w+)+)")
_TEST = re.compile(r"\btests/[\w/]+\.(?:py|json)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_modules_and_tests_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    tests = [name for name in _TEST.findall(text) if "UNIT" not in name]
    missing = [name for name in tests if not (ROOT / name).exists()]
    for place in _PLACE.finditer(text):
        if not _is_there(place[1], re.split("[./]", place[2])[1:]):
            missing.append(place[0])
    assert missing == []


def _is_there(package: str, parts: list[str]) -> bool:
    """Whether the parts lead to a folder or a file of a package, or to a name in it."""
    at = ROOT / package / f"darwinn_{package}"
    for k, part in enumerate(parts):
        file = at / f"{part}.py"
        if file.exists():
            named = parts[k + 1 :]
            return not named or named[0] == "py" or named[0] in file.read_text()
        if not (at / part).is_dir():
            source = at / "__init__.py"
            return any(at.glob(f"{part}.*")) or (source.exists() and part in source.read_text())
        at /= part
    return True
