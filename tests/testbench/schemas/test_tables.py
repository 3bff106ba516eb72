"""The pages list every option of every command, as it is now."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import application
from darwinn_testbench.schemas.option_tables import table_of
from darwinn_testbench.schemas.tables import main, without_table

DOCUMENTS = Path(__file__).parents[3] / "docs"
PAGES = {path.name: path.read_text() for path in DOCUMENTS.glob("cli*.md")}
_GROUP: Any = typer.main.get_command(application())
_TABLES = {
    name: found[2]
    for page in PAGES.values()
    for found in re.finditer(r"<!-- options of ([\w, -]+): begin -->(.*?)<!-- ", page, re.DOTALL)
    for name in found[1].split(", ")
}


def test_the_tables_are_up_to_date() -> None:
    assert main(["--check", str(DOCUMENTS)]) == 0, "run make docs"


@pytest.mark.parametrize("command", ["darwinn", *_GROUP.commands])
def test_every_option_stands_in_the_table_of_its_command(command: str) -> None:
    params = _GROUP.params if command == "darwinn" else commands.load(command).params
    options = [each for each in params if each.param_type_name == "option"]
    missing = [each.opts[0] for each in options if f"`{each.opts[0]}`" not in _TABLES[command]]
    assert missing == []


def test_an_option_is_shown_with_all_that_is_known_of_it() -> None:
    rows = [re.split(r" ?\| ?", line)[1:-1] for line in table_of("verify").splitlines()]
    found = {row[0]: row[1:4] for row in rows if len(row) == 5}
    assert found["`--model`"] == ["`N`; at least 0", "`0`", "DarwiNN files"]
    assert found["`--schedules`"] == ["`N`; 0 to 1,000,000", "`0`", "DarwiNN files"]
    assert found["`--schedule-seed`"][2] == "DarwiNN files; with `--schedules`"
    assert found["`--inputs-kind`"] == ["`KIND`; repeatable", "", ""]
    assert found["`--waves`"] == ["`FILE.fst`", "", "with `--engine rtl`"]
    assert found["`--engine`"][:2] == ["`model`, `original`, `rtl`", "`model`"]
    assert "`original`: ExecuTorch and IREE programs" in found["`--engine`"][2]


def test_one_table_of_several_commands_says_in_what_they_differ() -> None:
    assert "| `0` (classify); `0.4` (detect) |" in table_of("classify, detect")
    assert "`--update` (cycles)" in table_of("cycles, dma")


def test_a_command_without_a_table_and_an_outdated_table_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert without_table(PAGES.values()) == []
    (tmp_path / "ci.md").write_text((DOCUMENTS / "ci.md").read_text())
    for name, text in PAGES.items():
        changed = re.sub("<!-- options of (warm-up|diff): .*-->", "", text)
        (tmp_path / name).write_text(changed.replace("| `--update` |", "| `--updated` |"))
    assert main(["--check", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "options of warm-up have" in printed
    assert "options of diff have" in printed
    assert f"{tmp_path / 'cli-time.md'} is not up to date" in printed
    assert printed.count("\n") == 3
    main([str(tmp_path)])
    assert "| `--update` |" in (tmp_path / "cli-time.md").read_text()


def test_a_mark_of_no_command_is_an_error() -> None:
    with pytest.raises(ValueError, match="verfy: there is no such command"):
        table_of("verfy")
