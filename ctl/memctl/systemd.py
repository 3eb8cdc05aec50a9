"""memd as a unit of `systemd --user`: what `systemctl` is asked to do, and what it says.

The service is enabled beside its socket, because memd heals a new login whether or not anybody talks to it.
`memctl down` stops both: a socket left listening would start the daemon again at the next hook.

source  systemctl(1), loginctl(1), systemd 252
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence

from memctl import service_files
from memctl.paths import home_dir, shown
from memctl.programs import ASK_S, Answer, Ask, ask, last_line
from memctl.service_files import SERVICE, SOCKET, Installation
from memctl.services import Running
from memd.errors import CannotCreate, Unavailable

START_S = 90.0  # longer than the unit's own TimeoutStartSec, so that systemd's reason is heard
PLACES = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"

PROPERTIES = (
    "Id,LoadState,LoadError,ActiveState,SubState,UnitFileState,FragmentPath,"
    "MainPID,StatusText,Result,NRestarts"
)


class Systemd:
    """The user's own service manager on Linux."""

    name: str = "systemd"
    files: tuple[str, ...] = (SERVICE, SOCKET)

    def __init__(self, environ: Mapping[str, str] = os.environ, ask: Ask = ask) -> None:
        self._environ = _environment(environ)
        self._ask = ask
        path = environ.get("PATH") or ""
        self._systemctl = shutil.which("systemctl", path=path) or shutil.which("systemctl", path=PLACES)

    def folder(self) -> bytes:
        """Where a user's own units lie."""
        chosen = os.fsencode(self._environ.get("XDG_CONFIG_HOME", ""))
        base = chosen.rstrip(b"/") if chosen.startswith(b"/") else home_dir() + b"/.config"
        return base + b"/systemd/user"

    def drop_ins(self) -> tuple[bytes, ...]:
        """The settings a person added beside our files."""
        found = []
        for name in self.files:
            folder = self.folder() + b"/" + name.encode() + b".d"
            try:
                found += [
                    folder + b"/" + entry for entry in sorted(os.listdir(folder)) if entry.endswith(b".conf")
                ]
            except OSError:
                continue
        return tuple(found)

    def render(self, templates: Mapping[str, str], installation: Installation) -> dict[str, bytes]:
        """The files' text; raises CannotCreate for a home that systemd's own tools have no words for."""
        try:
            self.folder().decode("utf-8")
        except UnicodeDecodeError:
            raise CannotCreate(
                f"systemctl cannot speak of a folder whose name is not UTF-8: {shown(self.folder())}",
                remedy="Run memd with `memctl up`, which needs no service.",
            ) from None
        return service_files.render_systemd(templates, installation)

    def is_reachable(self) -> bool:
        return self._systemctl is not None and self._say("show", "--property=Version").status == 0

    def running(self) -> Running:
        """What systemd says of the service; all unknown when it is not reachable."""
        answer = self._say("show", SERVICE, SOCKET, "--property=" + PROPERTIES)
        if answer.status != 0:
            return Running(is_reachable=False, trouble=last_line(answer))
        units = _parse_show(answer.out)
        service, sock = units.get(SERVICE, {}), units.get(SOCKET, {})
        trouble = ""
        if service.get("ActiveState") == "failed":
            trouble = f"the service failed ({service.get('Result', 'unknown')})"
        elif service.get("SubState") == "auto-restart":
            trouble = (
                f"memd ends as soon as it starts ({service.get('Result', 'unknown')}), systemd tries again"
            )
        elif sock.get("ActiveState") == "failed":
            trouble = f"the socket failed ({sock.get('Result', 'unknown')})"
        return Running(
            is_reachable=True,
            is_enabled=service.get("UnitFileState") == "enabled" and sock.get("UnitFileState") == "enabled",
            is_active=service.get("ActiveState") in ("active", "reloading"),
            is_listening=sock.get("ActiveState") == "active",
            pid=int(service.get("MainPID", "0")),
            restarts=int(service.get("NRestarts", "0")),
            status_text=service.get("StatusText", ""),
            trouble=trouble,
        )

    def activate(self, start: bool, rewritten: frozenset[str]) -> list[str]:
        """Make systemd read the files, start memd at every login and, with `start`, now.

        rewritten  the files whose settings differ from those systemd knows
        returns    what a person should know
        raises     Unavailable, CannotCreate
        """
        if not self.is_reachable():
            self._say("enable", *self.files, SYSTEMD_OFFLINE="1")
            raise Unavailable(
                "the service files are written, but no `systemd --user` answers here: memd is not started",
                remedy="Log in as this user directly (not through su or sudo) and run "
                "`memctl service install` again; until then `memctl up` runs memd without it.",
            )
        self._must("daemon-reload")
        self._check_loaded()
        self._must("enable", *self.files)
        if start:
            before = self.running()
            self._say("reset-failed", *self.files)
            if SOCKET in rewritten and before.is_listening:
                self._must("stop", *self.files)  # a socket cannot be made anew under a running service
            self._must("start", SOCKET)
            self._must("restart" if rewritten else "start", SERVICE, timeout_s=START_S)
        return self._notes()

    def start(self) -> None:
        """Start memd and wait until it is ready; raises Unavailable with systemd's reason."""
        self._say("reset-failed", *self.files)
        self._must("start", *self.files, timeout_s=START_S)

    def restart(self) -> None:
        """As `start`, with a new process; clients that connect meanwhile wait in the socket."""
        self._say("reset-failed", *self.files)
        self._must("start", SOCKET)
        self._must("restart", SERVICE, timeout_s=START_S)

    def stop(self) -> None:
        """Stop memd and its socket until the next start or login; raises Unavailable."""
        self._must("stop", SOCKET, SERVICE, timeout_s=START_S)

    def deactivate(self, names: Sequence[str]) -> list[str]:
        """Stop these units and take them out of the login; what a person should know. Raises Unavailable."""
        if not self.is_reachable():
            self._say("disable", *names, SYSTEMD_OFFLINE="1")
            return ["No `systemd --user` answers here: a memd that it runs elsewhere goes on until logout."]
        self._must("stop", *names, timeout_s=START_S)
        self._must("disable", *names)
        return []

    def forget(self) -> None:
        """Make systemd see that the files are gone."""
        if self.is_reachable():
            self._must("daemon-reload")
            self._say("reset-failed", *self.files)

    def _check_loaded(self) -> None:
        units = _parse_show(self._must("show", *self.files, "--property=" + PROPERTIES).out)
        for name in self.files:
            unit = units.get(name, {})
            path = self.folder() + b"/" + name.encode()
            if unit.get("LoadState") == "masked":
                raise CannotCreate(
                    f"{name} is masked, so systemd will not start it",
                    remedy=f"Run `systemctl --user unmask {name}`, then install again.",
                )
            if unit.get("LoadState") == "not-found" or not _is_same(unit.get("FragmentPath", ""), path):
                elsewhere = unit.get("FragmentPath") or "nowhere"
                raise CannotCreate(
                    f"systemd reads {name} from {elsewhere}, not from {shown(path)}",
                    remedy="Install from a shell with the HOME and XDG_CONFIG_HOME that systemd knows "
                    "(`systemctl --user show-environment`).",
                )
            if unit.get("LoadState") != "loaded":
                why = unit.get("LoadError") or unit.get("LoadState")
                raise CannotCreate(
                    f"systemd does not accept {shown(path)}: {why}",
                    remedy=f"`systemd-analyze --user verify {name}` says which line it means.",
                )

    def _notes(self) -> list[str]:
        if self.lingers():
            return []
        return [
            "Lingering is off for this user: memd stops when you log out and starts when you log in. "
            "To keep it running, run `loginctl enable-linger` yourself."
        ]

    def lingers(self) -> bool | None:
        """Whether this user's services outlive the login."""
        import pwd

        user = os.fsencode(pwd.getpwuid(os.getuid()).pw_name)
        return os.path.exists(b"/var/lib/systemd/linger/" + user)

    def _must(self, verb: str, *words: str, timeout_s: float = ASK_S) -> Answer:
        answer = self._say(verb, *words, timeout_s=timeout_s)
        if answer.status != 0:
            raise Unavailable(
                f"`systemctl --user {verb} {' '.join(words)}`".replace(" `", "`")
                + f" failed: {last_line(answer)}",
                remedy="See `systemctl --user status memd.service` and `journalctl --user -u memd.service`, "
                "or run `memd` in a terminal to see what it says.",
            )
        return answer

    def _say(self, verb: str, *words: str, timeout_s: float = ASK_S, **more: str) -> Answer:
        if self._systemctl is None:
            return Answer(127, "", "there is no systemctl on this machine")
        return self._ask([self._systemctl, "--user", verb, *words], {**self._environ, **more}, timeout_s)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Our own, in English and without a pager; a shell without XDG_RUNTIME_DIR still finds the manager."""
    made = {**environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", "SYSTEMD_URLIFY": "0"}
    if not made.get("XDG_RUNTIME_DIR"):
        usual = f"/run/user/{os.getuid()}"
        try:
            facts = os.lstat(usual)
        except OSError:
            return made
        if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
            made["XDG_RUNTIME_DIR"] = usual
    return made


def _parse_show(text: str) -> dict[str, dict[str, str]]:
    """`systemctl show` of several units: blocks of `Key=value` lines, one empty line between."""
    units = {}
    for block in text.strip().split("\n\n"):
        facts = dict(line.split("=", 1) for line in block.split("\n") if "=" in line)
        units[facts.get("Id", "")] = facts
    return units


def _is_same(found: str, path: bytes) -> bool:
    try:
        return os.path.samefile(os.fsencode(found), path)
    except OSError:
        return False
