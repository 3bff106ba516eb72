"""The layers of a program: what the tiles hold of them, their shapes, and their check."""

from darwinn_testbench.called import called_as

called_as(__name__, "darwinn_testbench.layers.view", "view_layers")
