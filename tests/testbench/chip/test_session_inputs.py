"""What a session is given: sets of inputs that do not fit are refused with what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_reference.arrays import AnyArray
from darwinn_sim.machine.examine import StopPoint, Tap
from darwinn_testbench.chip import ahead
from darwinn_testbench.chip.ahead import Lifted
from darwinn_testbench.chip.execution import lifted_line, run
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.compiler.network import random_convolution, random_dense
from darwinn_testbench.compiler.package import compile_network
from darwinn_testbench.errors import InputError

MANY = 40


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that takes a picture which is wider than high."""
    path = tmp_path_factory.mktemp("models") / "picture.package"
    network = random_convolution(8, 12, 4, 8, seed=0)
    path.write_bytes(darwinn.dump(compile_network(network)))
    return path


@pytest.fixture(scope="module")
def model(path: Path) -> BoundModel:
    return open_models(path)[0]


@pytest.fixture(scope="module")
def session(model: BoundModel) -> Session:
    return Session(model)


@pytest.fixture
def dense(tmp_path: Path) -> BoundModel:
    path = tmp_path / "dense.package"
    path.write_bytes(darwinn.dump(compile_network(random_dense([20, 30, 10], 0))))
    return open_models(path)[0]


def drawn(model: BoundModel) -> tuple[str, AnyArray]:
    """The only input: its name, and data."""
    ((name, array),) = random_inputs(model.ports, seed=3, runs=1)[0].items()
    return name, array


WRONG: dict[str, tuple[Callable[[str, AnyArray], Any], str]] = {
    "another order": (
        lambda name, array: {name: np.moveaxis(array, -1, 0)},
        "has shape 4x8x12: the same dimensions in another order",
    ),
    "unknown": (lambda name, array: {name: array, "typo": array}, "there is no input typo"),
    "no string": (lambda name, array: {name: array, 3: array}, "there is no input 3"),
    "missing": (lambda name, array: {}, "the model takes .*; no data for "),
    "another name": (lambda name, array: {"typo": array}, "there is no input typo; no data for"),
    "size": (
        lambda name, array: {name: array[:-1]},
        "has shape 7x12x4: 336 elements, and one inference takes 384",
    ),
    "several": (
        lambda name, array: {name: np.stack([array] * 2)},
        "has shape 2x8x12x4: 768 elements, and one inference takes 384",
    ),
    "list": (
        lambda name, array: {name: array.tolist()},
        "the data must be an array of NumPy, got list",
    ),
    "dtype": (
        lambda name, array: {name: array.astype(np.float32)},
        "the data has dtype float32; convert it with input_sets",
    ),
    "array": (lambda name, array: array, "must map names .*, got ndarray; the model takes"),
    "sequence": (lambda name, array: [array], "must map names .*, got list; the model takes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_set_of_inputs_is_refused(session: Session, what: str) -> None:
    name, array = drawn(session.model)
    make, message = WRONG[what]
    given = make(name, array)
    ways: dict[str, Callable[[], object]] = {
        "infer": lambda: session.infer(given),
        "expect": lambda: session.expect([given] * 2),
        "expect one of": lambda: session.expect(({name: array}, given)),
    }
    for way, refused in ways.items():
        with pytest.raises(InputError, match=message) as failed:
            refused()
        assert ("set 1 of those expected" in str(failed.value)) == (way == "expect one of")


def test_as_many_elements_in_their_order_are_taken(session: Session) -> None:
    """As a run takes them from a file: without dimensions, or with further ones of size 1."""
    name, array = drawn(session.model)
    wanted = session.infer({name: array}).outputs
    for given in (array.ravel(), array[np.newaxis], array[:, np.newaxis]):
        found = session.infer({name: given}).outputs
        assert all(np.array_equal(found[key], wanted[key]) for key in wanted)
        ((row,),) = [run(session.file, [{name: given}]).rows]
        assert np.array_equal(row.tensor, wanted[row.name])


@pytest.mark.parametrize("given", ["model_edgetpu.tflite", Path("model_edgetpu.tflite"), (), None])
def test_a_session_is_of_a_model(given: object) -> None:
    with pytest.raises(InputError, match=r"open_models.*given is") as failed:
        Session(given)  # type: ignore[arg-type]
    if given:
        assert "model_edgetpu.tflite" in str(failed.value)


class Read(Sequence[dict[str, AnyArray]]):
    """Sets that are made when they are asked for, one of them wrong."""

    def __init__(self, sets: Sequence[dict[str, AnyArray]], wrong: int) -> None:
        self._sets, self._wrong = sets, wrong

    def __len__(self) -> int:
        return len(self._sets)

    @overload
    def __getitem__(self, index: int) -> dict[str, AnyArray]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, AnyArray]]: ...
    def __getitem__(self, index: Any) -> Any:
        return {} if index == self._wrong else self._sets[index]


def test_of_sets_that_are_read_the_first_one_is_looked_at(dense: BoundModel) -> None:
    """The others fail when their turn comes, and leave those before and after as they are."""
    sets = random_inputs(dense.ports, seed=3, runs=MANY)
    plain, session = Session(dense, lifts=False), Session(dense)
    with pytest.raises(InputError, match=r"set 0 of those expected: .*no data for"):
        session.expect(Read(sets, 0))
    session.expect(Read(sets, 5))
    for number, each in enumerate(sets):
        given = {} if number == 5 else each
        if not given:
            with pytest.raises(InputError, match="no data for"):
                session.infer(given)
            continue
        found, wanted = session.infer(given).outputs, plain.infer(given).outputs
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def nothing() -> Iterator[dict[str, AnyArray]]:
    yield from ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("100", "got str"),
        (b"100", "got bytes"),
        (1000.0, "got float"),
        (None, "got NoneType"),
        ({}, "got dict"),
        (nothing(), "got generator; if memory does not hold all sets, give a list of some"),
        (range(64), "set 0 of those expected: .*got int"),
        ([1, 2], "set 0 of those expected: .*got int"),
        (-1, "must be >= 0, got -1"),
    ],
)
def test_what_is_neither_sets_nor_a_number_is_refused(
    session: Session, given: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        session.expect(given)
    if not isinstance(given, list | range):
        with pytest.raises(InputError, match=message):
            session.expect(1, given)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"strict": True}, "a strict chip looks at each run"),
        ({"lifts": False}, "the session is one that does not lift"),
    ],
)
def test_what_is_excluded_says_so_where_many_are_expected(
    dense: BoundModel, options: dict[str, bool], reason: str
) -> None:
    sets = list(random_inputs(dense.ports, seed=3, runs=ahead.REPEATED))
    session = Session(dense, **options)  # type: ignore[arg-type]
    for few in (sets[: ahead.LEAST_INPUTS - 1], ahead.REPEATED - 1):
        session.expect(few)
        assert session.lifted is None
    for many in (sets, ahead.REPEATED):
        session.expect(many)
        assert session.lifted == Lifted(reason=reason)


@pytest.mark.parametrize(
    "options", [{"taps": [Tap.parse("layer:0")]}, {"until": StopPoint.parse("layer:0")}]
)
def test_who_looks_inside_is_told_that_nothing_is_lifted(
    dense: BoundModel, options: dict[str, Any]
) -> None:
    sets = random_inputs(dense.ports, seed=3, runs=MANY)
    session = Session(dense)
    session.expect(sets)
    session.infer(sets[0], **options)
    assert session.lifted == Lifted(reason="stop points and taps look at each run")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"strict": True}, "a strict chip looks at each run"),
        ({"taps": [Tap.parse("layer:0")]}, "stop points and taps look at each run"),
        ({"until": StopPoint.parse("layer:0")}, "stop points and taps look at each run"),
    ],
)
def test_a_report_says_why_inputs_do_not_go_together(
    path: Path, options: dict[str, Any], reason: str
) -> None:
    found = run(path, runs=ahead.LEAST_INPUTS, **options)
    assert found.figures["lifted"] == Lifted(reason=reason)
    assert lifted_line(found.figures) == [f"each inference by itself: {reason}"]
    assert "lifted" not in run(path, runs=2, **options).figures


def test_what_was_lifted_is_said_in_one_line() -> None:
    """Whether inferences were made at once or one by one."""
    assert str(Lifted(1, 0.24)) == "1 inference on the lifted program, ready in 0.2 s"
    assert str(Lifted(39, 1.0)) == "39 inferences on the lifted program, ready in 1.0 s"
