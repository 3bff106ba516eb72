"""How far predicted latencies are from published ones."""

from darwinn_testbench.accuracy.document import page
from darwinn_testbench.accuracy.points import Points, evidence, load, published
from darwinn_testbench.accuracy.predict import AccuracyRow, check_accuracy

__all__ = ["AccuracyRow", "Points", "check_accuracy", "evidence", "load", "page", "published"]
