"""An application as it would be written for the Edge TPU; it knows nothing of this project.

    python delegate_client.py LIBRARY MODEL [OUTPUT [PICTURES]]

Runs in whatever environment has LiteRT or tflite_runtime. The inputs are drawn from a seed, and
the outputs of three inferences are stored; without OUTPUT it infers until it is ended.
"""

import sys
from typing import Any

import numpy as np


def interpreter_of(library: str, model: str) -> Any:
    try:
        from ai_edge_litert import interpreter as tflite
    except ImportError:
        from tflite_runtime import interpreter as tflite

    delegate = tflite.load_delegate(library, {"device": ":0"})
    made = tflite.Interpreter(model_path=model, experimental_delegates=[delegate])
    made.allocate_tensors()
    return made


def draw(interpreter: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    for each in interpreter.get_input_details():
        values = random.integers(0, 128, tuple(each["shape"])).astype(each["dtype"])
        interpreter.set_tensor(each["index"], values)


def outputs_of(interpreter: Any) -> list[Any]:
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def main() -> None:
    library, model, *output = sys.argv[1:]
    interpreter = interpreter_of(library, model)
    print("ready", flush=True)
    results = []
    seed = 0
    while not output or seed < 3:
        draw(interpreter, seed)
        interpreter.invoke()
        results += outputs_of(interpreter) if output else []
        seed += 1
    np.savez(output[0], *results)


if __name__ == "__main__":
    main()
