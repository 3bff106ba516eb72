"""Long work that survives a kill: what the journal has is not done again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, NamedTuple

from darwinn_testbench.regression.journal import Journal, OutcomeType
from darwinn_testbench.regression.pool import Work
from darwinn_testbench.report.progress import ProgressCallback, silent

JOURNAL = "journal.jsonl"

Performer = Callable[[Sequence[Work[OutcomeType]]], Iterator[OutcomeType]]
"""Does tasks and gives their outcomes as they are finished."""


class Interrupted(KeyboardInterrupt):
    """Work that was interrupted; it says how much of it is kept."""


class Resumed(NamedTuple, Generic[OutcomeType]):
    """The outcomes in the order of the tasks; ``known`` of them were in the journal already."""

    outcomes: tuple[OutcomeType, ...]
    known: int


def resume(
    tasks: Sequence[Work[OutcomeType]],
    kind: type[OutcomeType],
    folder: str | os.PathLike[str],
    perform: Performer[OutcomeType],
    *,
    fresh: bool = False,
    again: Callable[[OutcomeType], bool] = lambda _: False,
    progress: ProgressCallback = silent,
) -> Resumed[OutcomeType]:
    """Perform every task whose outcome, of type ``kind``, the journal of ``folder`` lacks.

    With the same folder a later call goes on; ``fresh`` does everything again, ``again`` says which
    outcomes are of no use to it. ``progress`` is called after each task.

    Raises:
        Interrupted: from the keyboard.
        InputError: the journal is in use.
        OSError: it cannot be read or written.
    """
    with Journal(Path(folder) / JOURNAL, kind) as journal:
        if fresh:
            journal.clear(task.key for task in tasks)
        found = {task.key: journal.outcome(task.key) for task in tasks}
        journal.clear(key for key, each in found.items() if each is not None and again(each))
        left = [task for task in tasks if journal.outcome(task.key) is None]
        known = len(tasks) - len(left)
        done = known
        progress("finished before" if known else "starting", known, len(tasks))
        try:
            for outcome in perform(left) if left else ():
                journal.append(outcome)
                done += 1
                progress(outcome.name, done, len(tasks))
        except KeyboardInterrupt:
            same = "the same command without --fresh" if fresh else "the same command"
            raise Interrupted(
                f"{done} of {len(tasks)} done; {same} goes on with the rest"
            ) from None
        outcomes = (
            journal.outcome(task.key) or task.failed("no outcome of it came back") for task in tasks
        )
        return Resumed(tuple(outcomes), known)
