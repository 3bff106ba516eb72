"""Whole models on data sets: how often they are right, and where chip and LiteRT part."""
