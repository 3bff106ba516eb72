"""`darwinn detect`: what is where in a picture."""

from __future__ import annotations

from darwinn_testbench.cli.pictures import command_of

EXAMPLES = """**Examples**

`darwinn detect street.jpg model_edgetpu.tflite --labels labels.txt --output boxes.png`

`darwinn detect *.jpg model_edgetpu.tflite --threshold 0.6 --output boxes`
"""

command = command_of("detect")
