"""A program on the units: lowering, whose turn it is, where it stands, what holds it up."""
