"""Small builders for the case generators. Standard library only, deterministic.

Every make.py is called as   python3 make.py DEST [--step N]
DEST/home is the HOME of the pretend user, DEST/work holds checkouts.
Paths that records must contain are computed from DEST at run time.
"""

import argparse, datetime as dt, hashlib, json, os, re, sqlite3, sys, uuid

BASE = dt.datetime(2026, 2, 3, 10, 0, 0, tzinfo=dt.timezone.utc)


def args(steps=1, extra=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("dest")
    ap.add_argument("--step", type=int, default=1, choices=range(1, steps + 1))
    for name, kw in (extra or {}).items():
        ap.add_argument("--" + name, **kw)
    a = ap.parse_args()
    a.dest = os.path.realpath(a.dest)
    os.makedirs(a.dest, exist_ok=True)
    a.home = os.path.join(a.dest, "home")
    a.work = os.path.join(a.dest, "work")
    os.makedirs(a.home, exist_ok=True)
    os.makedirs(a.work, exist_ok=True)
    return a


def uid(tag):
    return str(uuid.UUID(bytes=hashlib.md5(tag.encode()).digest(), version=4))


def ts(n):
    return (BASE + dt.timedelta(seconds=n)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def ms(n):
    return int((BASE + dt.timedelta(seconds=n)).timestamp() * 1000)


def key(path):
    """Folder name Claude Code derives: per UTF-16 unit, not per code point."""
    out = []
    for ch in path:
        if re.match(r"[A-Za-z0-9]", ch):
            out.append(ch)
        else:
            out.append("-" * (2 if ord(ch) > 0xFFFF else 1))
    return "".join(out)


def write(path, data, mtime=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    with open(path, "wb") as f:
        f.write(data)
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return path


def checkout(path):
    """A directory that looks like a git main checkout, without running git."""
    for d in ("objects", "refs/heads"):
        os.makedirs(os.path.join(path, ".git", d), exist_ok=True)
    write(os.path.join(path, ".git", "HEAD"), "ref: refs/heads/main\n")
    write(os.path.join(path, ".git", "config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    return path


def line(obj):
    return (json.dumps(obj, ensure_ascii=False) + "\n").encode("utf-8")


class Claude:
    """One Claude Code session file, written as bytes so it can be damaged."""

    def __init__(self, sid, cwd, tag="c", start=0):
        self.sid, self.cwd, self.tag = sid, cwd, tag
        self.n, self.t, self.parent, self.buf = 0, start, None, b""

    def rec(self, type_, advance=True, **kw):
        self.n += 1
        self.t += 1
        u = uid("%s-%d" % (self.tag, self.n))
        r = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.sid,
            "version": "2.1.120",
            "gitBranch": "main",
            "type": type_,
            "uuid": u,
            "timestamp": ts(self.t),
        }
        r.update(kw)
        if advance:
            self.parent = r["uuid"]
        return r

    def add(self, r):
        self.buf += line(r)
        return r

    def user(self, text, **kw):
        return self.add(self.rec("user", message={"role": "user", "content": text}, **kw))

    def assistant(self, text, **kw):
        return self.blocks([{"type": "text", "text": text}], **kw)

    def blocks(self, content, mid=None, **kw):
        mid = mid or "msg_" + uid("%s-m-%d" % (self.tag, self.n)).replace("-", "")[:24]
        return self.add(
            self.rec(
                "assistant",
                requestId="req_" + mid[4:16],
                message={
                    "id": mid,
                    "type": "message",
                    "role": "assistant",
                    "model": "test-model",
                    "content": content,
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": {"input_tokens": 3, "output_tokens": 5},
                },
                **kw,
            )
        )

    def tool(self, name, inp, result, is_error=False):
        tid = "toolu_" + uid("%s-t-%d" % (self.tag, self.n)).replace("-", "")[:20]
        self.blocks([{"type": "tool_use", "id": tid, "name": name, "input": inp}])
        return self.add(
            self.rec(
                "user",
                message={
                    "role": "user",
                    "content": [
                        {"tool_use_id": tid, "type": "tool_result", "content": result, "is_error": is_error}
                    ],
                },
            )
        )

    def raw(self, b):
        self.buf += b

    def save(self, home, name=None, folder=None, config=".claude", mode="wb"):
        d = os.path.join(home, config, "projects", folder or key(self.cwd))
        os.makedirs(d, exist_ok=True)
        p = os.path.join(d, (name or self.sid) + ".jsonl")
        with open(p, mode) as f:
            f.write(self.buf)
        return p


class Codex:
    def __init__(self, sid, cwd, cli="0.120.0", start=0):
        self.sid, self.cwd, self.cli, self.t, self.buf, self.k = sid, cwd, cli, start, b"", 0

    def put(self, type_, payload):
        self.t += 1
        self.buf += line({"timestamp": ts(self.t), "type": type_, "payload": payload})

    def meta(self, sid=None, cwd=None, **kw):
        p = {
            "id": sid or self.sid,
            "timestamp": ts(self.t),
            "cwd": cwd or self.cwd,
            "originator": "codex_cli_rs",
            "cli_version": self.cli,
            "source": "cli",
            "git": {"branch": "main"},
        }
        p.update(kw)
        self.put("session_meta", p)

    def item(self, role, text, **kw):
        self.k += 1
        p = {
            "type": "message",
            "id": "item_%04d" % self.k,
            "role": role,
            "content": [{"type": "output_text" if role == "assistant" else "input_text", "text": text}],
        }
        p.update(kw)
        self.put("response_item", p)

    def event(self, kind, **kw):
        self.put("event_msg", dict(type=kind, **kw))

    def turn(self, user, reply):
        self.item("user", user)
        self.event("user_message", message=user)
        self.item("assistant", reply)
        self.event("agent_message", message=reply)

    def path(self, home, suffix=".jsonl"):
        stamp = (BASE + dt.timedelta(seconds=0)).strftime("%Y-%m-%dT%H-%M-%S")
        return os.path.join(
            home, ".codex", "sessions", "2026", "02", "03", "rollout-%s-%s%s" % (stamp, self.sid, suffix)
        )

    def save(self, home, suffix=".jsonl"):
        return write(self.path(home, suffix), self.buf)


OPENCODE = """
create table project(id text primary key, worktree text not null, time_created integer, time_updated integer);
create table session(id text primary key, project_id text not null, parent_id text, slug text, directory text not null,
  title text not null, version text, time_created integer not null, time_updated integer not null, time_archived integer);
create table message(id text primary key, session_id text not null, time_created integer not null, time_updated integer not null, data text not null);
create table part(id text primary key, message_id text not null, session_id text not null, time_created integer not null, time_updated integer not null, data text not null);
"""


def oc_session(db, sid, directory, n, parent=None, title="work"):
    db.execute("insert or ignore into project values('p1',?,?,?)", (directory, ms(0), ms(0)))
    db.execute(
        "insert into session values(?,?,?,?,?,?,?,?,?,null)",
        (sid, "p1", parent, "slug-" + sid[-4:], directory, title, "1.2.0", ms(n), ms(n)),
    )


def oc_say(db, sid, n, role, text):
    mid, pid = "msg_%s_%05d" % (sid[-4:], n), "prt_%s_%05d" % (sid[-4:], n)
    db.execute(
        "insert into message values(?,?,?,?,?)",
        (mid, sid, ms(n), ms(n), json.dumps({"role": role, "time": {"created": ms(n)}})),
    )
    db.execute(
        "insert into part values(?,?,?,?,?,?)",
        (pid, mid, sid, ms(n), ms(n), json.dumps({"type": "text", "text": text})),
    )
    db.execute("update session set time_updated=? where id=?", (ms(n), sid))


CRUSH = """
create table sessions(id text primary key, parent_session_id text, title text not null, message_count integer not null default 0,
  prompt_tokens integer not null default 0, completion_tokens integer not null default 0, cost real not null default 0,
  updated_at integer not null, created_at integer not null, summary_message_id text);
create table messages(id text primary key, session_id text not null, role text not null, parts text not null default '[]',
  model text, created_at integer not null, updated_at integer not null, finished_at integer, provider text,
  is_summary_message integer not null default 0);
"""


def crush_session(db, sid, secs, parent=None, title="work"):
    db.execute(
        "insert into sessions(id,parent_session_id,title,updated_at,created_at) values(?,?,?,?,?)",
        (sid, parent, title, secs, secs),
    )


def crush_say(db, sid, secs, role, text):
    db.execute(
        "insert into messages(id,session_id,role,parts,created_at,updated_at) values(?,?,?,?,?,?)",
        (
            uid(sid + role + text),
            sid,
            role,
            json.dumps([{"type": "text", "data": {"text": text}}]),
            secs,
            secs,
        ),
    )
    db.execute("update sessions set message_count=message_count+1 where id=?", (sid,))


class Kimi:
    def __init__(self, sid, cwd):
        self.sid, self.cwd, self.buf, self.t = (
            sid,
            cwd,
            line({"type": "metadata", "protocol_version": "1.4", "created_at": ms(0)}),
            0,
        )

    def put(self, obj):
        self.t += 1
        obj["time"] = ms(self.t)
        self.buf += line(obj)

    def user(self, text, kind="user"):
        self.put(
            {
                "type": "context.append_message",
                "message": {
                    "role": "user",
                    "content": [{"type": "text", "text": text}],
                    "toolCalls": [],
                    "origin": {"kind": kind},
                },
            }
        )

    def reply(self, text, turn, think=None):
        st = uid("%s-%s-%s" % (self.sid, turn, text))
        self.put(
            {
                "type": "context.append_loop_event",
                "event": {"type": "step.begin", "uuid": st, "turnId": str(turn), "step": 1},
            }
        )
        if think:
            self.put(
                {
                    "type": "context.append_loop_event",
                    "event": {
                        "type": "content.part",
                        "stepUuid": st,
                        "turnId": str(turn),
                        "part": {"type": "think", "think": think},
                    },
                }
            )
        self.put(
            {
                "type": "context.append_loop_event",
                "event": {
                    "type": "content.part",
                    "stepUuid": st,
                    "turnId": str(turn),
                    "part": {"type": "text", "text": text},
                },
            }
        )
        self.put(
            {
                "type": "context.append_loop_event",
                "event": {
                    "type": "step.end",
                    "uuid": st,
                    "turnId": str(turn),
                    "step": 1,
                    "finishReason": "end_turn",
                },
            }
        )

    def save(self, home, state=None):
        d = os.path.join(
            home,
            ".kimi-code",
            "sessions",
            "wd_proj_" + hashlib.sha256(self.cwd.encode()).hexdigest()[:12],
            "session_" + self.sid,
        )
        st = {
            "id": "session_" + self.sid,
            "version": 2,
            "cwd": self.cwd,
            "title": "work",
            "createdAt": ms(0),
            "updatedAt": ms(self.t),
        }
        st.update(state or {})
        write(os.path.join(d, "state.json"), json.dumps(st))
        return write(os.path.join(d, "agents", "main", "wire.jsonl"), self.buf)


def zst(data):
    """A valid Zstandard frame holding DATA in raw blocks (no compressor needed)."""
    out = b"\x28\xb5\x2f\xfd" + bytes([0xA0]) + len(data).to_bytes(4, "little")
    pos = 0
    while True:
        chunk = data[pos : pos + 100000]
        pos += len(chunk)
        last = pos >= len(data)
        out += ((len(chunk) << 3) | (1 if last else 0)).to_bytes(3, "little") + chunk
        if last:
            return out


def kit_path():
    return os.path.abspath(__file__)
