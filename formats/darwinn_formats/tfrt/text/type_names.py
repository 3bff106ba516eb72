"""The type of tensors by its present name, and by the one before May 2024."""

from typing import Final

TENSOR: Final = "!tfrt_tensor.tensor"
OLD_TENSOR: Final = "!t.tensor"
