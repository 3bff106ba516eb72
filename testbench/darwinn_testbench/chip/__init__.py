"""Executables on the simulated chip: inputs, runs, cycles and what is in a file."""
