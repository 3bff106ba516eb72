"""Requests as data: each setting is described once, and everything that takes it follows.

To add a setting of a verification:

1. describe it in ``settings``: type, option, help, bounds, what it applies to;
2. give a record of ``records`` a field of it, with its default;
3. do what it asks, where the record arrives.

The option, the argument of library and fixture, the key of manifests with its JSON Schema and its
row in docs/ci.md (``make docs``), the refusal where it does not apply and the command of a row
follow. ``tests/testbench/request`` tries it with every kind of file.
"""
