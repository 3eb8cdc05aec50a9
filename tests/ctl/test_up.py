"""What `up` and `down` come to while others start daemons too."""

from __future__ import annotations

import pytest

from memctl import client, hook, quick, services
from memctl.commands import daemon
from memd import __version__, processes, protocol
from memd.errors import TryAgain, Unavailable

OTHER = "0.0.1"


class Machine:
    """At most one daemon; whoever else is there starts `OTHER` again, as often as `others` says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, others: int) -> None:
        self.others = others
        self.stops = 0
        self.serving: protocol.Pong | None = self._new(OTHER)
        monkeypatch.setattr(client, "ping", lambda: self.serving)
        monkeypatch.setattr(client, "ask", self._stop)
        monkeypatch.setattr(client, "start_daemon", self._start)
        monkeypatch.setattr(services, "service_state", lambda: services.ServiceState(""))
        monkeypatch.setattr(processes, "start_of", lambda pid: "then")
        monkeypatch.setattr(
            processes,
            "presence",
            lambda pid, _began: "alive" if self.serving is not None and self.serving.pid == pid else "gone",
        )

    def _new(self, version: str) -> protocol.Pong:
        return protocol.Pong(version=version, pid=100 + self.stops, uptime_s=1.0)

    def _stop(self, request: object, *_args: object, **_options: object) -> protocol.Done:
        assert isinstance(request, protocol.Stop)
        self.stops += 1
        self.serving = None
        if self.others:
            self.others -= 1
            self.serving = self._new(OTHER)  # before the one who stopped it looks
        return protocol.Done()

    def _start(self) -> protocol.Pong:
        if self.serving is None:
            self.serving = self._new(__version__)
        return self.serving


@pytest.mark.parametrize("others", [0, 1, 3])
def test_up_ends_with_its_own_version_serving_although_others_start_theirs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], others: int
) -> None:
    machine = Machine(monkeypatch, others=others)
    daemon.start()
    assert machine.serving is not None
    assert machine.serving.version == __version__
    assert capsys.readouterr().err == f"memd {OTHER} runs; restarting it as {__version__}\n"


def test_up_says_so_when_another_version_comes_back_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, others=1000)
    with pytest.raises(TryAgain, match=OTHER):
        daemon.start()
    assert machine.stops == daemon.START_TRIES


def test_a_daemon_is_stopped_when_it_is_gone_whoever_serves_then(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, others=1)
    daemon.stop()
    assert machine.stops == 1
    assert machine.serving is not None


def test_the_status_that_up_shows_is_of_its_own_daemon_although_another_took_it_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, others=0)
    shown: list[str] = []

    def exchange(_kind: bytes, _request: bytes, _timeout_s: float) -> tuple[bytes, bytes]:
        if not shown:
            shown.append("gone")
            machine.serving = machine._new(OTHER)  # its `up` is a moment behind ours
            raise hook.Unreachable("Connection reset by peer")
        assert machine.serving is not None
        shown.append(machine.serving.version)
        return b"t", b"0\n"

    monkeypatch.setattr(quick.hook, "exchange", exchange)
    assert daemon._status() == 0
    assert shown == ["gone", __version__]


def test_a_daemon_that_somebody_else_stops_too_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, others=0)

    def gone(*_args: object, **_options: object) -> protocol.Done:
        machine.serving = None
        raise Unavailable("memd is not running (Connection reset by peer)")

    monkeypatch.setattr(client, "ask", gone)
    daemon.start()
    assert machine.serving is not None
    assert machine.serving.version == __version__
