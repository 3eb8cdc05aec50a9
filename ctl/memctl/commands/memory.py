"""memctl memory: the topics that agents keep in the shared memory folder, or in the local store."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from memctl import client, view
from memctl.lines import remark, say
from memctl.paths import shown
from memd import protocol
from memd import protocol_memory as m
from memd.errors import UsageError

R = TypeVar("R", bound=m.Result)

MAX_LEAD = 40  # columns of name, marks and date, up to which summaries line up beside them


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    memory = subparsers.add_parser(
        "memory", description="Topics that agents remember, in ~/.agents/memory or in memd's own store."
    )
    actions = memory.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, says: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=says, description=says[:1].upper() + says[1:] + ".")
        if name != "browse":
            parser.add_argument("--json", action="store_true", help="one JSON document")
        return parser

    action("list", "list the topics")
    topic = "a topic's name, its file, or a part of the name that no other topic has"
    for name, says in (
        ("read", "print a topic"),
        ("remove", "take a topic off the index; its file stays"),
        ("pin", "keep a topic from being removed or marked as old"),
        ("unpin", "take the pin off"),
    ):
        action(name, says).add_argument("topic", metavar="TOPIC", help=topic)
    action("restore", "undo a removal").add_argument("file", metavar="TOPIC", help="its name or its file")
    write = action("write", "write a topic: the text comes on standard input and is added to what is there")
    write.add_argument("topic", metavar="TOPIC", help="its name")
    write.add_argument("--summary", default="", metavar="S", help="what it is about, in a line")
    write.add_argument("--pin", action="store_true", help="pin it as well")
    write.add_argument("--replace", action="store_true", help="put the text in place of the old one")
    write.add_argument("--key", default="", metavar="K", help="the same for each try of one write")
    search = action("search", "find topics that have all the words")
    search.add_argument("words", nargs="+", metavar="WORD", help="what the topics must have")
    search.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many")
    action("repair", "list topic files that the index has lost")
    carry = action("carry-over", "copy the local topics, or another tool's, into the store in use")
    carry.add_argument("--from", dest="source", metavar="DIR", help="the store of openclaude or openpi")
    claude = action("import-claude", "copy topics of an agent's Claude Code memory into the store in use")
    claude.add_argument("files", nargs="*", metavar="FILE", help="these; without any it shows what there is")
    claude.add_argument("--agent", default=".", metavar="DIR", help="a directory of the agent")
    claude.add_argument("--all", action="store_true", help="all of them")
    context = action("context", "print the block about memory that agents are given")
    context.add_argument("--limit", type=int, default=0, metavar="BYTES", help="at most so long")
    context.add_argument("--harness", default="", metavar="H", help="as the start hook of H would get it")
    action("browse", "look through the topics in a terminal")


def run(options: argparse.Namespace) -> int:
    match options.action:
        case "list":
            return _list(options)
        case "read":
            return _read(options)
        case "write":
            return _write(options)
        case "remove" | "pin" | "unpin" | "restore":
            return _change(options)
        case "search":
            return _search(options)
        case "repair":
            return _repair(options)
        case "carry-over" | "import-claude":
            return _carry_over(options)
        case "context":
            return _context(options)
    return _browse()


def ask(action: m.AnyAction, expect: type[R]) -> R:
    """The daemon's result; what a person should know besides goes to standard error."""
    reply = client.ask(
        protocol.Memory(action=action, config_dir=client.client_config_dir()), protocol.MemoryReply
    )
    if not isinstance(reply.result, expect):
        raise UsageError(
            "memd answered something else than was asked", remedy="Run `memctl up` to restart an older memd."
        )
    for note in reply.result.notes:
        print(note, file=sys.stderr)
    return reply.result


# ------------------------------------------------------------------ reading


def _list(options: argparse.Namespace) -> int:
    found = ask(m.ListTopics(), m.Topics)
    if options.json:
        view.print_json(
            {
                **_store(found),
                "unlisted": found.unlisted,
                "topics": [topic_json(topic) for topic in found.topics],
            }
        )
        return 0
    if not found.topics:
        print(f"no topics in {shown(found.store)}", file=sys.stderr)
    widest = max((len(topic.name) for topic in found.topics), default=0)
    marked = max((len(_marks(topic)) for topic in found.topics), default=0)
    lead = widest + 2 + (marked + 2 if marked else 0) + len("2026-12-31  ")
    hang = " " * (lead if lead <= MAX_LEAD else 4)
    if lead > MAX_LEAD:
        widest = marked = 0
    for topic in found.topics:
        marks = f"{_marks(topic):<{marked}}  " if marked or _marks(topic) else ""
        say(f"{topic.name:<{widest}}  {marks}{topic.date[:10]:<10}  {topic.summary}".rstrip(), hang)
    if found.unlisted:
        remark(f"{view.count(found.unlisted, 'topic file')} not in the index: `memctl memory repair`")
    return 0


def _marks(topic: m.Topic) -> str:
    words = (
        "pinned" if topic.is_pinned else "",
        "old?" if topic.is_stale else "",
        "missing" if topic.is_missing else "",
    )
    return " ".join(word for word in words if word)


def _read(options: argparse.Namespace) -> int:
    found = ask(m.ReadTopic(topic=text(options.topic)), m.TopicText)
    if options.json:
        view.print_json(
            {
                **_store(found),
                "topic": topic_json(found.topic),
                "path": shown(found.path),
                "content": found.content.decode("utf-8", "replace"),
            }
        )
        return 0
    sys.stdout.buffer.write(found.content)
    if not found.content.endswith(b"\n"):
        sys.stdout.buffer.write(b"\n")
    return 0


def _search(options: argparse.Namespace) -> int:
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit}: it must be at least 1")
    words = " ".join(text(word) for word in options.words)
    found = ask(m.SearchTopics(words=words, limit=options.limit), m.Hits)
    if options.json:
        view.print_json(
            {
                **_store(found),
                "hits": [{**topic_json(hit.topic), "lines": list(hit.lines)} for hit in found.hits],
                "left_out": found.left_out,
            }
        )
        return 0
    for hit in found.hits:
        say(hit.topic.name + (f"  {hit.topic.summary}" if hit.topic.summary != hit.topic.name else ""))
        for line in hit.lines:
            say(f"    {shown(line.encode())}", "    ")
    if found.left_out:
        print(f"{found.left_out} more; --limit shows them", file=sys.stderr)
    if not found.hits:
        print("no topic has all these words", file=sys.stderr)
    return 0


def _context(options: argparse.Namespace) -> int:
    block = ask(m.Context(limit=max(0, options.limit), harness=text(options.harness)), m.Block)
    if options.json:
        view.print_json({**_store(block), "text": block.text, "reason": block.reason})
        return 0
    sys.stdout.write(block.text)
    if block.reason:
        print(block.reason, file=sys.stderr)
    return 0


def _browse() -> int:
    try:
        from memctl import browse
    except ModuleNotFoundError as reason:
        if (reason.name or "").partition(".")[0] != "textual":
            raise
        raise UsageError(
            "browsing needs textual, which is not installed",
            remedy=f"Install it beside memd: {sys.executable} -m pip install textual",
        ) from None
    return browse.run()


# ------------------------------------------------------------------ changing


def _write(options: argparse.Namespace) -> int:
    if sys.stdin.isatty():
        print("Type the text of the topic, then Ctrl-D:", file=sys.stderr)
    raw = sys.stdin.buffer.read(m.MAX_BODY_BYTES + 1)
    try:
        body = raw.decode("utf-8")
    except UnicodeDecodeError:
        if len(raw) <= m.MAX_BODY_BYTES:
            raise UsageError("the text is not UTF-8", remedy="Convert it, and write it again.") from None
        body = raw.decode("utf-8", "replace")  # it was cut within a letter, and is refused for its length
    action = m.WriteTopic(
        topic=text(options.topic),
        summary=text(options.summary),
        body=body,
        pin=options.pin,
        replace=options.replace,
        key=text(options.key) or secrets.token_hex(16),
    )
    return _told(ask(action, m.Changed), options.json)


def _change(options: argparse.Namespace) -> int:
    action: m.AnyAction
    match options.action:
        case "remove":
            action = m.RemoveTopic(topic=text(options.topic))
        case "restore":
            action = m.RestoreTopic(file=text(options.file))
        case _:
            action = m.PinTopic(topic=text(options.topic), pin=options.action == "pin")
    return _told(ask(action, m.Changed), options.json)


def _told(done: m.Changed, as_json: bool) -> int:
    if as_json:
        view.print_json(
            {
                **_store(done),
                "outcome": done.outcome,
                "topic": topic_json(done.topic),
                "path": shown(done.path),
                "kept": shown(done.kept) if done.kept else None,
            }
        )
        return 0
    words = {
        "repeated": "this was written already; nothing was added",
        "unchanged": "nothing to change",
        "removed": f"removed; `memctl memory restore {done.topic.file}` undoes it",
    }
    print(f"{done.topic.name} ({done.topic.file}): {words.get(done.outcome, done.outcome)}")
    if done.kept:
        print(f"the text that was replaced is kept as {shown(done.kept)}", file=sys.stderr)
    return 0


def _repair(options: argparse.Namespace) -> int:
    done = ask(m.RepairIndex(), m.Repaired)
    if options.json:
        view.print_json(
            {
                **_store(done),
                "added": [topic_json(topic) for topic in done.added],
                "reported": unlisted_json(done.reported),
            }
        )
        return 0
    for topic in done.added:
        print(f"listed {topic.file} as {topic.name}")
    _print_left(done.reported)
    print(f"{view.count(len(done.added), 'topic')} listed" if done.added else "the index has lost no topic")
    return 0


def _carry_over(options: argparse.Namespace) -> int:
    action: m.AnyAction
    if options.action == "import-claude":
        files = tuple(text(file) for file in options.files)
        action = m.ImportClaude(path=_absolute(options.agent), files=files, everything=options.all)
    else:
        action = m.CarryOver(source=_absolute(options.source) if options.source else b"")
    done = ask(action, m.CarriedOver)
    if options.json:
        view.print_json(
            {
                **_store(done),
                "outcome": done.outcome,
                "source": shown(done.source),
                "topics": [
                    {
                        "file": topic.file,
                        "to": topic.to,
                        "name": topic.name,
                        "copied": topic.is_copied,
                        "listed": topic.is_listed,
                    }
                    for topic in done.topics
                ],
                "left": unlisted_json(done.left),
            }
        )
        return 0
    looked = done.outcome == "looked"
    for topic in done.topics:
        what = "there already" if not topic.is_copied and not topic.is_listed else f"as {topic.to}"
        print(f"{topic.file}  {topic.name}  ({what})")
    _print_left(done.left)
    print(
        {
            "carried": f"{view.count(len(done.topics), 'topic')} in {shown(done.store)}",
            "done-before": "the local topics were carried over before",
            "nothing": f"nothing to carry over from {shown(done.source)}",
            "same-folder": "that is the very folder in use",
            "looked": "name the files to take, or give --all" if done.topics else "there are no topics",
        }[done.outcome],
        file=sys.stderr if looked else sys.stdout,
    )
    return 0


# ------------------------------------------------------------------ parts


def topic_json(topic: m.Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "file": topic.file,
        "pinned": topic.is_pinned,
        "stale": topic.is_stale,
        "missing": topic.is_missing,
        "date": topic.date or None,
        "summary": topic.summary,
    }


def unlisted_json(rows: Iterable[m.Unlisted]) -> list[dict[str, str]]:
    return [{"file": shown(row.file), "reason": row.reason, "remedy": row.remedy} for row in rows]


def _print_left(rows: Iterable[m.Unlisted]) -> None:
    for row in rows:
        print(f"not taken: {shown(row.file)}: {row.reason}", file=sys.stderr)
        if row.remedy:
            print(f"    -> {row.remedy}", file=sys.stderr)


def _store(result: m.Result) -> dict[str, Any]:
    return {"store": shown(result.store), "shared": result.is_shared, "notes": list(result.notes)}


def text(word: str) -> str:
    """A word of the command line, which must be text to be sent. raises UsageError"""
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{shown(os.fsencode(word))} is not UTF-8", remedy="Name it by text.") from None
    return word


def _absolute(path: str) -> bytes:
    return os.path.abspath(os.fsencode(path))
