"""How often compiled classifiers choose the class that LiteRT chooses, and by what logits differ.

    python -m benchmarks.classifiers [--inputs N] [--only WORD]

Reads the models from the folder that DARWINN_CORPUS names. Each is run on the simulated chip on N
seeded inputs of three kinds: uniform noise, smooth areas with a little noise as in photographs, and
coloured shapes on a shaded ground. Every output must equal the chip's arithmetic on every byte; its
logits are then compared with LiteRT's. "clear" counts the inputs whose class LiteRT decides by more
than two steps of the logits, with the share of them of the same class; "lead" is the greatest
one of a class that differs. Exits with 1 if an output differs, or if a clear class does.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from darwinn_reference.tflite.model import CpuModel
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from numpy.typing import NDArray

from benchmarks.common import compiled, corpus, positive, with_word

CLASSIFIERS = (
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_0.25_128_quant_2019",
    "mobilenet_v1_0.5_160_quant",
    "mobilenet_v2_1.0_224_quant",
)
CLEAR = 2
"""Steps of the logits by which a class must lead to be clear."""

Image = NDArray[np.uint8]
Maker = Callable[[np.random.Generator, tuple[int, ...]], Image]


def noise(random: np.random.Generator, shape: tuple[int, ...]) -> Image:
    return random.integers(0, 256, shape, np.uint8)


def smooth(random: np.random.Generator, shape: tuple[int, ...]) -> Image:
    """A few waves in each colour, and noise of a few steps."""
    _, height, width, channels = shape
    rows, columns = np.mgrid[0:height, 0:width]
    image = np.full(shape, 128.0) + random.normal(0, 4, shape)
    for channel in range(channels):
        for _ in range(4):
            down, across = random.uniform(-3, 3, 2)
            wave = down * rows / height + across * columns / width + random.uniform()
            image[0, :, :, channel] += random.uniform(10, 40) * np.sin(2 * np.pi * wave)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def shapes(random: np.random.Generator, shape: tuple[int, ...]) -> Image:
    """Discs and boxes of one colour each, before a ground that is shaded from top to bottom."""
    _, height, width, channels = shape
    rows, columns = np.mgrid[0:height, 0:width]
    ground = random.uniform(60, 200, channels)
    image = ground + np.linspace(-50, 50, height)[:, None, None] + np.zeros((height, width, 1))
    for _ in range(int(random.integers(2, 7))):
        row, column = random.uniform(0, 1, 2) * (height, width)
        size = random.uniform(0.08, 0.35) * height
        down, across = np.abs(rows - row), np.abs(columns - column)
        inside = np.hypot(down, across) if random.integers(2) else np.maximum(down, across)
        image[inside < size] = random.uniform(0, 255, channels)
    image = image + random.normal(0, 2, image.shape)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)[None]


KINDS: dict[str, Maker] = {"noise": noise, "smooth": smooth, "shapes": shapes}


@dataclass
class Tally:
    """What was counted over the inputs of one kind."""

    same: int = 0
    clear: int = 0
    clear_same: int = 0
    lead: int = 0
    wrong: int = 0
    gaps: Counter[int] = field(default_factory=Counter)

    def add(self, chip: NDArray[Any], litert: NDArray[Any]) -> None:
        """Count one input by its logits; equal logits count for the class."""
        *_, second, first = np.sort(litert).tolist()
        same = bool(litert[np.argmax(chip)] == first or chip[np.argmax(litert)] == chip.max())
        self.same += same
        self.clear += first - second > CLEAR
        self.clear_same += same and first - second > CLEAR
        self.lead = max(self.lead, 0 if same else first - second)
        self.gaps.update(np.abs(chip.astype(int) - litert.astype(int)).tolist())

    def text(self, inputs: int) -> str:
        total = self.gaps.total()
        shares = [100 * self.gaps[gap] / total for gap in range(3)]
        rest = 100 - sum(shares)
        spread = " ".join(f"{share:5.1f}" for share in (*shares, rest))
        return (
            f"{100 * self.same / inputs:5.0f} {self.clear:5} "
            f"{100 * self.clear_same / max(1, self.clear):6.0f} {self.lead:5}  {spread} "
            f"{max(self.gaps):4}"
        )


def measure(name: str, maker: Maker, inputs: int) -> Tally:
    """Run a model on ``inputs`` images."""
    (model,) = open_models(compiled(name))
    cpu = CpuModel.load(corpus("tflite") / f"{name}.tflite", model.compiled.inference)
    session = Session(model)
    (port,) = model.ports
    (output,) = cpu.network.outputs
    logits = next(each for each in cpu.network.operators if each.name == "SOFTMAX").inputs[0]
    tally = Tally()
    for seed in range(inputs):
        image = maker(np.random.default_rng(seed), port.shape)
        (given,) = session.infer({port.name: image}).outputs.values()
        chip, litert = cpu.chip.run([image]), cpu.litert.run([image])
        tally.wrong += int(np.count_nonzero(given.ravel() != chip[output].ravel()))
        tally.add(chip[logits].ravel(), litert[logits].ravel())
    return tally


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--inputs", type=positive, default=50, metavar="N")
    arguments.add_argument("--only", default="", metavar="WORD", help="models with this word")
    options = arguments.parse_args()
    chosen = with_word(options.only, CLASSIFIERS)
    corpus("darwinn")
    print(
        f"{'model':<34} {'inputs':<7} {'top-1':>5} {'clear':>5} {'top-1':>6} {'lead':>5}  "
        f"{'=':>5} {'by 1':>5} {'by 2':>5} {'more':>5} {'most':>4}"
    )
    failed = False
    for name in chosen:
        for kind, maker in KINDS.items():
            tally = measure(name, maker, options.inputs)
            bad = bool(tally.wrong) or tally.clear_same < tally.clear
            failed |= bad
            note = f"  {tally.wrong} WRONG BYTES" if tally.wrong else "  FAILED" if bad else ""
            print(f"{name:<34} {kind:<7} {tally.text(options.inputs)}{note}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
