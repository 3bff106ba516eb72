"""`darwinn pose`: where people are in a picture."""

from __future__ import annotations

from darwinn_testbench.cli.pictures import command_of

EXAMPLES = """**Examples**

`darwinn pose people.jpg model_edgetpu.tflite --output people.png`

`darwinn pose *.jpg model_edgetpu.tflite --json`
"""

command = command_of("pose")
