"""`darwinn verify`: is every output byte right?"""

from __future__ import annotations

from darwinn_testbench.cli import compared, options
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.cli.results import Results
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.verify import answer
from darwinn_testbench.request.record import Wanted

EXAMPLES = """**Examples**

`darwinn verify model_edgetpu.tflite --reference model.tflite --runs 5`

`darwinn verify model_edgetpu.tflite --reference model.tflite --inputs photo.png`

`darwinn verify model_edgetpu.tflite --reference model.tflite --policy lsb:1,2%`

`darwinn verify model_edgetpu.tflite --reference model.tflite --layers`

`darwinn verify model_edgetpu.tflite --reference model.tflite --json --junit result.xml`

`darwinn verify model_edgetpu.tflite --reference model.pte --map image=x --localise`

`darwinn verify model_edgetpu.tflite --reference model.tflite --engine rtl`

`darwinn verify model_edgetpu.tflite --reference model.tflite --require-proof --junit result.xml`

`darwinn verify program.pte --expected outputs.npz --inputs x.npy`
"""


def command(file: options.AnyFile, asked: Wanted[Asked], written: Results) -> None:
    """Run a compiled model on the simulated chip and say whether every output byte is right.

    Some inputs are run, and every byte is compared with the chip's own arithmetic, computed from
    the model before compilation. Then it is proved, for every input, that the outputs are the
    network's functions, and that no legal timing gives other bytes or deadlocks. The verdict is
    proved if all that holds, and pass if something is only sampled: the line says what. With
    --policy, --engine rtl, --no-proof, --no-hazards, --anyway, a reference of another format or
    operators on the CPU it is pass at best. Without --reference nothing is compared: ran. Exit
    codes are 0 for these three, 1 if something is wrong or not as required, 2 for bad input,
    3 if the simulator does not implement something.

    The difference to LiteRT, whose rounding differs a little, is always shown and decides only
    under --policy.

    Operators that the compiler has left to the CPU run too, in LiteRT, unless --chip-only is given.
    What they give is a row as well: it must equal what the CPU operators of the reference give for
    the chip's arithmetic.

    A reference of another format is given the same inputs, dequantised where it computes in
    floating point; its outputs are quantised as FILE's and may then be 1 step off, integers must be
    equal. FILE itself may be of another format; a .bpte brings its expected outputs along.
    """
    request = asked(options.source_of(file))
    with progress_bar() as progress:
        report = answer(request.but(progress=progress))
    written.write([report])
    finish(
        report,
        file=file,
        as_json=written.json,
        body=compared.body,
        next_step=compared.next_step(report, file, request.waves),
    )
