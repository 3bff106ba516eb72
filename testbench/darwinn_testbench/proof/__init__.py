"""Is an executable the same function of its inputs as its network? Proved, without an input."""
