"""Many inputs through one program: what it computes of what, found once, then done for all."""
