"""The simulated chip for unmodified applications: what they call is the vendor's, or LiteRT's."""
