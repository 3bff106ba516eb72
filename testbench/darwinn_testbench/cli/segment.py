"""`darwinn segment`: which pixel of a picture is what."""

from __future__ import annotations

from darwinn_testbench.cli.pictures import command_of

EXAMPLES = """**Examples**

`darwinn segment dog.jpg model_edgetpu.tflite --labels labels.txt --output mask.png`

`darwinn segment dog.jpg model_edgetpu.tflite --fit letterbox`
"""

command = command_of("segment")
