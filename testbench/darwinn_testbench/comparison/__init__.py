"""Outputs against what they should be, and the verdict."""
