"""Explain where each operator of a network runs, why, at what cost, and what to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

from darwinn_formats import tflite
from darwinn_formats.darwinn import DarwinnFile, load
from darwinn_formats.darwinn.loader import flatten
from darwinn_formats.files import Source, content_of, errors_name, name_of
from darwinn_formats.names import short_name
from darwinn_sim import timing
from darwinn_sim.isa import grading

from darwinn_testbench.chip.cycles import link_of
from darwinn_testbench.chip.model import BoundModel, bind_file
from darwinn_testbench.errors import InputError
from darwinn_testbench.explain.advice import Situation, advice
from darwinn_testbench.explain.conditions import (
    NOT_COVERED,
    SECOND_PIECE,
    SUPPORTED,
    UNSPECIFIED,
)
from darwinn_testbench.explain.crossing import (
    CACHE_BYTES,
    Piece,
    compiled_piece,
    predicted_piece,
)
from darwinn_testbench.explain.evidence import EVIDENCE, Basis, basis_of, told_of
from darwinn_testbench.explain.graph import Graph, Node, Value, graph_of
from darwinn_testbench.explain.placement import (
    Place,
    Prediction,
    is_compiled,
    is_piece,
    pieces,
    placed,
    predict,
)
from darwinn_testbench.report import Report, Row, Verdict, counted
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.setting import Setting
from darwinn_testbench.request.timing import NO_HOST, Timed

COMPILED, PREDICTED = "compiled file", "prediction"
"""What places are known from."""


@dataclass(frozen=True, kw_only=True)
class ExplainRow(Row):
    """An operator. ``name`` is its first result's, ``result`` type and shape of that.

    ``place`` is where it runs, ``predicted`` where the conditions place it; without a compiled file
    they are the same. ``reason`` says in a few words what keeps it on the CPU, ``log`` how the
    vendor's compiler calls that, ``doubts`` what may keep it there. ``basis`` is how that is known
    and ``evidence`` says by what; neither is there of an operator that is held by another one, or
    that no condition knows. ``reads`` are the numbers of
    the operators whose results it takes, ``parameter_bytes`` those of its constants in the file.
    """

    number: int
    operator: str
    result: str
    place: Place
    predicted: Place
    reason: str
    log: str
    advice: str
    source: str
    doubts: tuple[str, ...]
    basis: Basis | None
    evidence: str
    reads: tuple[int, ...]
    parameter_bytes: int

    listed: ClassVar[tuple[str, ...]] = (
        "number",
        "operator",
        "result",
        "place",
        "reason",
        "advice",
        "doubts",
        "parameter_bytes",
        "tensor",
    )

    @property
    def tensor(self) -> str:
        """The result's name; of one that has the names of all that was fused, the first."""
        return short_name(self.name)

    @property
    def rank(self) -> int:
        """What is not on the chip first."""
        return int(self.place is Place.CHIP)

    @classmethod
    def tables(cls, figures: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
        """What to change, the pieces, and what goes over the host link."""
        pieces: tuple[Piece, ...] = figures.get("pieces", ())
        return {
            "what to change": figures.get("advice", ()),
            "pieces on the chip": [replace(each, crossings=()) for each in pieces],
            "over the host link": [each for piece in pieces for each in piece.crossings],
        }


Several = Annotated[
    bool,
    Setting(
        "--several",
        "Predict several pieces on the chip, as the compiler makes with its option -a. A "
        "compiled file shows how many it has.",
    ),
]


@dataclass(frozen=True)
class Explaining(Timed):
    """Where the operators of ``source`` run: a ``.tflite``, the model before compilation, or a
    compiled one alone.

    ``compiled`` is the same model compiled, which shows where its operators went. Without it, of a
    model before compilation, all is predicted. ``several`` predicts several pieces on the chip; a
    compiled file says itself how many it has.
    """

    source: Source
    compiled: Source | None = None
    _: KW_ONLY
    companions: settings.Companions = ()
    several: Several = False
    assumptions: settings.Assumptions = True


def explained(asked: Explaining) -> Report[ExplainRow]:
    """Say of each operator where it runs, and why.

    The figures are ``basis`` (``compiled file`` or ``prediction``), ``operators`` by place,
    ``pieces`` (:class:`Piece`), ``cache_bytes``, ``advice``, ``host``, and with both files
    ``agreement``, how many operators are where the conditions place them. A prediction also has
    ``certainty``, the number of operators by :class:`Basis`, and what is ``not_covered``.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: the files are not a model before compilation and a compiled one; a package
            without a graph around it.
    """
    source, compiled, assumptions = asked.source, asked.compiled, asked.assumptions
    description = timing.chip_description(asked.chip_name)
    link = link_of(description, asked.host_name)
    graph, itself_compiled = _read(source)
    if itself_compiled and compiled is not None:
        raise InputError(f"{name_of(source)}: is compiled; give the model before compilation first")
    shell_source = source if itself_compiled else compiled
    asked.progress("reading", 0, None)
    unknown: list[Node] = []
    if shell_source is None:
        predictions = predict(graph, several=asked.several)
        places = [each.place for each in predictions]
        found = _predicted_pieces(graph, predictions, link)
    else:
        file = load(shell_source)
        if file.shell is None:
            raise InputError(f"{file.file}: has no graph around it; inspect and cycles show it")
        with errors_name(shell_source):
            shell = graph_of(file.shell)
        predictions = predict(graph, several=len(pieces(shell)) > 1)
        places = [each.place for each in predictions]
        if compiled is not None:
            check_ends(name_of(source), graph, file.file, shell)
            places, unknown = placed(graph, shell)
        asked.progress("timing", 0, None)
        found = [
            compiled_piece(number, bound, description, link, assumptions)
            for number, bound in enumerate(_bound(file, shell, asked.companions))
        ]
    rows = tuple(map(partial(_row, graph), graph.nodes, places, predictions))
    basis = PREDICTED if shell_source is None else COMPILED
    predicted = basis == PREDICTED
    situation = Situation(graph.nodes, places, predictions, found, graph.graphs, predicted)
    return Report(
        command="explain",
        file=name_of(source),
        rows=rows,
        figures={
            "basis": basis,
            "compiled": None if compiled is None else name_of(compiled),
            "operators": {place.value: places.count(place) for place in Place},
            "unmatched": [str(node) for node in unknown],
            **_agreement(places, predictions, compiled is not None),
            "pieces": tuple(found),
            "cache_bytes": CACHE_BYTES,
            "chip": description.name,
            "host": link.name if link else NO_HOST,
            "advice": advice(situation),
            **_certainty(rows, basis),
            "assumptions": grading.merged(
                piece.timed.assumed for piece in found if piece.timed is not None
            ),
        },
        decided=Verdict.PASS,
        message=_message(places, basis, found, itself_compiled, unknown),
    )


explain = takes(Explaining, "explain")(explained)


def _read(source: Source) -> tuple[Graph, bool]:
    """The graph of a ``.tflite``, and whether it is compiled."""
    data = content_of(source)
    if data[4:8] != tflite.IDENTIFIER:
        raise InputError(f"{name_of(source)}: not a .tflite: explain needs a graph")
    with errors_name(source):
        model = tflite.load(data)
        return graph_of(model), is_compiled(model)


def check_ends(name: str, graph: Graph, compiled: str, shell: Graph) -> None:
    """Refuse a compiled file of another model: its inputs or outputs are other ones.

    An output whose shape one of the files leaves open (an SSD's boxes) can be any.

    Raises:
        InputError: naming what differs.
    """
    ends = (("inputs", graph.inputs, shell.inputs), ("outputs", graph.outputs, shell.outputs))
    for what, mine, its in ends:
        wanted, found = [graph.values[k] for k in mine], [shell.values[k] for k in its]
        if len(wanted) != len(found) or not all(map(_alike, wanted, found)):
            texts = [", ".join(map(str, each)) or "none" for each in (found, wanted)]
            reason = f"its {what} are {texts[0]}, not {texts[1]}"
            raise InputError(f"{compiled}: not {name} compiled: {reason}")


def _alike(left: Value, right: Value) -> bool:
    open_shape = not left.shape or not right.shape
    return left.type == right.type and (open_shape or left.shape == right.shape)


def _bound(file: DarwinnFile, shell: Graph, companions: Sequence[Source]) -> list[BoundModel]:
    """The models of the chip's operators in their order."""
    models = bind_file(file, companions)
    held = {
        place.operator: {
            id(each) for package in flatten(place.packages) for each in package.executables
        }
        for place in file.operators
    }
    return [
        model
        for node in pieces(shell)
        for model in models
        if id(model.compiled.inference) in held.get(node.index, ())
    ]


def _predicted_pieces(
    graph: Graph, predictions: Sequence[Prediction], link: timing.HostLink | None
) -> list[Piece]:
    members: dict[int, list[Node]] = {}
    for node, each in zip(graph.nodes, predictions, strict=True):
        if each.piece is not None:
            members.setdefault(each.piece, []).append(node)
    return [predicted_piece(number, graph, members[number], link) for number in sorted(members)]


def _row(graph: Graph, node: Node, place: Place, prediction: Prediction) -> ExplainRow:
    first = prediction.objections[0] if prediction.objections else None
    why, log, source, change = "", SUPPORTED, "", ""
    if place is Place.CPU:
        if prediction.behind is not None:
            why, log = f"behind {prediction.behind}", SECOND_PIECE
        elif first is not None:
            why, log = first.text, first.condition.message
        else:
            why, log = "not known", UNSPECIFIED
        if first is not None:
            source, change = first.condition.source, first.condition.advice
    elif place is Place.UNKNOWN:
        why, log = "not found in the compiled file", ""
    makers = (graph.producers.get(each.index) for each in node.data)
    return ExplainRow(
        name=node.outputs[0].name if node.outputs else "",
        verdict=Verdict.PASS,
        number=node.index,
        operator=node.name,
        result=str(node.outputs[0]) if node.outputs else "",
        place=place,
        predicted=prediction.place,
        reason=why,
        log=log,
        advice=change,
        source=source,
        doubts=tuple(each.text for each in prediction.doubts),
        **_known(node, prediction, place),
        reads=tuple(dict.fromkeys(maker.index for maker in makers if maker is not None)),
        parameter_bytes=node.parameter_bytes,
    )


def _certainty(rows: Sequence[ExplainRow], basis: str) -> dict[str, Any]:
    """Of a prediction: how many operators are known by what, and what no condition examines."""
    if basis != PREDICTED:
        return {}
    known = Counter(row.basis.value for row in rows if row.basis is not None)
    counts = {each.value: known[each.value] for each in Basis if known[each.value]}
    return {"certainty": counts, "not_covered": NOT_COVERED}


def _known(node: Node, prediction: Prediction, place: Place) -> dict[str, Any]:
    """How the place of an operator is known where the conditions alone place it.

    A doubt counts as the least that is known: what it asks is not confirmed.
    """
    if place is Place.UNKNOWN or is_piece(node) or prediction.behind is not None:
        return {"basis": None, "evidence": ""}
    if place is Place.CPU:
        first = prediction.objections[0].condition if prediction.objections else None
        return {"basis": first and first.basis, "evidence": first.source if first else ""}
    if prediction.doubts:
        return {"basis": Basis.NOT_CONFIRMED, "evidence": prediction.doubts[0].condition.source}
    if node.name not in EVIDENCE:
        return {"basis": None, "evidence": ""}
    return {"basis": basis_of(node.name), "evidence": told_of(node.name)}


def _agreement(
    places: Sequence[Place], predictions: Sequence[Prediction], both: bool
) -> dict[str, Any]:
    """How many operators are where they are predicted to be, of those whose place is known."""
    known = [
        (place, each.place)
        for place, each in zip(places, predictions, strict=True)
        if place is not Place.UNKNOWN
    ]
    if not both:
        return {}
    same = sum(place is predicted for place, predicted in known)
    return {"agreement": {"same": same, "of": len(known)}}


def _message(
    places: Sequence[Place],
    basis: str,
    found: Sequence[Piece],
    alone: bool,
    unknown: Sequence[Node],
) -> str:
    if alone:
        on_cpu = counted(places.count(Place.CPU), "operator")
        text = f"{counted(len(found), 'piece')} on the chip, {on_cpu} on the CPU"
    else:
        chip = f"{places.count(Place.CHIP)} of {counted(len(places), 'operator')} on the chip"
        text = f"{chip} in {counted(len(found), 'piece')}" if found else chip
    if unknown:
        text += f"; {counted(len(unknown), 'operator')} of the compiled file found no counterpart"
    notes = [piece.message for piece in found if piece.message]
    if basis == PREDICTED:
        notes.append("predicted from the conditions of `darwinn docs explain`, nothing is compiled")
    return "; ".join([text, *notes])
