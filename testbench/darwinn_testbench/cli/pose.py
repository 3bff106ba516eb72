"""`darwinn pose`: where people are in a picture."""

from __future__ import annotations

from darwinn_testbench.cli import options, pictures

EXAMPLES = """**Examples**

`darwinn pose people.jpg model_edgetpu.tflite --output people.png`

`darwinn pose *.jpg model_edgetpu.tflite --json`
"""


def command(
    images: pictures.Images,
    model: pictures.CompiledModel,
    labels: pictures.LabelFile = None,
    output: pictures.Output = None,
    fit: pictures.FitOption = None,
    mean: pictures.Mean = None,
    std: pictures.Std = None,
    threshold: pictures.Threshold = 0.2,
    top: pictures.Most = 100,
    companions: options.Companions = None,
    then: pictures.Then = None,
    strict: options.Strict = False,
    no_assumptions: options.NoAssumptions = False,
    json: options.Json = False,
) -> None:
    """Say where people are in pictures: PoseNet and BodyPix with their decoder, or MoveNet.

    The whole model runs: the chip's part on the simulated chip, the others in LiteRT. Pictures are
    prepared as pycoral does it; --fit, --mean and --std change that.
    """
    pictures.show(
        "pose",
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
