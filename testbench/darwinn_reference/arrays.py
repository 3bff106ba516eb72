"""The type of arrays whose elements are known only at run time."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

AnyArray = NDArray[Any]
