"""Stand-ins for programs that cannot be had: Crush, Kiro and Antigravity, as their formats are described.

They keep their stores as the descriptions say, look their configuration up as those say, and run the hooks
that stand in their settings, as commands through the shell. What the model would be told is left in
`<home>/prompts/<n>`: global context files, and what hooks printed, before each prompt. Each start leaves what
`support_fake_harness` describes. What a stand-in does stands in `FAKE_DO`, words apart:

    say:TEXT    a turn: TEXT asked, `re TEXT` answered; `_` is a blank
    open:TEXT   the same, and the answer is never completed
    tool:TEXT   a call of a tool with TEXT as its argument; the program says whether it was let run
    edit:NAME   a file of that name in the directory is edited (Crush)
    wait        until somebody puts `<home>/go` there
    exit:N      ends with N

`FAKE_KIRO_STRAYS`: the third engine of Kiro keeps its sessions below `~/.kiro` whatever `KIRO_HOME` says.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

NAMES = {"crush": "crush", "kiro": "kiro-cli", "antigravity": "agy"}

PROGRAM = r'''#!PYTHON -ES
import glob, json, os, sqlite3, subprocess, sys, time, urllib.parse
name, args, env = os.path.basename(sys.argv[0]), sys.argv[1:], os.environ
home, cwd = env["HOME"], os.getcwd()
starts, prompts = home + "/starts", home + "/prompts"
os.makedirs(starts, exist_ok=True)
os.makedirs(prompts, exist_ok=True)
number = 1
while True:
    try:
        fd = os.open(f"{starts}/{number:03}.json.part", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        break
    except FileExistsError:
        number += 1
kept = {k: v for k, v in env.items() if k.startswith(("MEMD", "CRUSH", "KIRO", "XDG", "FAKE"))}
facts = dict(name=name, args=args, env=kept, cwd=cwd, pid=os.getpid(), ppid=os.getppid())
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

def uuid():
    h = os.urandom(16).hex()
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-8{h[17:20]}-{h[20:]}"

def now_ms():
    return int(time.time() * 1000)

def append(path, record):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as file:
        file.write(json.dumps(record) + "\n")

def told(text):
    """Before the model."""
    if text:
        with open(f"{prompts}/{number:03}", "a") as file:
            file.write(text + "\n")

def hook(command, payload):
    done = subprocess.run(["/bin/sh", "-c", command], input=json.dumps(payload).encode(), capture_output=True)
    return done.stdout.decode()

def document(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}

class Crush:
    def __init__(self):
        config = (env.get("XDG_CONFIG_HOME") or home + "/.config") + "/crush"
        config = env.get("CRUSH_GLOBAL_CONFIG") or config
        data = (env.get("XDG_DATA_HOME") or home + "/.local/share") + "/crush"
        data = env.get("CRUSH_GLOBAL_DATA") or data
        options = document(config + "/crush.json").get("options") or {}
        usual = [config + "/CRUSH.md", os.path.dirname(config) + "/AGENTS.md"]
        for path in options.get("global_context_paths") or usual:
            if os.path.isfile(os.path.expanduser(path)):
                told(open(os.path.expanduser(path)).read())
        folder = value("--data-dir", "-D") or options.get("data_directory") or self.closest()
        self.folder = os.path.join(cwd, folder)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        listed = document(data + "/projects.json").get("projects", [])
        listed = [one for one in listed if one["path"] != cwd]
        os.makedirs(data, exist_ok=True)
        with open(data + "/projects.json", "w") as file:
            json.dump({"projects": [{"path": cwd, "data_dir": self.folder}, *listed]}, file)
        self.db = sqlite3.connect(self.folder + "/crush.db", isolation_level=None)
        self.db.execute("pragma journal_mode=wal")
        self.db.executescript("""
          create table if not exists sessions(id text primary key, parent_session_id text, title text,
            created_at integer not null, updated_at integer not null);
          create table if not exists messages(id text primary key, session_id text not null,
            role text not null, parts text not null, updated_at integer not null,
            is_summary_message integer not null default 0);
          create table if not exists files(id text primary key, session_id text not null, path text not null);
          create table if not exists read_files(session_id text not null, path text not null,
            read_at integer not null);
        """)
        self.session = value("--session", "-s")
        if self.session and not self.db.execute(
            "select 1 from sessions where id = ?", (self.session,)).fetchone():
            sys.exit("no such session")

    def closest(self):
        folder = cwd
        while folder != "/" and folder != home:
            if os.path.isdir(folder + "/.crush"):
                return folder + "/.crush"
            if os.path.isdir(folder + "/.git"):
                break
            folder = os.path.dirname(folder)
        return cwd + "/.crush"

    def put(self, role, *parts):
        moment = int(time.time())
        if not self.session:
            self.session = uuid()
            row = (self.session, None, "a title", moment, moment)
            self.db.execute("insert into sessions values(?,?,?,?,?)", row)
        row = (uuid(), self.session, role, json.dumps(parts), moment)
        self.db.execute("insert into messages values(?,?,?,?,?,0)", row)
        self.db.execute("update sessions set updated_at = ? where id = ?", (moment, self.session))

    def say(self, text, done):
        self.put("user", {"type": "text", "data": {"text": text}})
        finish = [{"type": "finish", "data": {"reason": "end_turn"}}] if done else []
        self.put("assistant", {"type": "text", "data": {"text": "re " + text}}, *finish)

    def tool(self, text):
        call = {"id": "c", "name": "bash", "input": json.dumps({"command": text}), "finished": True}
        self.put("assistant", {"type": "tool_call", "data": call})
        self.put("tool", {"type": "tool_result", "data": {"tool_call_id": "c", "content": "did " + text}})

    def edit(self, file):
        self.db.execute("insert into files values(?,?,?)", (uuid(), self.session, f"{cwd}/{file}"))

    def end(self):
        self.db.close()

class Kiro:
    def __init__(self):
        self.kiro = env.get("KIRO_HOME", "").strip() or home + "/.kiro"
        self.is_third = "--v3" in args or value("--agent-engine") == "v3" or bool(value("--mode"))
        self.session = value("--resume-id")
        self.number = 0
        root = home + "/.kiro" if self.is_third and "FAKE_KIRO_STRAYS" in env else self.kiro
        self.root = root + "/sessions" + ("" if self.is_third else "/cli")
        if self.session and not self.path(exists=True):
            sys.exit("no such session")
        self.is_new = not self.session
        self.session = self.session or ("sess_" if self.is_third else "") + uuid()
        self.run_hooks("SessionStart" if self.is_third else "agentSpawn")

    def path(self, exists=False):
        if self.is_third:
            found = glob.glob(f"{self.root}/*/{self.session}/messages.jsonl")
            return found[0] if found else "" if exists else f"{self.root}/b1/{self.session}/messages.jsonl"
        path = f"{self.root}/{self.session}.jsonl"
        return path if os.path.exists(path) or not exists else ""

    def run_hooks(self, event, **more):
        payload = {"hook_event_name": event, "cwd": cwd, "session_id": self.session, **more}
        commands = []
        if self.is_third:
            for path in sorted(glob.glob(self.kiro + "/hooks/*.json")):
                for one in document(path).get("hooks", []):
                    if one["trigger"] == event and one.get("enabled", True):
                        commands.append((one["action"]["command"], 1 << 20))
        else:
            agent = value("--agent") or "default"
            for one in document(f"{self.kiro}/agents/{agent}.json").get("hooks", {}).get(event, []):
                if "matcher" not in one:  # an empty one matches nothing
                    commands.append((one["command"], one.get("max_output_size", 10240)))
        for command, most in commands:
            told(hook(command, payload)[:most])

    def begin(self):
        if not self.is_new:
            return
        self.is_new = False
        if self.is_third:
            about = {"schemaVersion": "1.0.0", "dataModelVersion": 1, "id": self.session,
                     "workspacePaths": [cwd]}
            place = os.path.dirname(self.path()) + "/session.json"
        else:
            about = {"session_id": self.session, "cwd": cwd, "title": "a title",
                     "session_state": {"version": "v1"}}
            place = self.path()[:-1]
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w") as file:
            json.dump(about, file)

    def second(self, kind, *parts):
        append(self.path(), {"version": "v1", "kind": kind, "data": {
            "message_id": uuid(), "content": list(parts), "meta": {"timestamp": now_ms()}}})

    def third(self, kind, **payload):
        self.number += 1
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        append(self.path(), {"id": uuid(), "timestamp": stamp, "payload": {"type": kind, **payload}})

    def say(self, text, done):
        self.run_hooks("UserPromptSubmit" if self.is_third else "userPromptSubmit", prompt=text)
        self.begin()
        if self.is_third:
            self.third("user", content=text)
            if done:
                self.third("assistant", operationType="Think", content="SECRET-THOUGHT")
                self.third("assistant", operationType="Say", content="re " + text)
        else:
            self.second("Prompt", {"kind": "text", "data": text})
            if done:
                self.second("AssistantMessage", {"kind": "text", "data": "re " + text})

    def tool(self, text):
        self.begin()
        if self.is_third:
            self.third("tool_call", toolCallId="c", toolName="shell", args={"command": text})
            self.third("tool_result", toolCallId="c", content="did " + text, success=True)
        else:
            self.second("AssistantMessage", {"kind": "toolUse", "data": {
                "toolUseId": "c", "name": "shell", "input": {"command": text}}})
            self.second("ToolResults", {"kind": "toolResult", "data": {
                "toolUseId": "c", "content": [{"kind": "text", "data": "did " + text}], "isError": False}})

    def end(self):
        pass

def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])

def field(payload):
    return b"\x0a" + varint(len(payload)) + payload

class Antigravity:
    def __init__(self):
        self.folder = home + "/.gemini/antigravity-cli"
        self.session = value("--conversation")
        self.is_new = not self.session
        path = f"{self.folder}/conversations/{self.session}.db"
        if self.session and not os.path.exists(path):
            sys.exit("no such conversation")
        self.session = self.session or uuid()
        self.step = 0

    def hooks(self, event, **more):
        found = document(home + "/.gemini/config/hooks.json")
        payload = {"conversationId": self.session, "workspacePaths": [cwd], "stepIdx": self.step, **more}
        answers = []
        for tool in found.values():
            for group in tool.get(event, []):
                for one in group.get("hooks", [group]):
                    answers.append(hook(one["command"], payload))
        return answers

    def begin(self):
        if not self.is_new:
            return
        os.makedirs(self.folder + "/conversations", exist_ok=True)
        db = sqlite3.connect(f"{self.folder}/conversations/{self.session}.db")
        uri = "file://" + urllib.parse.quote(cwd)
        db.execute("create table trajectory_metadata_blob("
                   "id text default 'main', data blob, primary key(id))")
        db.execute("create table trajectory_blob(data blob)")
        blob = b"\x10\x07" + field(b"\x18\x01" + field(uri.encode()))
        db.execute("insert into trajectory_metadata_blob values('main', ?)", (blob,))
        db.execute("insert into trajectory_blob values('SECRET-TRAJECTORY')")
        db.commit()
        db.close()

    def say(self, text, done):
        named = {} if self.is_new else {"conversationId": self.session}
        self.begin()
        append(self.folder + "/history.jsonl",
               {"display": text, "timestamp": now_ms(), "workspace": cwd, **named})
        self.is_new = False
        for call in range(2):  # of the model
            for answer in self.hooks("PreInvocation", invocationNum=call):
                for one in json.loads(answer).get("injectSteps", []):
                    told(one["ephemeralMessage"])
        self.step += 1
        db = sqlite3.connect(f"{self.folder}/conversations/{self.session}.db")
        db.execute("insert into trajectory_blob values(?)", ("SECRET-TRAJECTORY re " + text,))
        db.commit()
        db.close()
        self.hooks("Stop", terminationReason="done", fullyIdle=True)

    def tool(self, text):
        call = {"name": "run_command", "args": {"command": text}}
        answers = [json.loads(answer or "{}") for answer in self.hooks("PreToolUse", toolCall=call)]
        if any(answer.get("decision") != "allow" for answer in answers):
            print("denied", flush=True)
        else:
            self.hooks("PostToolUse", toolCall=call)
            print("ran", flush=True)
        self.step += 1

    def end(self):
        pass

WORDS = {
    "crush": ("completion dirs help login logout logs models projects server session stats "
              "update-providers --help --version"),
    "kiro-cli": "login whoami doctor settings mcp --help --version --list-sessions --no-interactive",
    "agy": "agents changelog help install models plugins update --help --version",
}
if set(args) & set(WORDS[name].split()):
    print("a utility")
    sys.exit(0)
program = {"crush": Crush, "kiro-cli": Kiro, "agy": Antigravity}[name]()
for word in env.get("FAKE_DO", "").split():
    what, _, rest = word.partition(":")
    rest = rest.replace("_", " ")
    if what in ("say", "open"):
        program.say(rest, what == "say")
    elif what == "tool":
        program.tool(rest)
    elif what == "edit":
        program.edit(rest)
    elif what == "wait":
        while not os.path.exists(home + "/go"):
            time.sleep(0.01)
    elif what == "exit":
        program.end()
        sys.exit(int(rest))
    else:
        sys.exit(f"stand-in {name}: what is {word!r}?")
program.end()
'''


def install(folder: Path) -> None:
    """The three programs, in a folder of PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES.values():
        path = folder / name
        path.write_text(PROGRAM.replace("PYTHON", os.path.realpath(sys.executable), 1))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def prompts(home: Path) -> list[str]:
    """What the model was told besides prompts, of each start that told it anything."""
    return [path.read_text() for path in sorted(home.glob("prompts/*"))]
