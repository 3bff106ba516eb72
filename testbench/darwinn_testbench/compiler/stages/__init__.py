"""The open compiler, stage by stage; each file is one stage, with one data type to the next.

- ``operations``: the network in integers. ``importer`` makes it from a quantised model.
- ``storage``: which tile holds which part of a tensor. ``demand`` decides it for all tensors, and
  ``placement`` gives each its place in narrow memory.
- ``phases``: what the chip does from one barrier to the next. ``mapping`` describes each
  operator's phases; ``compute``, ``exchange``, ``ring`` and ``host`` are what phases are made of.
- ``schedule``: writes the phases as instructions, with the parameters that they need.
- ``executable``: layers, executable, package, and the model with the custom operator.
- ``build``: runs all of them and finds out how much of the network fits.
"""
