"""Which operator of the network a layer of the program computes, by what it leaves in the tiles.

A compiled file has no names for its layers; the model before compilation has. One inference is made
on drawn inputs: a layer that holds a tensor on every byte computes that tensor's operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from darwinn_formats.names import short_name

from darwinn_testbench.comparison.asked import Asked, between_programs
from darwinn_testbench.comparison.verify import answer
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.check import Finding, TensorRow
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import Naming


@dataclass(frozen=True)
class LayerName:
    """The operator that a layer computes, as CONV_2D, and the name of the tensor that it gives.

    Of a tensor that operators only rename, and of what is fused into one layer, it is the first
    operator that gives these bytes.
    """

    operator: str
    tensor: str

    def __str__(self) -> str:
        """The tensor by the first of the names that a converter has joined."""
        return f"{self.operator} {short_name(self.tensor)}"


def named_layers(asked: Naming) -> dict[int, LayerName]:
    """Names by number of ``layer:N``; of layers whose bytes no tensor has there is none.

    Raises: as ``tensors_of``.
    """
    return names_of(tensors_of(asked))


def tensors_of(asked: Naming) -> Sequence[TensorRow]:
    """The tensors of the network in one inference, with the layers that hold them.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: the reference is not the model before compilation, as ``.tflite``.
        ModelError: it is of a kind that no reference is made of.
    """
    if between_programs(asked.source, asked.reference):
        raise InputError("layers have the names of the model before compilation: a .tflite")
    how = {"runs": 1, "chip_only": True, "layers": True, "hazards": False}
    rows: Sequence[TensorRow] = answer(asked.part(Asked, **how)).figures["tensors"]
    return rows


layer_names = takes(Naming, "layer_names")(named_layers)
found_tensors = takes(Naming, "found_tensors")(tensors_of)


def names_of(rows: Sequence[TensorRow]) -> dict[int, LayerName]:
    """Names by number of ``layer:N``, from the tensors that are found on every byte or taken."""
    names: dict[int, LayerName] = {}
    for row in rows:
        if row.finding in (Finding.EQUAL, Finding.TAKEN):
            for number in row.layers:
                names.setdefault(number, LayerName(row.operator, row.name))
    return names


def differing_elements(rows: Sequence[TensorRow]) -> dict[int, int]:
    """By number of ``layer:N`` how many elements of its tensor differ from the chip's arithmetic.

    Of layers that hold no tensor that was compared there is none.
    """
    compared = (row for row in rows if row.finding in (Finding.EQUAL, Finding.DIFFERS))
    return {number: row.differing for row in compared for number in row.layers}


def with_names(rows: Sequence[LayerRow], names: Mapping[int, LayerName]) -> tuple[LayerRow, ...]:
    """The layers with the names of the network's operators, where these are known."""
    return tuple(
        replace(row, operator=names[row.number].operator, tensor=names[row.number].tensor)
        if row.number in names
        else row
        for row in rows
    )
