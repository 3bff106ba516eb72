"""The pyuvm environment of the whole chip and the fast player: equal bytes and cycles."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.package import compile_network, edgetpu_model
from harness_runs import require_toolchain, run
from nightly import nightly_seed, note
from sample_files import sample
from whole_chip import INFERENCES, LONGEST, MODEL, RESETS, RESULTS, random_inputs

SEED = 1

PAGE = Path(__file__).parents[3] / "docs" / "rtl-own-test.md"


def played(compiled: Path, inferences: int) -> dict[str, list[object]]:
    """Cycles and outputs of parameter caching and of inferences, by the fast player."""
    from darwinn_rtl.chip.engine import RtlAccelerator

    (model,) = open_models(compiled)
    random, accelerator = Random(SEED), RtlAccelerator(seed=SEED)
    executables = [model.compiled.inference] * inferences
    if model.compiled.caching is not None:
        executables.insert(0, model.compiled.caching)
    results = [accelerator.run(each, random_inputs(each, random)) for each in executables]
    accelerator.close()
    return {
        "cycles": [result.statistics["rtl_cycles"] for result in results],
        "outputs": [
            {name: data.hex() for name, data in result.outputs.items()} for result in results
        ],
    }


def check(compiled: Path, inferences: int, work: Path) -> None:
    """Run a model through the environment and by the player, from the same seed."""
    require_toolchain()
    from darwinn_rtl.chip.environment import DESIGN

    results = work / "results.json"
    variables = {MODEL: compiled, RESULTS: results, INFERENCES: inferences}
    run(DESIGN, "chip_tests", "ModelThroughTheChip", work, seed=SEED, **variables)
    found = json.loads(results.read_text())
    assert found["outputs"][-1], "the inference has no output"
    assert found == played(compiled, inferences)


def test_a_sample_runs_as_on_the_player(tmp_path: Path) -> None:
    """Two inferences of the dense sample: every row on the way, and every cycle."""
    sample(tmp_path / "samples")
    check(tmp_path / "samples" / "dense_edgetpu.tflite", 2, tmp_path)


def test_dense_256_runs_as_on_the_player(corpus: Path, tmp_path: Path) -> None:
    """A program of the real compiler, by registers and interrupt lines."""
    check(corpus / "darwinn/dense_256_edgetpu.tflite", 1, tmp_path)


@pytest.mark.nightly
def test_convolutions_run_as_on_the_player(tmp_path: Path) -> None:
    """All tiles, the mesh, and rows on both channels of the ring."""
    sample(tmp_path / "samples")
    check(tmp_path / "samples" / "convolution_edgetpu.tflite", 3, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["dense_1024", "bright_16x16", "looming_64x64_3x3"])
def test_real_models_run_as_on_the_player(name: str, corpus: Path, tmp_path: Path) -> None:
    """Larger programs of the real compiler."""
    check(corpus / f"darwinn/{name}_edgetpu.tflite", 1, tmp_path)


def small(test: str, seed: int, work: Path, **variables: object) -> None:
    """A test of the environment with a network of two small layers."""
    require_toolchain()
    from darwinn_rtl.chip.environment import DESIGN

    network = random_dense((24, 20, 12), seed)
    model = work / "small_edgetpu.tflite"
    model.write_bytes(edgetpu_model(network, compile_network(network)))
    run(DESIGN, "chip_tests", test, work, seed=seed, **{MODEL: model, **variables})


def test_every_step_of_a_driver(tmp_path: Path) -> None:
    """Two programs queued, closed and opened again, reset while it works: nothing stays behind."""
    small("DriverSteps", SEED, tmp_path, **{LONGEST: 600, RESETS: 0})


def test_parts_are_replaced_by_the_factory(tmp_path: Path) -> None:
    """A sequence and a checker of somebody else take the place of ours."""
    small("ReplacedParts", SEED, tmp_path)


def test_the_test_in_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sequence and a checker of its own, as docs/rtl-own-test.md has it."""
    require_toolchain()
    from darwinn_rtl.chip.environment import DESIGN

    chapter = PAGE.read_text().partition("## With pyuvm\n")[2].partition("\n#")[0]
    test, how = re.findall(r"```python\n(.*?)```", chapter, re.DOTALL)
    compile(how, str(PAGE), "exec")
    assert 'simulate(DESIGN, "my_test", "MyTest"' in how
    (tmp_path / "my_chip_test.py").write_text(test)
    monkeypatch.syspath_prepend(tmp_path)
    run(DESIGN, "my_chip_test", "MyTest", tmp_path / "work", seed=SEED)
    assert "RowCarried" in (tmp_path / "work" / "MyTest.log").read_text()


@pytest.mark.nightly
def test_resets_at_any_moment(tmp_path: Path) -> None:
    """A hundred resets in the middle of something, each followed by a fresh start."""
    small("DriverSteps", nightly_seed(), tmp_path, **{LONGEST: 600, RESETS: 100})
    note("resets of the whole chip", 100, nightly_seed())


def test_tiles_that_two_builds_have_are_compiled_once() -> None:
    """What a precompiled header goes into differs with the folder, also for a compiler cache."""
    require_toolchain()
    from darwinn_rtl.build import build, library
    from darwinn_rtl.chip.environment import DESIGN
    from darwinn_rtl.chip.player import design

    folders = build(DESIGN).parent, library(design()).parent
    for folder in folders:
        module = folder / "module-tile"
        assert (module / "libVtile.a").exists()
        assert not list(module.glob("*.gch"))
