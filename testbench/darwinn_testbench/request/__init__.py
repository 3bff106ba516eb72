"""Requests as data: each setting is described once, and everything that takes it follows."""
