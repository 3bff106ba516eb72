"""What Linux tells of processes, each of which may end while it is asked."""

from pathlib import Path


def told_of(process: int, name: str) -> bytes:
    """A file about a process; nothing once that has ended.

    One that ends between the opening of its file and the reading is not a missing file, but a
    process that is not there any more.
    """
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def is_gone(process: int) -> bool:
    """Whether a process has ended, waited for or not."""
    status = told_of(process, "stat")
    return not status or status.rpartition(b")")[2].split()[0] in b"ZX"
