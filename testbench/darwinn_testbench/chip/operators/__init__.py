"""Custom operators of compiled models, and models in parts: these, and LiteRT for the others."""
