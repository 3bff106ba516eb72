"""Executables on the simulated chip: inputs, runs, cycles and contents of files."""
