"""Start-up, idle cost, memory, and `memctl status`, each beside its floor."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import peers
from measure import (
    PYTHON,
    SIX,
    Row,
    cpu_s,
    daemon,
    family,
    in_turn,
    pss_mib,
    sandbox,
    section,
    wakeups,
    wall_ms,
)

IDLE_S = float(os.environ.get("MEMD_BENCH_IDLE", "60"))
STATUS_ROUNDS = 40
SETTLE_S = 12.0  # housekeeping after the import, and the worker that makes room for a fresh one
FOLDERS, FILES = 2_000, 10
WATCH = f"""
import trio
from watchfiles import awatch
{SIX}
async def main():
    async for _ in awatch(PATH, step=STEP, recursive=RECURSIVE):
        pass
trio.run(main)
"""


def console_script(folder: Path) -> Path:
    """What an installer writes for an entry point."""
    path = folder / "memctl"
    path.write_text(
        f"#!{PYTHON}\nimport sys\nfrom memctl.__main__ import main\n"
        "if __name__ == '__main__':\n"
        "    sys.argv[0] = sys.argv[0].removesuffix('.exe')\n    sys.exit(main())\n"
    )
    path.chmod(0o755)
    return path


def status_rows() -> list[Row]:
    peer = peers.program(peers.AGENT_MEMORY_GIT, "mem")
    with sandbox() as (base, environment), daemon(environment):
        script = console_script(base)
        plain = {name: environment[name] for name in ("HOME", "PATH", "LANG")}
        measures = [
            lambda: wall_ms([str(script), "status"], environment),
            lambda: wall_ms([PYTHON, "-I", "-S", "-c", "pass"], environment),
            lambda: wall_ms([PYTHON, "-c", "pass"], environment),
        ]
        if peer:
            measures.append(lambda: wall_ms([peer, "doctor"], plain))
        ours, floor, site, *theirs = in_turn(STATUS_ROUNDS, *measures)
    rows = [
        Row("memctl status / python -I -S -c pass", ours, floor, "ms", 3.0),
        Row("memctl status / python -c pass (for scale)", ours, site, "ms", 9.0),
    ]
    return rows + [Row("memctl status / agent-memory-git doctor", ours, one, "ms", 0.6) for one in theirs]


def ready_ms(base: Path, environment: dict[str, str]) -> float:
    """From the start of the process to READY=1."""
    address = str(base / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(address)
        began = time.perf_counter()
        child = subprocess.Popen(
            [PYTHON, "-P", "-m", "memd", "--detached"],
            env={**environment, "NOTIFY_SOCKET": address},
            cwd="/",
        )
        while b"READY=1" not in notify.recv(4096):
            pass
        took = (time.perf_counter() - began) * 1e3
        child.terminate()
        child.wait(20)
    os.unlink(address)
    return took


def start_rows() -> list[Row]:
    with sandbox() as (base, environment):
        ours, floor = in_turn(
            9,
            lambda: ready_ms(base, environment),
            lambda: wall_ms([PYTHON, "-c", SIX], environment),
        )
    return [Row("start to READY / bare imports", ours, floor, "ms", 2.0)]


def bare_watch(
    path: Path, step: int, recursive: bool, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    code = (
        WATCH.replace("PATH", repr(str(path))).replace("STEP", str(step)).replace("RECURSIVE", str(recursive))
    )
    return subprocess.Popen([PYTHON, "-c", code], env=environment)


def fill(store: Path) -> None:
    for number in range(FOLDERS):
        folder = store / f"-work-project-{number:04d}"
        folder.mkdir(parents=True)
        for file in range(FILES):
            (folder / f"{file}.jsonl").write_bytes(b"{}\n")


def idle_rows() -> list[Row]:
    with sandbox() as (base, environment):
        home = base / "home"
        fill(home / ".claude" / "projects")
        (home / ".claude" / ".credentials.json").write_text("{}")
        agent = home / "work" / "agent"
        (agent / ".git").mkdir(parents=True)
        with daemon(environment) as child:
            subprocess.run(
                [PYTHON, "-P", "-m", "memctl", "enroll", str(agent)],
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            bare = bare_watch(home / ".claude", 50, True, environment)
            try:
                subprocess.run(
                    [PYTHON, "-P", "-m", "memctl", "import", "--wait"],
                    env=environment,
                    check=True,
                    stderr=subprocess.DEVNULL,
                )
                time.sleep(SETTLE_S)
                pids = {"ours": family(child.pid), "floor": family(bare.pid)}
                before = {name: cpu_s(those) for name, those in pids.items()}
                woken = wakeups(pids["ours"], IDLE_S)
                after = {name: cpu_s(those) for name, those in pids.items()}
                memory, alone = pss_mib(pids["ours"]), pss_mib([child.pid])
            finally:
                bare.kill()
                bare.wait()
            imports = subprocess.Popen(
                [PYTHON, "-c", f"{SIX}\nimport time\nprint(flush=True)\ntime.sleep(600)"],
                env=environment,
                stdout=subprocess.PIPE,
            )
            assert imports.stdout is not None
            imports.stdout.readline()
            floor_memory = pss_mib([imports.pid])
            imports.kill()
            imports.wait()
    cpu = {name: (after[name] - before[name]) / IDLE_S * 100 for name in pids}
    return [
        Row("idle processor / one bare awatch", [cpu["ours"]], [cpu["floor"]], "%", 1.5),
        Row("idle wake-ups a second / the 25 allowed", [woken], [25.0], "1/s", 1.0),
        Row("idle memory (PSS) / 1.5 x bare imports + 20", [memory], [1.5 * floor_memory + 20], "MiB", 1.0),
        Row("the daemon's alone / bare imports", [alone], [floor_memory], "MiB", 1.5),
    ]


def main() -> int:
    missed = section("memctl status", status_rows())
    missed += section("start", start_rows())
    return missed + section(f"idle, {FOLDERS * FILES} files in {FOLDERS} folders", idle_rows())


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
