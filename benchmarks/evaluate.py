"""How many pictures a second `darwinn evaluate` asks about, and where the time goes.

    python -m benchmarks.evaluate [--repeat N] [--pictures N] [--jobs N,N] [--only WORD]

Draws a data set (patches and noise, 800 x 600, JPEG) and asks classifiers of the corpus about it,
on the chip and in LiteRT on the model before compilation. For each: milliseconds of a picture, the
best of N, for reading and preparing it, on the chip, and in LiteRT; then pictures a second of whole
evaluations with one worker and with two, whose start is in it, and seconds of processors for each
picture, of all processes together. Nothing is bounded: this is about proportions.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_testbench.chip.images import open_image
from darwinn_testbench.chip.pipeline import Segment
from darwinn_testbench.chip.whole import open_segment, open_uncompiled
from darwinn_testbench.evaluation.run import evaluate
from darwinn_testbench.evaluation.task import Setting
from darwinn_testbench.vision.preparation import image_port, prepare
from PIL import Image

from benchmarks.common import (
    compiled,
    corpus,
    machine_and_load,
    parser,
    positive,
    seconds_of,
    with_word,
)

MODELS = ("mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.5_160_quant", "mobilenet_v2_1.0_224_quant")
CLASSES = 4
SIZE = (800, 600)


def counts(text: str) -> list[int]:
    """Several numbers of workers."""
    return [positive(each) for each in text.split(",")]


def draw(folder: Path, count: int) -> None:
    """``count`` pictures in folders of classes 0 to 3: large patches and noise, by a seed."""
    random = np.random.default_rng(0)
    for number in range(count):
        place = folder / str(number % CLASSES)
        place.mkdir(parents=True, exist_ok=True)
        patches = random.integers(0, 256, (6, 8, 3)).astype(np.uint8)
        pixels = np.asarray(Image.fromarray(patches).resize(SIZE, Image.Resampling.BICUBIC))
        noise = random.integers(-12, 13, pixels.shape)
        noisy = np.clip(pixels + noise, 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(place / f"{number}.jpg", quality=90)


def parts(setting: Setting, picture: Path, repeat: int) -> tuple[float, float, float]:
    """Milliseconds of one picture: read and prepared, on the chip, in LiteRT."""
    assert setting.reference is not None
    chip, reference = open_segment(setting.model), open_uncompiled(setting.reference)
    port = image_port(chip.ports, chip.file)

    def prepared() -> AnyArray:
        return prepare(open_image(picture, port.shape[-1]), port, setting.fit)[0]

    tensor = prepared()
    spent = [min(seconds_of(prepared, repeat))]
    spent += [inference(each, tensor, repeat) for each in (chip, reference)]
    preparing, on_chip, in_litert = (1000 * each for each in spent)
    return preparing, on_chip, in_litert


def inference(model: Segment, tensor: AnyArray, repeat: int) -> float:
    """Seconds of an inference, the best of some; the first one prepares."""
    (port,) = model.ports
    model.infer({port.name: tensor})
    return min(seconds_of(lambda: model.infer({port.name: tensor}), repeat))


def whole(setting: Setting, dataset: Path, jobs: int) -> tuple[float, float]:
    """Seconds of an evaluation with ``jobs`` workers, and those of processors in it."""
    with tempfile.TemporaryDirectory() as out:
        before, begin = _processors(), time.perf_counter()
        report = evaluate(dataset, setting, out, jobs=jobs)
        assert all(row.chip and row.reference for row in report.rows)
        return time.perf_counter() - begin, _processors() - before


def _processors() -> float:
    """Seconds of processors, of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> int:
    """Measure each model."""
    options_of: argparse.ArgumentParser = parser(__doc__)
    options_of.add_argument("--pictures", type=positive, default=64, metavar="N")
    options_of.add_argument("--jobs", type=counts, default="1,2", metavar="N,N")
    options_of.add_argument("--only", default="", metavar="WORD")
    options = options_of.parse_args()
    models = with_word(options.only, MODELS)
    print(machine_and_load())
    print(
        f"{options.pictures} pictures of {SIZE[0]} x {SIZE[1]}; milliseconds of one, best of "
        f"{options.repeat}; then pictures/s (processor seconds for each)"
    )
    heads = "".join(f"{f'{each} worker' + 's' * (each > 1):>18}" for each in options.jobs)
    print(f"{'model':<30}{'prepare':>9}{'chip':>9}{'LiteRT':>9}{heads}")
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder)
        draw(dataset, options.pictures)
        for name in models:
            setting = Setting(str(compiled(name)), str(corpus("tflite") / f"{name}.tflite"))
            line = f"{name:<30}"
            line += "".join(
                f"{each:>9.1f}" for each in parts(setting, dataset / "0" / "0.jpg", options.repeat)
            )
            for count in options.jobs:
                seconds, used = whole(setting, dataset, count)
                rate = options.pictures / seconds
                line += f"{f'{rate:.1f} ({used / options.pictures:.3f})':>18}"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
