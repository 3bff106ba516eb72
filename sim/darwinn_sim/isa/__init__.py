"""The Beagle instruction set: one declarative table, and what derives from it."""
