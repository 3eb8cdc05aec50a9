"""What a person ordered with `memctl run`, read before anything is reserved.

An order for a harness that was named is certain here: which program, what its arguments say. One that names
none is settled when the workstream has had its say.
"""

from __future__ import annotations

import msgspec

from memd.errors import UsageError
from memd.harness.launching import Said
from memd.harness.model import Adapter, Environment
from memd.protocol_runs import Prepare
from memd.workstream import launch
from memd.workstream.launch import Client
from memd.workstream.selection import Wanted


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """flavor: what the words ask for; empty: they do not say"""

    adapter: Adapter
    program: bytes
    client: Client
    flavor: str = ""
    said: Said = Said()
    native: tuple[str, ...] = ()
    is_yolo: bool = False
    is_fresh: bool = False

    def environment(self) -> Environment:
        """Where the child will look for its stores."""
        return environment(self.client, self.said)


def environment(client: Client, said: Said | None = None) -> Environment:
    """Where a child of this client will look for its stores."""
    variables = launch.store_variables(said or Said(), client)
    return Environment(home=client.home, variables=variables, places=(client.cwd,), is_child=True)


def client_of(step: Prepare, home: bytes) -> Client:
    """home: of a client that does not say its own. raises UsageError"""
    if not step.cwd.startswith(b"/") or b"\0" in step.cwd:
        raise UsageError(f"{step.cwd!r} is not an absolute path", remedy="Start in a directory that exists.")
    own = step.variables.get("HOME", b"")
    known = set(launch.variables())
    return Client(
        cwd=step.cwd,
        home=own if own.startswith(b"/") else home,
        path=step.path,
        variables={name: value for name, value in step.variables.items() if name in known},
    )


def wanted_of(step: Prepare) -> Wanted:
    return Wanted(workstream=step.workstream, new=step.new)


def named(step: Prepare, client: Client) -> Order:
    """The order for the harness that a word names. Looks at files.

    raises  UsageError for words that contradict each other or mean nothing, NoProgram
    """
    adapter, flavor = launch.chosen(step.word)
    assert adapter.launch is not None
    wrapped = launch.unwrap(step.native)
    said = adapter.launch.read(wrapped.native)
    is_fresh = step.is_fresh or wrapped.is_fresh
    if is_fresh and said.has_selector:
        raise UsageError(
            f"--fresh begins a new session, and the arguments of {adapter.title} choose one already",
            remedy="Leave one of them out.",
        )
    return Order(
        adapter=adapter,
        program=launch.program(adapter.launch, client, step.executable),
        client=client,
        flavor=said.flavor or flavor,
        said=said,
        native=wrapped.native,
        is_yolo=step.is_yolo or wrapped.is_yolo,
        is_fresh=is_fresh,
    )


def unnamed(step: Prepare, adapter: Adapter, client: Client) -> Order:
    """The order for a harness that nobody named. Looks at files. raises NoProgram"""
    assert adapter.launch is not None
    return Order(
        adapter=adapter,
        program=launch.program(adapter.launch, client),
        client=client,
        is_yolo=step.is_yolo,
        is_fresh=step.is_fresh,
    )


def check_unnamed(step: Prepare) -> None:
    """raises UsageError"""
    if step.native or step.executable:
        what = "arguments for it" if step.native else "--executable"
        raise UsageError(f"{what} without the name of an agent", remedy="Name it: `memctl run claude ...`.")
