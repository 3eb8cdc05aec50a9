"""How a harness is started: what its arguments say already, and what memd adds to them. Pure values.

Arguments are text as `os.fsdecode` gives it, so any bytes travel through. An adapter says these things in one
`Launch`; which program, which directory and which environment the child gets is put together by
`memd.workstream.launch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a person's native arguments say.

    is_passing    help, version, a utility, or a run that keeps no session: nothing is linked or imported
    is_batch      a run without a person at the screen: nothing is asked
    has_selector  they name a session or a way to choose one: memd adds none
    session       the id that the selector names, or that a new session is to have; empty: none, or not known
    flavor        the launch flavour they ask for; empty: they do not say
    folders       store variables that they overrule for this launch: name -> path, relative to the client's
                  directory. For whoever reads the stores; the child has its arguments
    """

    is_passing: bool = False
    is_batch: bool = False
    has_selector: bool = False
    session: str = ""
    flavor: str = ""
    folders: Mapping[str, str] = {}


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What memd wants of a launch.

    session   go on in this one; empty: begin a new one
    new_id    a fresh UUID (version 4), for a harness that lets the id of a new session be chosen
    is_yolo   the wrapper's `--yolo` was given
    flavor    the launch flavour
    supports  those of `Launch.probes` that the installed program was seen to know
    path      the file that the session lies in, when it was begun in another directory than the child's: the
              program may not find it by its id then
    is_usual  the session lies where the harness keeps its stores by itself, while the client's variables
              point elsewhere
    cwd       the client's directory, its links resolved; empty: not known
    """

    session: str = ""
    new_id: str = ""
    is_yolo: bool = False
    flavor: str = ""
    supports: frozenset[str] = frozenset()
    path: str = ""
    is_usual: bool = False
    cwd: str = ""


class Argv(msgspec.Struct, frozen=True, kw_only=True):
    """What comes after the program's name, and what becomes of the environment.

    session  the id the child will be on; empty: only known once a hook or the store says it
    set      variables the child gets; `unset`: variables it must not see
    notices  what a person should know about this launch
    """

    arguments: tuple[str, ...]
    session: str = ""
    set: Mapping[str, str] = {}
    unset: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class Doorway(msgspec.Struct, frozen=True, kw_only=True):
    """What a way in may use, for a harness whose hooks cannot tell a starting session anything.

    said, intent     of this launch. A fresh session is one where neither has a selector or a session
    cwd, home        the client's, absolute
    variables        the client's store variables, as its arguments leave them
    folder           absolute: a private folder of this run, where `Delivered.files` will lie
    read             the content of a small file; None when there is none. raises MemdError
    """

    said: Said
    intent: Intent
    cwd: bytes
    home: bytes
    variables: Mapping[str, bytes]
    folder: bytes
    read: Callable[[bytes], bytes | None]


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """How a text gets to the child's model.

    argv     what `compose` gave, with the way in
    files    name -> content: written into the doorway's folder, mode 0600, before the child starts; they go
             when it has ended, however that came about
    is_told  false: this launch has no way in. The text stays due, and `argv.notices` should say so
    """

    argv: Argv
    files: Mapping[str, bytes] = {}
    is_told: bool = True


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """All that memd knows about starting one harness.

    executables  names of the program, best first; looked for in the client's PATH
    is_pooled    may be started by a launch that names no harness
    variables    environment variables that decide where this harness keeps its stores and settings
    probes       words whose presence in the output of `PROGRAM --help` decides what `compose` may use for a
                 new session; `yolo_probes`: those of them that are for the wrapper's `--yolo` alone
    words        launcher words that also choose a flavour: word -> flavour
    read         what native arguments say; raises nothing
    compose      the arguments of the child; raises nothing. Never called for arguments that are passing, and
                 with neither `session` nor `new_id` for those that have a selector. Keeps what the person
                 typed, in its order, and puts nothing behind a `--`
    deliver      gives the child what its session has to be told, for a harness whose hooks cannot. Called
                 before the child starts, possibly more than once, when there is something to tell; what it
                 told counts as told once the child is there. raises MemdError: no child then
    is_bound     a session goes on only in the very directory in which it was begun
    """

    executables: tuple[str, ...]
    is_pooled: bool = False
    variables: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    yolo_probes: tuple[str, ...] = ()
    words: Mapping[str, str] = {}
    read: Callable[[Sequence[str]], Said]
    compose: Callable[[Sequence[str], Intent], Argv]
    deliver: Callable[[str, Argv, Doorway], Delivered] | None = None
    is_bound: bool = False
