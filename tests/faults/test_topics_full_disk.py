"""A disk that is full while memory is written: that is told, nothing is lost, and no restart is needed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.errors import DiskError
from memd.protocol_memory import WriteTopic
from support_full_disk import fill, free
from support_topics import Home, put, read, topic, tree

pytestmark = pytest.mark.faults

PASSES = 10


@pytest.fixture(params=["size=256k", "size=4m,nr_inodes=40"])
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system that is soon full: of bytes, or of names."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_told_and_nothing_is_lost(small: Path) -> None:
    home = Home(small)
    put(home.shared + b"/MEMORY.md", b"# Memory Index\n\n- [One](one.md) 2026-09-05 -- first\n")
    put(home.shared + b"/one.md", topic("One", "text one"))
    topics = home.topics()
    topics.pin("One", True)
    written = 0
    for number in range(PASSES):
        before = {name: body for name, body in tree(home.shared).items() if name.endswith(b".md")}
        fill(small)
        for body in (f"small {number}", f"large {number} " + "y" * 20_000):
            with pytest.raises(DiskError) as refused:
                topics.write(WriteTopic(topic="One", summary="s", body=body))
            assert "space" in refused.value.remedy
        for work in (lambda: topics.pin("One", False), lambda: topics.remove("One"), topics.repair):
            try:
                work()
            except DiskError:
                continue
        assert topics.read("One").content == before[b"one.md"]
        after = {name: body for name, body in tree(home.shared).items() if name.endswith(b".md")}
        assert after[b"one.md"] == before[b"one.md"]
        free(small)
        topics.restore("one.md")
        topics.pin("One", True)
        done = topics.write(WriteTopic(topic="One", summary="s", body=f"line {number}."))
        assert done.outcome == "appended"
        written += 1
        text = read(home.shared + b"/one.md").decode()
        assert all(text.count(f"line {n}.") == 1 for n in range(written))
        assert "small" not in text
    assert home.files() == ["one.md"]
    assert not [name for name in os.listdir(home.shared) if name.startswith(b".memd-")]
