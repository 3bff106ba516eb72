"""A digest of sources changes with any of them, and with nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from darwinn_formats.files import digest_of_sources


def test_names_and_contents_count(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    (one / "inner").mkdir(parents=True)
    other.mkdir()
    (one / "a.py").write_text("1")
    digests = [digest_of_sources([one, other])]

    def changes() -> bool:
        digests.append(digest_of_sources([one, other]))
        return len({*digests}) == len(digests)

    (one / "a.py").write_text("2")
    assert changes()
    (one / "inner" / "b.py").write_text("1")
    assert changes()
    (one / "inner" / "b.py").rename(one / "b.py")
    assert changes()
    (one / "b.py").rename(other / "b.py")
    assert changes()
    (one / "c.py").symlink_to("nowhere")
    assert changes()
    (one / os.fsdecode(b"\xff.py")).touch()
    assert changes()
    (one / "a.pyc").write_text("1")
    assert digest_of_sources([one, other]) == digests[-1]
    (one / "a.sv").write_text("1")
    assert digest_of_sources([one, other]) == digests[-1]
    assert digest_of_sources([one, other], (".py", ".sv")) != digests[-1]
    assert digest_of_sources([tmp_path / "none"]) == digest_of_sources([tmp_path / "nothing"])
