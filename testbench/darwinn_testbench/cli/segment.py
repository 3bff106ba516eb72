"""`darwinn segment`: which pixel of a picture is what."""

from __future__ import annotations

from darwinn_testbench.cli import options, pictures

EXAMPLES = """**Examples**

`darwinn segment dog.jpg model_edgetpu.tflite --labels labels.txt --output mask.png`

`darwinn segment dog.jpg model_edgetpu.tflite --fit letterbox`
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
    top: pictures.Most = 100,
    companions: options.Companions = None,
    then: pictures.Then = None,
    strict: options.Strict = False,
    no_assumptions: options.NoAssumptions = False,
    json: options.Json = False,
) -> None:
    """Say which pixels of pictures are of which class.

    The whole model runs: the chip's part on the simulated chip, the others in LiteRT. Pictures are
    prepared as pycoral does it; --fit, --mean and --std change that.
    """
    pictures.show(
        "segment",
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
