"""`darwinn classify`: what is in a picture."""

from __future__ import annotations

from darwinn_testbench.cli.pictures import command_of

EXAMPLES = """**Examples**

`darwinn classify cat.png model_edgetpu.tflite --labels labels.txt`

`darwinn classify *.jpg model_edgetpu.tflite --json`

`darwinn classify cat.png model_edgetpu.tflite --fit crop --mean 127.5 --std 127.5`
"""

command = command_of("classify")
