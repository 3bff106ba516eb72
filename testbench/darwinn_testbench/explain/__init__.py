"""Where the operators of a network run, why, and what to change."""

from darwinn_testbench.called import called_as

called_as(__name__, "darwinn_testbench.explain.explain", "explain")
