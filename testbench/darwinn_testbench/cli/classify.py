"""`darwinn classify`: what is in a picture."""

from __future__ import annotations

from darwinn_testbench.cli import options, pictures

EXAMPLES = """**Examples**

`darwinn classify cat.png model_edgetpu.tflite --labels labels.txt`

`darwinn classify *.jpg model_edgetpu.tflite --json`

`darwinn classify cat.png model_edgetpu.tflite --fit crop --mean 127.5 --std 127.5`
"""


def command(
    images: pictures.Images,
    model: pictures.CompiledModel,
    labels: pictures.LabelFile = None,
    output: pictures.Output = None,
    fit: pictures.FitOption = None,
    mean: pictures.Mean = None,
    std: pictures.Std = None,
    threshold: pictures.Threshold = 0.0,
    top: pictures.Most = 5,
    companions: options.Companions = None,
    then: pictures.Then = None,
    strict: options.Strict = False,
    no_assumptions: options.NoAssumptions = False,
    json: options.Json = False,
) -> None:
    """Say what is in pictures: the classes of the highest scores.

    The whole model runs: the chip's part on the simulated chip, the others in LiteRT. Pictures are
    prepared as pycoral does it; --fit, --mean and --std change that.
    """
    pictures.show(
        "classify",
        images,
        model,
        labels=labels,
        output=output,
        fit=fit,
        mean=mean,
        std=std,
        threshold=threshold,
        most=top,
        companions=companions,
        then=then,
        strict=strict,
        no_assumptions=no_assumptions,
        json=json,
    )
