"""The layers of a program: what the tiles hold of them, their shapes, and their check."""
