"""Traversal strides: from the encoded, normalised form to the real step of each loop, and back.

An address generator adds one number when a loop advances. At that moment the loops inside it have
just run to their ends, so the number undoes their travel as well: the encoded stride of loop k is
the real step of loop k minus the sum of step * limit over the loops inside it. A loop that is not
in the traversal's mask does not move the address: its step is 0, and its encoded stride only
undoes the loops inside it (docs/isa.md, "Traversals").

The law holds for every traversal of every known program; :func:`is_normalised` tells for an
arbitrary one. The encoded stride of a loop that runs once is never added, and compilers leave any
value there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def steps(stride: Integers, limit: Integers, mask: Integers) -> Integers:
    """Return the distance that the address really moves per iteration of each loop.

    Args:
        stride: encoded strides, int64, shape (..., loops), innermost loop first.
        limit: iterations minus 1 of each loop, same shape.
        mask: bit k set if loop k moves the address, shape (...).

    Returns:
        The steps, int64, shape (..., loops): 0 for the loops that are not in the mask.
    """
    stride, limit = np.asarray(stride, np.int64), np.asarray(limit, np.int64)
    moves = _moves(mask, stride.shape[-1])
    result = np.zeros_like(stride)
    travel = np.zeros(stride.shape[:-1], np.int64)
    for loop in range(stride.shape[-1]):
        result[..., loop] = np.where(moves[..., loop], stride[..., loop] + travel, 0)
        travel = travel + result[..., loop] * limit[..., loop]
    return result


def normalised(step: Integers, limit: Integers, mask: Integers) -> Integers:
    """Return the strides to encode for real ``step``: the inverse of :func:`steps`.

    Args:
        step: distance per iteration of each loop, int64, shape (..., loops), innermost first;
            the step of a loop that is not in ``mask`` is taken as 0.
        limit: iterations minus 1 of each loop, same shape.
        mask: bit k set if loop k moves the address, shape (...).

    Returns:
        The encoded strides, int64, shape (..., loops).
    """
    step, limit = np.asarray(step, np.int64), np.asarray(limit, np.int64)
    real = np.where(_moves(mask, step.shape[-1]), step, 0)
    travel = np.cumsum(real * limit, axis=-1)
    result: Integers = real.copy()
    result[..., 1:] -= travel[..., :-1]
    return result


def is_normalised(stride: Integers, limit: Integers, mask: Integers) -> NDArray[np.bool_]:
    """Return whether the strides follow the law, bool, shape (...).

    False means that a loop outside the mask moves the address, which no known program does.
    Loops that run once are not looked at: their stride is never added.
    """
    stride, limit = np.asarray(stride, np.int64), np.asarray(limit, np.int64)
    rebuilt = normalised(steps(stride, limit, mask), limit, mask)
    lawful: NDArray[np.bool_] = ((rebuilt == stride) | (limit == 0)).all(axis=-1)
    return lawful


def _moves(mask: Integers, loops: int) -> NDArray[np.bool_]:
    bits = np.asarray(mask, np.int64)[..., None] >> np.arange(loops)
    moves: NDArray[np.bool_] = (bits & 1).astype(np.bool_)
    return moves
