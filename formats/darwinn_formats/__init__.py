"""Readers and writers of the executable formats: bytes to typed, immutable dataclasses and back."""
