"""Proofs of function in tests: of the project's own samples, and of models with faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from darwinn_formats.darwinn import CompiledModel, Package
from darwinn_formats.files import Source
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.expectation import References
from darwinn_testbench.compiler import edgetpu_model, uncompiled
from darwinn_testbench.compiler.network import Sample
from darwinn_testbench.proof.prove import FunctionProof, prove


def bound_sample(network: Sample, package: Package) -> BoundModel:
    """A compiled sample, as the file that it is written to."""
    (bound,) = open_models(edgetpu_model(network, package))
    return bound


def proof_of(bound: BoundModel, reference: Source) -> FunctionProof:
    """What is proved of a compiled model beside the model before compilation, on a new chip.

    Raises:
        SimulationError: its program fails.
    """
    session = Session(bound)
    session.infer({port.name: np.zeros(port.shape, port.dtype) for port in bound.ports})
    # A fault may look like another calibration: what is proved then is asked all the same.
    return prove(session, References(reference, bound, anyway=True).uncompiled)


def proof_of_faulty(bound: BoundModel, faulty: CompiledModel, reference: Source) -> FunctionProof:
    """The same of a model with a fault, whose tensors are those of the model without."""
    return proof_of(replace(bound, compiled=faulty), reference)


def proof_of_sample(network: Sample, package: Package) -> FunctionProof:
    """The same of a compiled sample beside its own network."""
    return proof_of(bound_sample(network, package), uncompiled(network))
