"""`darwinn compile`: compile a model, judge what comes out, and say what went where."""
