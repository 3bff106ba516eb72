"""The original runtime (package ``executorch``) behind the protocol of the references.

The package is no dependency: where it is not installed, ``unavailable`` says so. It brings PyTorch
along, whose tensors its methods take.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from darwinn_formats import executorch
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch import schema
from darwinn_formats.files import Source

from darwinn_reference.errors import Unsupported
from darwinn_reference.executorch.reference import Interface
from darwinn_reference.protocol import Datum, Output, Tap

_MODULES = (
    "torch",
    "executorch.runtime",
    # Registers the operators of quantized_decomposed.
    "executorch.kernels.quantized",
)
_BFLOAT16 = schema.ScalarType.BFLOAT16


def unavailable() -> str:
    """Why the original runtime cannot be used, or the empty text."""
    try:
        for name in _MODULES:
            importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:
        return f"the original ExecuTorch runtime is not installed: {error}"
    return ""


class OriginalRuntime(Interface):
    """A program in the original runtime (see ``protocol.Reference``).

    Raises:
        Unsupported: the runtime is not installed.
        FormatError: the file is no valid program.
        ExecutionError: the runtime refuses the program.
    """

    def __init__(self, program: Source, external: Sequence[Source] = ()) -> None:
        reason = unavailable()
        if reason:
            raise Unsupported("runtime", [reason])
        self._torch: Any = importlib.import_module("torch")
        self._runtime: Any = importlib.import_module("executorch.runtime").Runtime.get()
        super().__init__(executorch.load(program, external=external))
        names = [entry.file for entry in self.file.external]
        if len(names) > 1:
            raise ExecutionError("the runtime's Python interface takes one file of external data")
        self._external = names[0] if names else None
        data = program if isinstance(program, bytes) else Path(program).read_bytes()
        self._data = data[self.file.base :]
        self.reset()

    def run(
        self, inputs: Sequence[Datum], *, function: str | None = None, tap: Tap | None = None
    ) -> tuple[Output, ...]:
        """Call a method; the runtime shows no intermediate values, so a tap is refused."""
        if tap is not None:
            raise ExecutionError("the original runtime shows no intermediate values")
        name = self.name_of(function)
        given = self._given(name, inputs)
        try:
            if name not in self._methods:
                self._methods[name] = self._program.load_method(name)
            results = self._methods[name].execute(given)
        except RuntimeError as error:
            raise ExecutionError(f"{name}: {error}") from None
        return tuple(
            Output(port.name, self._from_torch(entry), port.scale, port.zero_point)
            for port, entry in zip(self.outputs(name), results, strict=True)
        )

    def noted(self, inputs: Sequence[Datum], *, function: str | None = None, calls: int) -> bytes:
        """The ETDump of calls of a method (see ``protocol.NotingReference``)."""
        name = self.name_of(function)
        given = self._given(name, inputs)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "run.etdp"
            try:
                program = self._runtime.load_program(
                    self._data, data_path=self._external, enable_etdump=True
                )
                method = program.load_method(name)
                for _ in range(calls):
                    method.execute(given)
                program.write_etdump_result_to_file(str(path), str(path.with_suffix(".bin")))
                return path.read_bytes()
            except (RuntimeError, OSError) as error:
                raise ExecutionError(f"{name}: {error}") from None

    def _given(self, name: str, inputs: Sequence[Datum]) -> list[Any]:
        """Inputs of a method as it takes them."""
        plan = self.file.method(name)
        if len(inputs) != len(plan.inputs):
            raise ExecutionError(f"{len(inputs)} inputs, the method takes {len(plan.inputs)}")
        return [
            self._to_torch(entry, plan.values[index].val)
            for entry, index in zip(inputs, plan.inputs, strict=True)
        ]

    def reset(self) -> None:
        """Load the program again, which forgets its state."""
        try:
            self._program: Any = self._runtime.load_program(self._data, data_path=self._external)
        except RuntimeError as error:
            raise ExecutionError(str(error)) from None
        self._methods: dict[str, Any] = {}

    def _to_torch(self, value: Datum, declared: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic):
            return value
        tensor = self._torch.from_numpy(np.array(value))
        if isinstance(declared, schema.Tensor) and declared.scalar_type is _BFLOAT16:
            tensor = tensor.bfloat16()
        if not isinstance(declared, schema.Tensor) or tensor.ndim != len(declared.dim_order):
            return tensor
        # The runtime takes the memory as it lies: it has to be in the order that the plan expects.
        order = tuple(declared.dim_order)
        return tensor.permute(order).contiguous().permute(tuple(np.argsort(order).tolist()))

    def _from_torch(self, value: Any) -> Datum:
        if isinstance(value, self._torch.Tensor):
            # NumPy has no bfloat16: such numbers are float32, as those of the reference.
            is_bfloat16 = value.dtype is self._torch.bfloat16
            array: Datum = (value.float() if is_bfloat16 else value).detach().clone().numpy()
            return array
        result: Datum = value
        return result
