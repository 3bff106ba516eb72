"""What the compiled kernels of all units share: their state, traversals and sync flags."""
