"""Fake harness programs for end-to-end tests: they record how they were started, and do what they are told.

One program of every name, put first in PATH. Each start leaves `<home>/starts/<n>.json` (name, arguments, the
interesting part of the environment, directory, pid, process group). What it does stands in `FAKE_DO`, words
apart:

    say:TEXT    a turn, in the store of the real program: TEXT asked, `re TEXT` answered; `_` is a blank
    open:TEXT   the same without an end: the answer was never completed
    hook:EVENT  calls memd's hook for this program
    exit:N      ends with N
    die:N       ends by signal N
    mark:NAME   puts `<home>/NAME` there
    wait        until somebody puts `<home>/go` there
    linger      the same in a process of its own, which stays when this one ends
    stop        stops itself once (SIGSTOP)
    read        prints a line of standard input
    signals     prints the number of each signal it gets, and ends with the third
    state       prints how signals are handled and blocked, as /proc says
    tty         prints whether it is in the terminal's foreground, and the terminal's size
    raw         sets the terminal as programs with a screen do
    file:NAME   prints the content of the file that the variable NAME leads to
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

NAMES = ("claude", "codex", "opencode", "pi", "omp")

HELP = {
    "pi": "--session-id --approve --help",
    "codex": "--help",
    "claude": "--help",
    "omp": "--help --auto-approve",
}

PROGRAM = r'''#!PYTHON -ES
import json, os, re, signal, sqlite3, sys, time
name, args, env = os.path.basename(sys.argv[0]), sys.argv[1:], os.environ
home = env["HOME"]
if args == ["--help"] and "FAKE_DO" not in env:
    print(HELP.get(name, "--help"))
    sys.exit(0)
starts = home + "/starts"
os.makedirs(starts, exist_ok=True)
number = 1
while True:
    try:
        fd = os.open(f"{starts}/{number:03}.json.part", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        break
    except FileExistsError:
        number += 1
interesting = ("MEMD", "CLAUDE", "CODEX", "PI_", "XDG", "FAKE", "OPENCODE", "OMP", "HERDR", "TMUX", "ZELLIJ")
kept = {k: v for k, v in env.items() if k.startswith(interesting)}
facts = dict(name=name, args=args, env=kept, cwd=os.getcwd(), pid=os.getpid(), ppid=os.getppid(),
             group=os.getpgrp(), words=len(env), fds=sorted(int(f) for f in os.listdir("/proc/self/fd")))
os.write(fd, json.dumps(facts).encode("utf-8", "surrogateescape"))
os.close(fd)
os.link(f"{starts}/{number:03}.json.part", f"{starts}/{number:03}.json")

def value(*flags):
    for at, word in enumerate(args):
        for flag in flags:
            if word == flag and at + 1 < len(args):
                return args[at + 1]
            if word.startswith(flag + "="):
                return word[len(flag) + 1:]
    return ""

def stamp(at=None):
    at = time.time() if at is None else at
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03}Z"

def hexes(count):
    return os.urandom(count).hex()

def uuid():
    h = hexes(16)
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-8{h[17:20]}-{h[20:]}"

def append(path, *records):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")

def find(root, part):
    for folder, _, files in os.walk(root):
        for file in files:
            if part in file:
                return os.path.join(folder, file)
    return ""

session = ""

def claude(text, done):
    global session
    chosen = session or value("--resume", "--session-id") or uuid()
    session = os.path.basename(chosen).removesuffix(".jsonl")
    config = env.get("CLAUDE_CONFIG_DIR") or home + "/.claude"
    path = f"{config}/projects/{re.sub('[^A-Za-z0-9]', '-', os.getcwd())}/{session}.jsonl"
    path = chosen if "/" in chosen else path
    last = None
    if os.path.exists(path):
        for line in open(path):
            last = json.loads(line).get("uuid", last)
    base = dict(isSidechain=False, userType="external", cwd=os.getcwd(), sessionId=session, version="2.1.197")
    one, two = uuid(), uuid()
    append(path, {**base, "parentUuid": last, "type": "user", "uuid": one, "timestamp": stamp(),
                  "message": {"role": "user", "content": text}})
    if done:
        append(path, {**base, "parentUuid": one, "type": "assistant", "uuid": two, "timestamp": stamp(),
                      "message": {"role": "assistant", "content": [{"type": "text", "text": "re " + text}]}})

def codex(text, done):
    global session
    root = (env.get("CODEX_HOME") or home + "/.codex") + "/sessions"
    if not session and "resume" in args:
        session = args[args.index("resume") + 1]
    path = find(root, session) if session else ""
    if not path:
        session = session or uuid()
        path = time.strftime(f"{root}/%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S-{session}.jsonl")
        append(path, {"timestamp": stamp(), "type": "session_meta",
                      "payload": {"id": session, "cwd": os.getcwd(), "timestamp": stamp(), "source": "cli"}})
    provenance = {"content_item_metadata": [{"provenance": {"type": "user"}}]}
    def message(role, kind, said, **more):
        return {"timestamp": stamp(), "type": "response_item", "payload": {
            "type": "message", "id": "msg_" + hexes(8), "role": role,
            "content": [{"type": kind, "text": said}], **more}}
    append(path, message("user", "input_text", text, internal_chat_message_metadata_passthrough=provenance))
    if done:
        append(path, message("assistant", "output_text", "re " + text))

def pi(text, done):
    global session
    agent = env.get("PI_CODING_AGENT_DIR") or f"{home}/.{name}/agent"
    session = session or value("--session", "--session-id", "--resume")
    path = find(agent + "/sessions", session) if session else ""
    if not path:
        session = session or uuid()
        bucket = "--" + os.getcwd()[1:].replace("/", "-") + "--"
        path = f"{agent}/sessions/{bucket}/{stamp().replace(':', '-').replace('.', '-')}_{session}.jsonl"
        if name == "omp":
            title = {"type": "title", "v": 1, "title": "", "updatedAt": stamp(), "pad": ""}
            title["pad"] = " " * (255 - len(json.dumps(title)))
            append(path, title)
        append(path, {"type": "session", "version": 3, "id": session, "timestamp": stamp(),
                      "cwd": os.getcwd()})
    last = None
    for line in open(path):
        record = json.loads(line)
        last = record.get("id", last) if record["type"] == "message" else last
    one, two = hexes(4), hexes(4)
    def message(id, parent, role, said, **more):
        return {"type": "message", "id": id, "parentId": parent, "timestamp": stamp(), "message": {
            "role": role, "content": [{"type": "text", "text": said}],
            "timestamp": int(time.time() * 1000), **more}}
    append(path, message(one, last, "user", text))
    if done:
        append(path, message(two, one, "assistant", "re " + text, stopReason="stop"))

def opencode(text, done):
    global session
    path = (env.get("XDG_DATA_HOME") or home + "/.local/share") + "/opencode/opencode.db"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode=wal")
    db.executescript("""
      create table if not exists session(id text primary key, project_id text not null, parent_id text,
        directory text not null, title text not null, version text not null,
        time_created integer not null, time_updated integer not null);
      create table if not exists message(id text primary key, session_id text not null,
        time_created integer not null, time_updated integer not null, data text not null);
      create table if not exists part(id text primary key, message_id text not null, session_id text not null,
        time_created integer not null, time_updated integer not null, data text not null);
    """)
    now = int(time.time() * 1000)
    session = session or value("--session", "-s")
    if not session:
        session = "ses_" + hexes(8)
        db.execute("insert into session values(?,?,?,?,?,?,?,?)",
                   (session, "p", None, os.getcwd(), "a title", "1.18.33", now, now))
    def put(role, said, data, at):
        id = f"msg_{at:015}{hexes(4)}"
        db.execute("insert into message values(?,?,?,?,?)", (id, session, at, at, json.dumps(data)))
        span = {"start": at, "end": at} if done else {"start": at}
        part = json.dumps({"type": "text", "text": said, "time": span})
        db.execute("insert into part values(?,?,?,?,?,?)", ("prt_" + hexes(8), id, session, at, at, part))
    put("user", text, {"role": "user", "time": {"created": now}}, now)
    finished = {"completed": now + 1} if done else {}
    put("assistant", "re " + text, {"role": "assistant", "time": {"created": now + 1, **finished}}, now + 1)
    db.execute("update session set time_updated = ? where id = ?", (now + 1, session))

tell = {"claude": claude, "codex": codex, "pi": pi, "omp": pi, "opencode": opencode}.get(name)

def wait():
    while not os.path.exists(home + "/go"):
        time.sleep(0.01)

def heard(number, frame):
    global count
    count += 1
    os.write(1, b"got %d\n" % number)
count = 0

for word in env.get("FAKE_DO", "").split():
    what, _, rest = word.partition(":")
    if what in ("say", "open"):
        tell(rest.replace("_", " "), what == "say")
    elif what == "hook":
        import subprocess
        chosen = value("--resume", "--session-id", "--session", "-s")
        chosen = chosen or (args[args.index("resume") + 1] if "resume" in args else "")
        payload = {"session_id": session or chosen, "cwd": os.getcwd(), "hook_event_name": rest}
        more = ["--wait"] if rest in ("SessionStart", "context") else []
        done = subprocess.run([sys.executable, "-I", "-S", env["FAKE_HOOK"], name, rest, *more],
                              input=json.dumps(payload).encode(), capture_output=True)
        with open(home + "/hooked", "ab") as file:
            file.write(done.stdout)
    elif what == "exit":
        sys.exit(int(rest))
    elif what == "die":
        signal.signal(int(rest), signal.SIG_DFL) if int(rest) != 9 else None
        os.kill(os.getpid(), int(rest))
    elif what == "mark":
        open(f"{home}/{rest}", "w").close()
    elif what == "wait":
        wait()
    elif what == "linger":
        if os.fork() == 0:
            wait()
            os._exit(0)
    elif what == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        print("continued", flush=True)
    elif what == "read":
        print("read", sys.stdin.readline().strip(), flush=True)
    elif what == "signals":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH):
            signal.signal(number, heard)
        os.write(1, b"ready\n")
        while count < int(rest or 3):
            time.sleep(0.01)
    elif what == "state":
        for line in open("/proc/self/status"):
            if line.startswith(("SigBlk", "SigIgn")):
                print(line.strip(), flush=True)
    elif what == "tty":
        size = os.get_terminal_size(1)
        print("foreground" if os.tcgetpgrp(0) == os.getpgrp() else "background", size.columns, flush=True)
    elif what == "raw":
        import tty
        tty.setraw(0)
    elif what == "file":
        print(open(env[rest]).read(), flush=True)
    elif what:
        sys.exit(f"fake {name}: what is {word!r}?")
'''


class Fakes:
    """The programs in one folder, and what their starts left in a home."""

    def __init__(self, folder: Path, home: Path, names: tuple[str, ...] = NAMES) -> None:
        self.folder = folder
        self.home = home
        self.names = names
        folder.mkdir(parents=True, exist_ok=True)
        self.clear()

    def clear(self) -> None:
        """All programs as they were made, and no start."""
        shutil.rmtree(self.home / "starts", ignore_errors=True)
        for name in ("go", "there", "written"):
            (self.home / name).unlink(missing_ok=True)
        for name in self.names:
            self.install(name)

    def install(self, name: str) -> Path:
        path = self.folder / name
        text = PROGRAM.replace("PYTHON", os.path.realpath(sys.executable), 1)
        path.write_text(text.replace("HELP.get", f"{HELP!r}.get"))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def starts(self) -> list[dict[str, Any]]:
        """What each start left, in order."""
        return [json.loads(path.read_bytes()) for path in sorted(self.home.glob("starts/*.json"))]

    def last(self) -> dict[str, Any]:
        return self.starts()[-1]

    def go(self) -> None:
        """Let those that wait end."""
        (self.home / "go").touch()
