"""Stand-ins for Kimi Code, Command Code and Grok Build where the real ones are not needed.

They keep sessions in the form of the captured ones. Each start leaves what `support_fake_harness` describes
(name, arguments, directory). `FAKE_DO` holds `say:TEXT`, words apart: TEXT asked, `re TEXT` answered; `_` is
a blank.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

NAMES = {"kimi": "kimi", "command-code": "command-code", "grok": "grok"}

PROGRAM = r"""#!PYTHON -ES
import json, os, sys, time, uuid
name, args, env = os.path.basename(sys.argv[0]), sys.argv[1:], os.environ
home, cwd = env["HOME"], os.getcwd()
os.makedirs(home + "/starts", exist_ok=True)
number = 1
while True:
    try:
        fd = os.open(f"{home}/starts/{number:03}.json.part", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        break
    except FileExistsError:
        number += 1
os.write(fd, json.dumps(dict(name=name, args=args, cwd=cwd, env={}, pid=os.getpid())).encode())
os.close(fd)
os.link(f"{home}/starts/{number:03}.json.part", f"{home}/starts/{number:03}.json")

def value(*flags):
    return next((args[at + 1] for at, word in enumerate(args[:-1]) if word in flags), "")

def append(path, *records):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))

def put(path, document):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(document, file)

session = value("--session", "--resume", "--session-id") or str(uuid.uuid4())

def stamp():
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".%03dZ" % (time.time() * 1000 % 1000)

def text(said):
    return [{"type": "text", "text": said}]

def kimi(said):
    global session
    session = session if session.startswith("session_") else "session_" + session
    folder = f"{home}/.kimi-code/sessions/wd_x/{session}"
    put(folder + "/state.json", {"id": session, "version": 2, "cwd": cwd})
    now = int(time.time() * 1000)
    user = {"role": "user", "content": text(said), "origin": {"kind": "user"}, "toolCalls": []}
    part = {"type": "content.part", "part": text("re " + said)[0]}
    append(folder + "/agents/main/wire.jsonl",
           {"type": "context.append_message", "time": now, "message": user},
           {"type": "context.append_loop_event", "time": now + 1, "event": part})

def command_code(said):
    path = f"{home}/.commandcode/projects/x/{session}.jsonl"
    if not os.path.exists(path):
        append(path, {"type": "session", "version": 3, "id": session, "timestamp": stamp(), "cwd": cwd})
    for role, source, words in (("user", "user", said), ("assistant", "model", "re " + said)):
        append(path, {"type": "message", "id": os.urandom(4).hex(), "parentId": None, "timestamp": stamp(),
                      "message": {"role": role, "content": text(words), "meta": {"source": source}}})

def grok(said):
    folder = f"{home}/.grok/sessions/%2Fx/{session}"
    put(folder + "/summary.json", {"info": {"id": session, "cwd": cwd}})
    for kind, words in (("user_message_chunk", said), ("agent_message_chunk", "re " + said)):
        meta = {"eventId": f"{session}-{os.urandom(4).hex()}", "agentTimestampMs": int(time.time() * 1000)}
        update = {"sessionUpdate": kind, "content": text(words)[0]}
        append(folder + "/updates.jsonl",
               {"timestamp": int(time.time()), "method": "session/update",
                "params": {"sessionId": session, "update": update, "_meta": meta}})

if not set(args) & {"--help", "--version"}:
    for word in env.get("FAKE_DO", "").split():
        {"kimi": kimi, "grok": grok}.get(name, command_code)(word.removeprefix("say:").replace("_", " "))
"""


def install(folder: Path) -> None:
    """The three programs, in a folder of PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES.values():
        path = folder / name
        path.write_text(PROGRAM.replace("PYTHON", os.path.realpath(sys.executable), 1))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
