"""What Linux tells of processes other than this one, each of which may end while it is asked."""

from pathlib import Path


def children_of(process: int) -> set[int]:
    """Processes that any thread of this one has started and that have not been waited for."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return {int(each) for task in tasks for each in (task / "children").read_text().split()}


def is_gone(process: int) -> bool:
    """
    Whether a process has ended, waited for or not.

    One that ends between the opening of its file and the reading is not a missing file, but a
    process that is not there any more.
    """
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"
