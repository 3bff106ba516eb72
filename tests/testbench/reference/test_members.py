"""docs/members.md: every member of the documents has a row, and each row is what happens."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum, IntFlag
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.executorch import schema
from darwinn_formats.uses import Part, Use, tables_of, uses_of
from darwinn_reference.members import DOCUMENTS, rows
from member_trials import REFUSED_FIELDS, REFUSED_PARTS, TRIALS
from member_witnesses import Witness, witnesses
from read_members import members_read

Member = tuple[type[Any], str]
PARTS = [part for document in DOCUMENTS.values() for part in document.parts]
MODULES = [document.tables for document in DOCUMENTS.values() if document.tables]


# --- the documents --------------------------------------------------------------------------------


@pytest.fixture
def seeds(corpus: Path) -> Path:
    """Folder of the five documents."""
    folder = corpus.parent / "seeds"
    if not folder.is_dir():
        pytest.skip("the documents of the formats are not at hand")
    return folder


_BODY = re.compile(r"\b(enum|table|struct|union) (\w+) ?(?:: ?\w+)?(?: \(\w+\))? ?\{([^}]*)\}")
_FIELD = re.compile(r"\b([a-z]\w*):\s*\[?\w+\]?\s*(?:=\s*[\w.]+)?\s*(?:\([^)]*\))?;")
_VALUE = re.compile(r"\b([A-Z]\w*) = \d+,")
_WORD = re.compile(r"\b([A-Z]\w*),")


def members_of_schema(text: str) -> set[str]:
    """Names ``table.field``, ``enumeration.VALUE``, ``union.Table`` of a schema; comments go."""
    text = re.sub(r"//[^\n]*\n", "\n", text)
    found = set()
    for kind, name, body in _BODY.findall(text):
        inside = {"enum": _VALUE, "union": _WORD}.get(kind, _FIELD).findall(body)
        found |= {f"{name}.{each}" for each in inside} or {name}
    return found


def members_of_grammar(text: str) -> set[str]:
    """Names ``PRODUCTION.Part`` of a grammar, and ``section.NAME`` of the headings."""
    found = set()
    for block in re.findall(r"```none\n(.*?)```", text, re.DOTALL):
        for name, body in re.findall(r"^(\w+) ?:*:?= ?(.*?)(?=^\w+ ?:*:?=|\Z)", block, re.M | re.S):
            found |= {f"{name}.{part}" for part in re.findall(r'<"?(\w+)"?>', body)} or {name}
    for heading in re.findall(r"^### (\w+) Section$", text, re.M):
        found.add("section." + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", heading).upper())
    return found


def members_of_layout(text: str) -> set[str]:
    """Headings of the boxes of a picture, and places of bytes."""
    boxes = {box.strip() for box in re.findall(r"[│├]([A-Z][^│┤]*)[│┤]", text)}
    return boxes | set(re.findall(r"\[\d+\.\.[\d?]+\]", text))


READERS = {
    "executorch-pte-file-format": members_of_layout,
    "tfrt-binary-executable-format": members_of_grammar,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_member_of_the_document_has_a_row(name: str, seeds: Path) -> None:
    wanted = READERS.get(name, members_of_schema)((seeds / f"{name}.txt").read_text())
    assert len(wanted) > 10
    known = {row.name for row in DOCUMENTS[name].rows()}
    known |= {row.group for row in DOCUMENTS[name].rows()}
    known |= {row.member.partition(" ")[0] for row in DOCUMENTS[name].rows()}
    assert wanted - known == set()


@pytest.mark.parametrize("name", ["darwinn-executable-schema", "executorch-program-schema"])
def test_a_row_that_the_document_lacks_says_so(name: str, seeds: Path) -> None:
    wanted = members_of_schema((seeds / f"{name}.txt").read_text())
    tables = {uses_of(table).name for table in tables_of(DOCUMENTS[name].tables)}
    for row in DOCUMENTS[name].rows():
        if row.group in tables and row.member:
            assert row.is_later is (row.name not in wanted), row.name


@pytest.mark.parametrize("module", MODULES)
def test_every_table_and_enumeration_of_the_loader_has_rows(module: str) -> None:
    documented = {
        values for document in DOCUMENTS.values() for values, _ in document.enumerations.values()
    }
    mine = [each for each in vars(import_module(module)).values() if isinstance(each, type)]
    for each in mine:
        if each.__module__ == module and issubclass(each, IntEnum | IntFlag):
            assert each in documented
    assert len(tables_of(module)) > 10


def test_no_member_has_two_rows() -> None:
    names = [(document, row.name) for document, row in rows()]
    assert sorted(set(names)) == sorted(names)


# --- what happens ---------------------------------------------------------------------------------


Read = Mapping[str, set[Member]]


def observed(witness: Witness, tables: list[type[Any]]) -> Read:
    """Members that are read while files are loaded, shown and executed."""
    read: dict[str, set[Member]] = defaultdict(set)
    for data in witness.files:
        with members_read(tables) as seen:
            file = witness.load(data)
        read["load"] |= seen
        for name, what in (("show", witness.show), ("execute", witness.execute)):
            with members_read(tables) as seen:
                what(file)
            read[name] |= seen
    return read


@pytest.fixture(scope="module")
def read() -> Mapping[str, Read]:
    """What is read of the tables of each format, by module."""
    return {name: observed(each, tables_of(name)) for name, each in witnesses().items()}


@pytest.mark.parametrize("module", MODULES)
def test_what_is_said_of_a_member_is_what_is_read(module: str, read: Mapping[str, Read]) -> None:
    """What is shown or executed is read then, or decides at loading; nothing else is read then."""
    wrong = []
    for table in tables_of(module):
        for field, use in uses_of(table).members.items():
            for flag, name in ((Use.SHOWN, "show"), (Use.EXECUTED, "execute")):
                now = (table, field) in read[module][name]
                before = (table, field) in read[module]["load"]
                if (flag in use and not now and not before) or (now and flag not in use):
                    wrong.append(f"{table.__name__}.{field}: {name} {now}, load {before}")
    assert not wrong


@pytest.mark.parametrize("module", ["darwinn_formats.executorch.schema"])
def test_a_read_that_is_not_said_is_noticed(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that showed a member that is only loaded would make the page wrong."""
    witness = witnesses()[module]

    def show(file: Any) -> None:
        assert file.program.execution_plan[0].container_meta_type is not None

    found = observed(replace(witness, files=witness.files[:1], show=show), tables_of(module))
    assert (schema.ExecutionPlan, "container_meta_type") in found["show"]
    assert (schema.ExecutionPlan, "container_meta_type") not in found["execute"]


# --- what is refused ------------------------------------------------------------------------------


def refusal_of(trial: Callable[[], object]) -> str:
    """The message with which something is refused, or the empty text."""
    try:
        trial()
    except (ExecutionError, FormatError) as error:
        return str(error)
    return ""


ROWS = [
    (name, values, value, fate)
    for document in DOCUMENTS.values()
    for name, (values, fate) in document.enumerations.items()
    for value in values
]


def test_every_enumeration_is_tried() -> None:
    assert {name for name, *_ in ROWS} == set(TRIALS)


@pytest.mark.parametrize(
    ("name", "value", "fate"),
    [pytest.param(name, value, fate, id=f"{name}.{value.name}") for name, _, value, fate in ROWS],
)
def test_a_value_is_refused_only_as_its_row_says(name: str, value: Any, fate: Any) -> None:
    use, words = fate(value)
    message = refusal_of(lambda: TRIALS[name](value))
    assert bool(message) is bool(words), message
    assert words in message
    assert not (Use.EXECUTED in use and words)


@pytest.mark.parametrize(
    ("table", "field"),
    [
        pytest.param(table, field, id=f"{table.__name__}.{field}")
        for module in MODULES
        for table in tables_of(module)
        for field in uses_of(table).refused
    ],
)
def test_a_field_is_refused_in_the_words_of_its_row(table: type[Any], field: str) -> None:
    assert uses_of(table).refused[field] in refusal_of(REFUSED_FIELDS[table, field])


@pytest.mark.parametrize(
    "part", [pytest.param(part, id=part.name or part.section) for part in PARTS if part.refused]
)
def test_a_part_is_refused_in_the_words_of_its_row(part: Part) -> None:
    assert part.refused in refusal_of(REFUSED_PARTS[part.name or part.section])
