"""Everything that writes in a shared memory folder, and what must hold of the folder after a fault."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from memd import disk
from memd.memory.shared.lock import StoreLock
from memd.memory.shared.topics import TopicStore
from memd.protocol_memory import WriteTopic
from support_topics import Home, put, read, topic, tree

INDEX = b"# Memory Index\n\n- [One](one.md) 2026-09-05 -- first\n- [Two](two.md) [pin] 2026-09-05 -- second\n"
TEXTS = (b"text one", b"text two", b"their a", b"our a", b"our b", b"text lost")

Work = Callable[[TopicStore], object]


def scene(top: Path) -> Home:
    """A shared folder with two topics, one that is not listed, and one that was removed."""
    home = Home(top)
    put(home.shared + b"/MEMORY.md", INDEX)
    put(home.shared + b"/one.md", topic("One", "text one"))
    put(home.shared + b"/two.md", topic("Two", "text two"))
    put(home.shared + b"/lost.md", topic("Lost", "text lost"))
    put(home.shared + b"/a.md", topic("A", "their a"))
    put(home.shared + b"/.ocl-removed", b"a.md\n")
    return home


def with_local(home: Home) -> Home:
    put(
        home.local + b"/MEMORY.md",
        b"# Memory Index\n\n- [Our A](x.md) -- our a\n- [Our B](b.md) [pin] -- our b",
    )
    put(home.local + b"/x.md", topic("X", "our a"))
    put(home.local + b"/b.md", topic("B", "our b"))
    put(home.shared + b"/x.md", b"their x")
    return home


def append(topics: TopicStore) -> object:
    return topics.write(WriteTopic(topic="One", summary="newer", body="the addition"))


def replace(topics: TopicStore) -> object:
    return topics.write(WriteTopic(topic="One", summary="newer", body="the addition", replace=True))


def create(topics: TopicStore) -> object:
    return topics.write(WriteTopic(topic="New", summary="new", body="the addition", pin=True))


def bring_back(topics: TopicStore) -> object:
    return topics.write(WriteTopic(topic="A", summary="back", body="the addition"))


def remove(topics: TopicStore) -> object:
    return topics.remove("One")


def repair(topics: TopicStore) -> object:
    return topics.repair()


def carry_over(topics: TopicStore) -> object:
    return topics.carry_overs.local()


FLOWS: dict[str, tuple[Work, Callable[[Home], Home]]] = {
    "append": (append, lambda home: home),
    "replace": (replace, lambda home: home),
    "create": (create, lambda home: home),
    "bring back": (bring_back, lambda home: home),
    "remove": (remove, lambda home: home),
    "repair": (repair, lambda home: home),
    "carry over": (carry_over, with_local),
}


def check_nothing_lost(home: Home, flow: str) -> None:
    """In the store, or for a text that was replaced on purpose where such texts are kept."""
    texts = [*tree(home.shared).values(), *tree(home.kept).values(), *tree(home.local).values()]
    whole = b"\n\0".join(texts)
    for text in TEXTS:
        if text in (b"our a", b"our b") and flow != "carry over":
            continue
        assert text in whole, (flow, text)


def check_whole(home: Home) -> None:
    for name, body in tree(home.shared).items():
        if name.endswith(b".md"):
            assert body.strip(), name
    assert home.index().startswith(b"# Memory Index\n")
    assert home.index().count(b"(two.md) [pin]") == 1


def check_done(home: Home, flow: str) -> None:
    """What was asked is there, once."""
    files = home.files()
    assert len(files) == len(set(files))
    names = {"append": b"one.md", "replace": b"one.md", "create": b"new.md", "bring back": b"a.md"}
    if flow in names:
        assert read(home.shared + b"/" + names[flow]).count(b"the addition") == 1, flow
        assert files.count(names[flow].decode()) == 1
        assert names[flow] not in read(home.shared + b"/.ocl-removed").split()
    elif flow == "remove":
        assert "one.md" not in files
        assert read(home.shared + b"/.ocl-removed") == b"a.md\none.md\n"
    elif flow == "repair":
        assert files == ["one.md", "two.md", "lost.md"]
    else:
        assert files == ["one.md", "two.md", "x-memd.md", "b.md"]
        assert os.path.exists(home.local + b"/.shared-dir-migrated")


def check_settled(home: Home) -> None:
    """No lock, no half-written copy anywhere, nothing left to be finished."""
    for top in (home.shared, home.local, home.state, home.kept):
        for at, _, names in os.walk(top):
            assert not [name for name in names if disk.is_temporary(name)], at
    assert not os.path.exists(home.shared + b"/.lock")
    before = tree(home.home)
    assert home.topics().recover() is False
    assert tree(home.home) == before


def retry(work: Work, home: Home, flow: str) -> None:
    """Another process has another number, so the dead one's lock is seen as such."""
    real = os.getpid
    topics = home.topics(make_lock=_dead_before)
    assert real() == os.getpid()
    work(topics)


def _dead_before(state: bytes, clock: object) -> object:
    return StoreLock(state, clock, alive=lambda pid: False)  # type: ignore[arg-type]
