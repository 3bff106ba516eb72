"""The documentation as a site: what builds it, and what draws its pictures."""
