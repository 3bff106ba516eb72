"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.promotion import accumulating, cast

Kernel = Callable[..., Any]


def matrix_product(a: AnyArray, b: AnyArray) -> AnyArray:
    """a @ b."""
    return np.asarray(np.matmul(accumulating(a), accumulating(b)))


def product_with_addend(
    addend: AnyArray, a: AnyArray, b: AnyArray, beta: float = 1, alpha: float = 1
) -> AnyArray:
    """beta * addend + alpha * (a @ b); an addend of factor 0 plays no part, whatever it holds."""
    product = np.matmul(accumulating(a), accumulating(b))
    if alpha != 1:
        product = product * cast(alpha, product.dtype)
    if beta == 0:
        return np.asarray(product)
    return np.asarray(product + (addend if beta == 1 else addend * cast(beta, product.dtype)))


def linear(x: AnyArray, weight: AnyArray, bias: AnyArray | None = None) -> AnyArray:
    """x @ weight, transposed, + bias."""
    product = np.matmul(accumulating(x), accumulating(weight).T)
    return np.asarray(product if bias is None else product + bias)


KERNELS: Mapping[str, Kernel] = {
    "aten::addmm.out": product_with_addend,
    "aten::bmm.out": matrix_product,
    "aten::linear.out": linear,
    "aten::mm.out": matrix_product,
}
