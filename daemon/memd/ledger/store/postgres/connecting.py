"""Connections to the server, and its errors in memd's words.

How to get there is libpq's business: a service file, `PGPASSFILE`, certificates, the environment. memd holds
no password: one in the configuration is refused. What is not a local socket is asked for its certificate
(`sslmode=verify-full`) unless the person says otherwise. A peer that vanishes is noticed within seconds on
either side: here by keep-alives, there by `IDLE_MS`, after which a transaction that waits for us is over.

source  PostgreSQL 15, "Parameter Key Words" of libpq and appendix A, "Error Codes"; psycopg 3.2
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from memd.errors import ConfigError, MemdError, TryAgain
from memd.ledger.store.interface import Interrupted, NotTaken, TooNew, Unreachable
from memd.ledger.store.postgres import schema

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

CONNECT_S: Final = 5
STATEMENT_MS: Final = 20_000
WRITE_MS: Final = 60_000
LOCK_MS: Final = 10_000
IDLE_MS: Final = 5_000
TRIES: Final = 8
"""Of a transaction that the server called off because of others."""

MIGRATION_TRIES: Final = 20
CANCEL_S: Final = 1.0
EXTRA: Final = "memd[postgresql]"

_DEFAULTS: Final = (
    ("connect_timeout", CONNECT_S),
    ("application_name", "memd"),
    ("keepalives_idle", 5),
    ("keepalives_interval", 3),
    ("keepalives_count", 3),
    ("tcp_user_timeout", 15_000),
)
SYSTEM_ROOTS: Final = 160_000
"""The version of libpq that knows the roots of the system."""

_again = ("40001", "40P01")
_name = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def driver() -> Any:
    """psycopg, which only this engine needs. raises ConfigError"""
    try:
        import psycopg
    except ImportError as reason:
        raise ConfigError(
            f"the engine postgresql needs psycopg: {reason}",
            remedy=f"Install it beside memd: pip install '{EXTRA}'. Or set [ledger] engine to \"sqlite\".",
        ) from reason
    return psycopg


def parameters(connection: str) -> dict[str, Any]:
    """What libpq is given for the words of the configuration.

    raises  ConfigError for a password, or for words that libpq does not take; neither is repeated
    """
    psycopg = driver()
    try:
        given: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(connection)
    except psycopg.Error:
        raise ConfigError(
            "ledger.connection is not a connection string of libpq",
            remedy='Write it as "service=memd", or as "host=db.example.org dbname=memd user=me".',
        ) from None
    if "password" in given or "sslpassword" in given:
        raise ConfigError(
            "ledger.connection holds a password, which memd does not keep",
            remedy="Put it into ~/.pgpass (mode 0600), or use a service file or a client certificate.",
        )
    for key, value in _DEFAULTS:
        if key not in given and not _of_service(given, key):
            given[key] = value
    if not _is_local(given) and not _says_sslmode(given):
        given["sslmode"] = "verify-full"
        if not _says_root(given) and psycopg.pq.version() >= SYSTEM_ROOTS:
            given["sslrootcert"] = "system"
    return given


def _is_local(given: dict[str, Any]) -> bool:
    """Whether only a socket in the file system can be meant."""
    hosts = given.get("host") or os.environ.get("PGHOST") or ""
    if given.get("hostaddr") or os.environ.get("PGHOSTADDR"):
        return False
    if not hosts and (given.get("service") or os.environ.get("PGSERVICE")):
        hosts = _of_service(given, "host")
        if not hosts and _of_service(given, "hostaddr"):
            return False
    return all(host.startswith(("/", "@")) for host in hosts.split(",")) if hosts else True


def _says_sslmode(given: dict[str, Any]) -> bool:
    return bool(given.get("sslmode") or os.environ.get("PGSSLMODE") or _of_service(given, "sslmode"))


def _says_root(given: dict[str, Any]) -> bool:
    if given.get("sslrootcert") or os.environ.get("PGSSLROOTCERT") or _of_service(given, "sslrootcert"):
        return True
    return os.path.exists(os.path.expanduser("~/.postgresql/root.crt"))


def _of_service(given: dict[str, Any], key: str) -> str:
    """A word of the service that is named, as libpq looks for it; empty: not said.

    source  PostgreSQL 15, "The Connection Service File"
    """
    service = given.get("service") or os.environ.get("PGSERVICE")
    if not service:
        return ""
    folder = os.environ.get("PGSYSCONFDIR", "/etc/postgresql-common")
    files = [os.environ.get("PGSERVICEFILE") or os.path.expanduser("~/.pg_service.conf")]
    files.append(os.path.join(folder, "pg_service.conf"))
    for file in files:
        found = ""
        is_inside = is_there = False
        try:
            with open(file, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    words = line.strip()
                    if words.startswith("["):
                        is_inside = words == f"[{service}]"
                        is_there = is_there or is_inside
                    elif is_inside and not words.startswith("#"):
                        name, _, value = words.partition("=")
                        if name.strip() == key:
                            found = value.strip()
        except OSError:
            continue
        if is_there:
            return found
    return ""


def checked_schema(name: str) -> str:
    """raises ConfigError for what cannot be the name of a schema"""
    if not _name.fullmatch(name) or name.startswith("pg_"):
        raise ConfigError(
            f"ledger.schema {name!r} cannot be the name of a schema",
            remedy="Use lower-case letters, digits and underscores, beginning with a letter.",
        )
    return name


class Link:
    """One connection, opened when it is needed and again after it was lost. For one thread at a time."""

    def __init__(self, given: dict[str, Any], schema_name: str, *, is_writer: bool = False) -> None:
        self._given = given
        self._schema = checked_schema(schema_name)
        self._is_writer = is_writer
        self._psycopg = driver()
        self._connection: psycopg.Connection[Any] | None = None
        self._is_called_off = False
        self._calling: threading.Thread | None = None

    # ----------------------------------------------------------------------------- statements

    def rows(self, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._cursor().execute(sql, bindings or None).fetchall()
        return found

    def row(self, sql: str, *bindings: Any) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._cursor().execute(sql, bindings or None).fetchone()
        return found

    def value(self, sql: str, *bindings: Any) -> Any:
        found = self.row(sql, *bindings)
        return None if found is None else found[0]

    def run(self, sql: str, *bindings: Any) -> int:
        """How many rows it changed."""
        count: int = self._cursor().execute(sql, bindings or None).rowcount
        return count

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        held = list(rows)
        if held:
            self._cursor().executemany(sql, held)

    def _cursor(self) -> Any:
        if self._is_called_off:
            raise Interrupted("the query was called off")
        return self._open().cursor()

    # ---------------------------------------------------------------------------- transactions

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All statements inside see one state; only looks. raises Unreachable, Interrupted, TryAgain"""
        with self.saying():
            connection = self._open()
            connection.execute("begin isolation level repeatable read read only")
            try:
                yield
            finally:
                self._roll_back()

    @contextlib.contextmanager
    def transaction(self, *, on_commit: Callable[[], None] = lambda: None) -> Iterator[None]:
        """All or nothing. on_commit: called just before the commit is sent: from then on it may be in."""
        connection = self._open()
        connection.execute("begin isolation level read committed")
        is_in = False
        try:
            yield
            on_commit()
            connection.execute("commit")
            is_in = True
        finally:
            if not is_in:
                self._roll_back()

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is None or connection.closed:
            return
        try:
            connection.execute("rollback")
        except self._psycopg.Error:
            self.close()

    def retried(self, once: Callable[[], T]) -> T:
        """What `once` gives, begun again when the server called it off because of others."""
        pause = 0.01
        for _ in range(TRIES):
            try:
                return once()
            except self._psycopg.Error as error:
                if error.sqlstate not in _again:
                    raise
            time.sleep(pause)
            pause *= 2
        return once()

    @contextlib.contextmanager
    def saying(self) -> Iterator[None]:
        """The one place where the server's errors become memd's. A statement that is wrong stays a bug."""
        try:
            yield
        except self._psycopg.Error as error:
            told = self._translated(error)
            if told is None:
                raise
            raise told from error

    def is_lost(self, error: Exception) -> bool:
        """Whether the connection went, so that nobody knows whether a commit came through."""
        if not isinstance(error, self._psycopg.Error):
            return False
        if self._connection is None or self._connection.closed:
            return True
        return isinstance(error, self._psycopg.OperationalError) and error.sqlstate is None

    def _translated(self, error: Any) -> MemdError | None:
        if self._is_called_off:
            return Interrupted("the query was called off")
        state = error.sqlstate or ""
        first = str(error).strip().split("\n")[0]
        if state[:2] in ("22", "54") or isinstance(error, self._psycopg.DataError):
            return NotTaken(f"the ledger's server does not take a value ({state})")
        if state == "57014":
            return TryAgain(f"the ledger's server took too long: {first}")
        if state in _again or state == "55P03":
            return TryAgain(f"the ledger's server is busy with others: {first}")
        if state.startswith("53"):
            return TryAgain(f"the ledger's server has no room: {first}", remedy="Make room on the server.")
        if state == "42501":
            return ConfigError(
                f"the ledger's server does not permit it: {first}",
                remedy="Let the database user create and use the schema of memd.",
            )
        if state.startswith("28"):
            return Unreachable(
                f"the ledger's server does not let memd in: {first}",
                remedy="Check user, ~/.pgpass and certificates: `psql` must get in with the same words.",
            )
        if state == "42P01":
            return Unreachable("the ledger's server has no ledger yet; it is made when it is first reached")
        if state == "3D000":
            return Unreachable(
                f"the ledger's server has no such database: {first}", remedy="Create it with `createdb`."
            )
        lost = isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError)
        if lost or state[:2] in ("08", "57", "58", "25"):
            self.close()
            return Unreachable(f"the ledger's server cannot be reached: {first}")
        return None

    # ------------------------------------------------------------------------------ connection

    def _open(self) -> Any:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        connection = self._psycopg.connect(**self._given, autocommit=True)
        with contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            write_ms = WRITE_MS if self._is_writer else STATEMENT_MS
            connection.execute(f"set statement_timeout = {write_ms}")
            connection.execute(f"set lock_timeout = {LOCK_MS}")
            connection.execute(f"set idle_in_transaction_session_timeout = {IDLE_MS}")
            connection.execute(f"set search_path = {self._schema}")
            stack.pop_all()
        self._connection = connection
        return connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(self._psycopg.Error):
                connection.close()

    def begin_question(self) -> None:
        """What comes is another question. The connection of one that was called off is not used again: the
        server may hear of that late, and would end the wrong one."""
        calling, self._calling = self._calling, None
        if calling is not None:
            calling.join(timeout=2 * CANCEL_S)
            self.close()
        self._is_called_off = False

    def call_off(self) -> None:
        """Call off what the connection does, from any thread; returns at once."""
        self._is_called_off = True
        connection = self._connection
        if connection is not None and not connection.closed:
            self._calling = threading.Thread(target=_cancel, args=(connection,), daemon=True)
            self._calling.start()

    # --------------------------------------------------------------------------------- version

    def settle(self) -> None:
        """Make the tables if they are not there, or bring them to today's. raises TooNew, Unreachable"""
        with self.saying():
            self._open()
            for attempt in range(MIGRATION_TRIES):
                try:
                    if self._settle_once():
                        return
                except (self._psycopg.errors.IntegrityError, self._psycopg.errors.ProgrammingError) as race:
                    # another machine makes the same tables at this moment
                    if attempt == MIGRATION_TRIES - 1 or race.sqlstate == "42501":
                        raise
                except self._psycopg.errors.OperationalError as race:
                    if race.sqlstate not in _again or attempt == MIGRATION_TRIES - 1:
                        raise
                time.sleep(0.05 * (attempt + 1))

    def _settle_once(self) -> bool:
        if self._version() is None:
            self.run(f"create schema if not exists {self._schema}")
        with self.transaction():
            found = self._version() or 0
            for step in range(found, schema.VERSION):
                for statement in schema.MIGRATIONS[step].split(";\n"):
                    self.run(statement)
        return True

    def _version(self) -> int | None:
        there = self.value(
            "select 1 from information_schema.tables where table_schema = %s and table_name = 'ledger'",
            self._schema,
        )
        if not there:
            return None
        found: int = self.value("select version from ledger") or 0
        if found > schema.VERSION:
            raise TooNew(
                f"the ledger on the server has version {found}; this memd knows versions up to"
                f" {schema.VERSION}",
                remedy="Upgrade memd on this machine.",
            )
        return found


def _cancel(connection: Any) -> None:
    """Ask the server; when it cannot be reached, shut the socket, so that the thread that waits wakes up."""
    try:
        connection.cancel_safe(timeout=CANCEL_S)
    except Exception:  # noqa: BLE001 - whatever it was, the thread must not go on waiting
        with contextlib.suppress(OSError, ValueError), _socket_of(connection) as held:
            held.shutdown(socket.SHUT_RDWR)


def _socket_of(connection: Any) -> socket.socket:
    return socket.socket(fileno=os.dup(connection.fileno()))
