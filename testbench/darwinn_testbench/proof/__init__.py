"""Prove, without an input, that an executable is the same function of its inputs as its network."""
