"""Matrix products in the thread that asks for them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_matrix_thread() -> AbstractContextManager[object]:
    """While it is entered, the library of matrices has no threads of its own.

    Those wait for each other at each product: where a core is busy, ten times as long as one thread
    computes, and where none is, they take twice the processor time of the small products made here.
    """
    manager: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return manager


@cache
def _libraries() -> ThreadpoolController:
    """Libraries that have threads: to look for them takes as long as a small program does."""
    return ThreadpoolController()
