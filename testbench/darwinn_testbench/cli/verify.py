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

    First, some inferences run, and every output byte is compared with the chip's own arithmetic,
    computed from the model before compilation. Then a proof covers every input: each output is the
    network's function, and no legal timing gives other bytes or deadlocks.

    The verdict is `proved` if all of this holds, and `pass` if something is only sampled; the
    verdict line names it. With --policy, --engine rtl, --no-proof, --no-hazards, --anyway, a
    reference of another format or operators on the CPU, it is at best `pass`. Without --reference
    nothing is compared, and the verdict is `ran`. The exit code is 0 for these three verdicts, 1 if
    something is wrong or not as required, 2 for bad input, and 3 if the simulator does not
    implement something.

    LiteRT rounds a little differently. The difference to LiteRT is always shown, but decides only
    under --policy.

    If the compiler left operators to the CPU, LiteRT runs these too, unless --chip-only is given.
    Their results are rows as well: they must equal the results of the reference's CPU operators for
    the chip's arithmetic.

    A reference of another format gets the same inputs, dequantised if it computes in floating
    point. Its outputs are then quantised as FILE's and may be 1 step off; integers must be equal.
    FILE itself may have another format; a .bpte contains its expected outputs.
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
