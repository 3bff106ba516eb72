"""`darwinn detect`: what is where in a picture."""

from __future__ import annotations

from darwinn_testbench.cli import options, pictures

EXAMPLES = """**Examples**

`darwinn detect street.jpg model_edgetpu.tflite --labels labels.txt --output boxes.png`

`darwinn detect *.jpg model_edgetpu.tflite --threshold 0.6 --output boxes`
"""


def command(
    images: pictures.Images,
    model: pictures.CompiledModel,
    labels: pictures.LabelFile = None,
    output: pictures.Output = None,
    fit: pictures.FitOption = None,
    mean: pictures.Mean = None,
    std: pictures.Std = None,
    threshold: pictures.Threshold = 0.4,
    top: pictures.Most = 100,
    companions: options.Companions = None,
    then: pictures.Then = None,
    strict: options.Strict = False,
    no_assumptions: options.NoAssumptions = False,
    json: options.Json = False,
) -> None:
    """Say what is where in pictures: the boxes of an SSD with its post-processing.

    The whole model runs: the chip's part on the simulated chip, the others in LiteRT. Pictures are
    prepared as pycoral does it; --fit, --mean and --std change that.
    """
    pictures.show(
        "detect",
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
