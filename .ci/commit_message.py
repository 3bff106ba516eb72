"""Checks a commit message in a file, or with ``--log`` those of all commits since the last release.

The hook ``commit-msg`` gives a file. ``--log`` needs history: if git is missing or the checkout is
shallow, it says so and passes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_LONGEST = 72
_START = "32912a078a057ab3137eb5cab082729555777dbf"
"""Earlier commits were made before there was a check; used until there is a tag."""
_REMOVED_BY_GIT = re.compile(r"^# -+ >8 -+$[\s\S]*|^#.*\n?", re.MULTILINE)
"""Comments; from the scissors on, `git commit --verbose` shows the change."""
_SQUASHED_LATER = re.compile(r"((fixup|squash|amend)! )+")


def faults_of(message: str) -> list[str]:
    """List the faults of a message as git keeps it."""
    subject, *rest = message.strip().split("\n")
    subject = _SQUASHED_LATER.sub("", subject)
    found = []
    if not subject:
        found.append("the subject is missing")
    if len(subject) > _LONGEST:
        found.append(f"the subject has {len(subject)} characters, at most {_LONGEST} are allowed")
    if subject.endswith("."):
        found.append("the subject ends with a full stop")
    if rest and rest[0].strip():
        found.append("the second line is not blank")
    return [f"{fault}: {subject}" for fault in found]


def faults_since(start: str) -> list[str]:
    """List the faults of all commits after `start`, merges excepted, with their names."""
    log = _git("log", "--no-merges", "--format=%H%n%B%x00", f"{start}..HEAD")
    entries = [each.strip().partition("\n") for each in log.split("\0") if each.strip()]
    return [f"{name[:10]}: {fault}" for name, _, text in entries for fault in faults_of(text)]


def _git(*words: str) -> str:
    root = Path(__file__).parents[1]
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _start() -> str:
    """The commit from which on messages are checked; an error if the history does not have it."""
    try:
        return _git("describe", "--tags", "--abbrev=0", "--match", "v*").strip()
    except subprocess.CalledProcessError:
        _git("merge-base", "--is-ancestor", _START, "HEAD")
        return _START


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    if sys.argv[1:] != ["--log"]:
        found = faults_of(_REMOVED_BY_GIT.sub("", Path(sys.argv[1]).read_text()))
    else:
        try:
            found = faults_since(_start())
        except (OSError, subprocess.CalledProcessError):
            print("commit messages: not checked, this checkout has no git history to check")
            return 0
    for fault in found:
        print(f"commit message: {fault}", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
