"""Regression over many executables: a manifest of cases, performed in parallel, resumable."""
