"""Wiring: settings, instance, nurseries, signals. No logic."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import trio
from msgspec.structs import replace

import memd
from memctl import paths
from memd import heap
from memd.errors import DiskError, MemdError
from memd.harness.registry import adapters
from memd.ledger import sources
from memd.ledger.messages import Rules
from memd.ledger.store import database, engines
from memd.ledger.store.engines import Choice
from memd.ledger.store.workstreams import Run
from memd.memory.ownership import Ownership
from memd.memory.shared.topics import TopicStore
from memd.service import backup_replace, hook_copies, logs, topics
from memd.service.backup import Backups
from memd.service.backup_places import Roots
from memd.service.clients import Clients
from memd.service.configuration import Configuration
from memd.service.dispatch import Dispatch
from memd.service.environments import Environments
from memd.service.handoffs import Handoffs
from memd.service.healer import Healer, now_ms
from memd.service.hooks import HookService
from memd.service.instance import Instance
from memd.service.launches import Launches
from memd.service.ledger import Ledger
from memd.service.notify import ServiceManager
from memd.service.overview import Overview
from memd.service.runs import Runs
from memd.service.server import Traffic
from memd.service.watcher import Watcher
from memd.service.work import WorkAnswers
from memd.service.work_sessions import Carrying
from memd.settings import Settings

AGAIN_S = 5.0  # before a part of the daemon that failed with a bug is begun again
SWITCH_S = 0.0001
DRAIN_S = 1.0  # for requests that are being answered when the daemon is told to stop

log = logs.logger()


def main() -> int:
    """Run the daemon until it is told to stop; the exit status says why it did not start."""
    words = sys.argv[1:]
    if words not in ([], ["--detached"]):
        return _explain(words)
    is_detached = words == ["--detached"]
    try:
        os.umask(0o077)
        faulthandler.enable()  # a watchdog's SIGABRT shows where the daemon stood
        _allow_many_files()
        sys.setswitchinterval(SWITCH_S)
        heap.settle()
        database.settle()
        manager = ServiceManager(os.environ)  # type: ignore[arg-type]
        backup_replace.finish_begun(_roots())  # before anything is read that a restore replaces
        configuration = Configuration(paths.config_path())
        log_file = logs.LogFile(
            paths.log_path(), configuration.current.log, logs.echo_stream(not is_detached)
        )
        inherited = manager.inherited_socket()
        instance = Instance(paths.state_dir(), paths.computed_address(), inherited)
    except MemdError as reason:
        remedy = paths.WRITABLE if isinstance(reason, DiskError) else reason.remedy
        print(f"memd: {reason}\n{remedy}", file=sys.stderr)
        return reason.exit_status
    except ValueError as reason:
        print(f"memd: {reason}", file=sys.stderr)
        return 64
    recent = logs.RecentErrors()
    logs.configure(log_file, configuration.current.log.level, recent)
    origin = "detached" if is_detached else "in the foreground"
    if inherited is not None:
        origin = "started by its socket"
    elif "INVOCATION_ID" in os.environ:
        origin = "run by the service manager"
    daemon = Daemon(configuration, instance, manager, log_file, recent, origin)
    try:
        trio.run(daemon.run)
    finally:
        instance.close()
        log_file.close()
    return 0


def _explain(words: list[str]) -> int:
    """Help, version, and words that mean nothing here."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="memd", description="One memory, and one line of work, for every coding agent."
    )
    parser.add_argument("--version", action="version", version=f"memd {memd.__version__}")
    parser.add_argument("--detached", action="store_true", help="started in the background by memctl")
    unknown = parser.parse_known_args(words)[1]
    parser.print_usage(sys.stderr)
    print(f"memd: what is {' '.join(unknown or words)!r}? Its command is memctl.", file=sys.stderr)
    return 64


def _allow_many_files() -> None:
    """Each client and each store is a descriptor; the soft limit is often 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(65536, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Daemon:
    """The parts and the order in which they start and stop."""

    def __init__(
        self,
        configuration: Configuration,
        instance: Instance,
        manager: ServiceManager,
        log_file: logs.LogFile,
        recent: logs.RecentErrors,
        origin: str,
    ) -> None:
        self._configuration = configuration
        self._instance = instance
        self._manager = manager
        self._log_file = log_file
        self._recent = recent
        self._stop = trio.Event()
        watch = configuration.current.watch
        self._watcher = Watcher(step_ms=watch.step_ms, poll=watch.mode == "poll")
        self._healer = Healer(self._ownership(), self._ownership(), self._settings(), self._watcher)
        store = configuration.current.ledger
        choice = Choice(engine=store.engine, connection=store.connection, schema=store.schema)
        root = paths.data_dir() + b"/ledger"
        self._ledger = Ledger(root, self._watcher, engines.chosen(root, choice))
        self._environments = Environments(
            paths.home_dir(), paths.state_dir() + b"/environments.json", self._follow_stores
        )
        self._topics = self._memory_topics()
        self._healer.on_config_homes = self._environments.set_config_homes
        self._follow_stores()
        self._clients = Clients(paths.state_dir() + b"/clients.json", paths.home_dir())
        self._runs = Runs(
            self._ledger, checkpoint=self._clients.checkpoint, wall_ms=now_ms, ground=self._ground
        )
        self._handoffs = Handoffs(self._ledger, wall_ms=now_ms)
        self._hooks = HookService(
            runs=self._runs,
            handoffs=self._handoffs,
            ledger=self._ledger,
            healer=self._healer,
            topics=self._topics,
            environments=self._environments,
            home=paths.home_dir(),
            state=paths.state_dir(),
        )
        self._dispatch = self._make_dispatch(recent, origin)

    def _make_dispatch(self, recent: logs.RecentErrors, origin: str) -> Dispatch:
        home = paths.home_dir()
        overview = Overview(
            healer=self._healer,
            ledger=self._ledger,
            topics=self._topics,
            watcher=self._watcher,
            configuration=self._configuration,
            runs=self._runs,
            hooks=self._hooks,
            recent=recent,
            traffic=Traffic(),
            address=self._instance.address,
            origin=origin,
            started_s=time.monotonic(),
        )
        carrying = Carrying(self._environments)
        return Dispatch(
            healer=self._healer,
            ledger=self._ledger,
            topics=self._topics,
            launches=Launches(
                runs=self._runs,
                ledger=self._ledger,
                healer=self._healer,
                environments=self._environments,
                topics=self._topics,
                home=home,
                state=paths.state_dir(),
                address=self._instance.address,
                wall_s=time.time,
                clients=self._clients,
                carry=carrying.bring,
            ),
            hooks=self._hooks,
            work=WorkAnswers(
                runs=self._runs,
                handoffs=self._handoffs,
                ledger=self._ledger,
                carrying=carrying,
                home=home,
            ),
            environments=self._environments,
            configuration=self._configuration,
            overview=overview,
            backups=Backups(
                self._ledger,
                self._topics,
                _roots(),
                lambda: self._configuration.current.ledger.schema,
            ),
            stop=self._stop.set,
            reload=self.reload,
        )

    def _ownership(self) -> Ownership:
        home = paths.home_dir()
        named = self._configuration.current.memory.config_homes
        return Ownership(
            home=home,
            data=paths.data_dir(),
            state=paths.state_dir(),
            configured=tuple(_below_home(home, name) for name in named),
        )

    def _memory_topics(self) -> topics.MemoryTopics:
        home, state = paths.home_dir(), paths.state_dir()
        configuration = topics.configuration_of(
            home, paths.config_dir(), state, os.environb.get(b"XDG_CONFIG_HOME", b"")
        )
        return topics.MemoryTopics(
            TopicStore(topics.places(home, paths.data_dir(), state), configuration),
            self._watcher,
            inject=self._configuration.current.memory.inject,
            owned_by=self._owned_by,
        )

    async def _owned_by(self, path: bytes) -> bytes:
        """The memory folder of the enrolled agent that works in a directory; empty for none."""
        found = await self._healer.run(lambda owner: owner.where(path))
        return found.owned

    def _settings(self) -> Settings:
        """What holds. Before the file was ever understood nobody knows what it forbids: nothing is healed."""
        current = self._configuration.current
        if self._configuration.was_good:
            return current
        return replace(current, memory=replace(current.memory, heal=False))

    def _follow_stores(self) -> None:
        current = self._configuration.current
        home = paths.home_dir()
        rules = Rules(
            # before a file was ever understood nobody knows what it keeps out, or which secrets it names
            is_enabled=current.imports.enabled and self._configuration.was_good,
            harnesses=current.imports.harnesses,
            ignored=tuple(_below_home(home, name) for name in current.imports.ignore_paths),
            extra_patterns=current.redaction.extra_patterns,
            allowlist=current.redaction.allowlist,
        )
        self._ledger.configure(self._environments.all(), rules)

    def _ground(self, run: Run) -> bytes:
        """Where the sessions that a run goes on in were begun."""
        adapter = adapters().get(run.harness)
        if adapter is None or adapter.scattered is None:
            return run.cwd
        return sources.ground(adapter, self._environments.at(run.cwd), run.cwd)

    async def run(self) -> None:
        """Serve until told to stop; then stop accepting, let answers finish, stop the rest, in this order."""
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with trio.open_nursery() as background:
                background.start_soon(self._manager.feed_watchdog)
                async with trio.open_nursery() as requests:
                    async with trio.open_nursery() as accepting:
                        await accepting.start(self._dispatch.server.serve, self._instance.listener, requests)
                        for name, part in (
                            ("watcher", self._watcher.run),
                            ("healer", self._healer.keep),
                            ("ledger", self._ledger.run),
                            ("topics", self._topics.keep),
                            ("runs", self._runs.keep),
                            ("hooks", self._hooks.keep),
                        ):
                            background.start_soon(self._keep_running, name, part)
                        background.start_soon(hook_copies.renew)
                        self._manager.tell("READY=1", f"STATUS=serving, {self._configuration.source}")
                        log.info("daemon.ready", version=memd.__version__, pid=os.getpid())
                        accepting.start_soon(self._heed, signals)
                        await self._stop.wait()
                        accepting.cancel_scope.cancel()
                    self._manager.tell("STOPPING=1", "STATUS=finishing open requests")
                    self._dispatch.server.release()
                    requests.cancel_scope.deadline = trio.current_time() + DRAIN_S
                background.cancel_scope.cancel()
        log.info("daemon.stopped")

    async def _heed(self, signals: trio.abc.AsyncIterator[int]) -> None:  # type: ignore[name-defined]
        async for number in signals:
            if number == signal.SIGHUP:
                self.reload()
            else:
                self._stop.set()

    async def _keep_running(self, name: str, part: Callable[[], Awaitable[None]]) -> None:
        """A part that fails with a bug is told in the log and begun again: the rest of the daemon goes on."""
        while True:
            try:
                await part()
            except Exception as bug:
                log.error("part.failed", part=name, exc_info=bug)
            await trio.sleep(AGAIN_S)

    def reload(self) -> None:
        """Re-read the configuration; a broken one changes nothing but the status."""
        self._manager.tell_reloading()
        if self._configuration.read():
            current = self._configuration.current
            self._log_file.reconfigure(current.log)
            logs.configure(self._log_file, current.log.level, self._recent)
            self._watcher.reconfigure(step_ms=current.watch.step_ms, poll=current.watch.mode == "poll")
            self._healer.reconfigure(self._settings(), self._ownership(), self._ownership())
            self._topics.reconfigure(current.memory.inject)
            self._follow_stores()
        else:
            log.warning("config.refused", message=self._configuration.error)
        self._manager.tell("READY=1", f"STATUS=serving, {self._configuration.source}")


def _roots() -> Roots:
    return Roots(paths.data_dir(), paths.config_dir(), paths.state_dir())


def _below_home(home: bytes, name: str) -> bytes:
    """A path of the configuration: absolute, or beginning with `~/`."""
    path = os.fsencode(name)
    return home + path[1:] if path.startswith(b"~/") else path


if __name__ == "__main__":
    sys.exit(main())
