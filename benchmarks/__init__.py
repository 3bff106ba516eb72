"""Measurements of what the project promises to be fast; run as modules from the repository."""
