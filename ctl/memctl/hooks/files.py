"""The two files that installed hooks run: put in their place, and whether they are as this memctl has them.

    <data>/hook/memd_hook.py        the one that commands name; `memctl.hook_start`
    <data>/hook/memd_hook_path.py   what it loads; `memctl.hook`
    <data>/hook/__pycache__/        that, compiled; Python makes it anew when it is missing or old

They are copies: an installed hook outlives the environment that memctl was installed in.
"""

from __future__ import annotations

import os
import py_compile

from memctl import files, paths

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEMBERS = ((b"memd_hook_path.py", "hook.py"), (b"memd_hook.py", "hook_start.py"))


def hook_file() -> bytes:
    """The file that commands name; the same after every upgrade."""
    return paths.data_dir() + b"/hook/memd_hook.py"


def wanted() -> dict[bytes, bytes]:
    """Both paths and the content that this package gives them, in the order in which they are written."""
    folder = os.path.dirname(hook_file())
    return {folder + b"/" + name: _content(source) for name, source in MEMBERS}


def are_current() -> bool:
    """Whether both are there with the content that this memctl would give them; raises DiskError."""
    return all(files.read(path)[0] == content for path, content in wanted().items())


def place() -> bool:
    """Put both in their place; False: they were there. Raises DiskError, Refused for a link or a folder.

    A hook that runs meanwhile has the old pair or the new one, or loads the new part from the old start.
    """
    did = False
    for path, content in wanted().items():
        before = files.read(path)[0]
        if before != content:
            files.write(path, content, before)
            did = True
    _compile(next(iter(wanted())))
    return did


def _content(source: str) -> bytes:
    with open(os.path.join(PACKAGE, source), "rb") as file:
        return file.read()


def _compile(path: bytes) -> None:
    """For the Python that runs this, which is the one that hooks are run by."""
    try:
        py_compile.compile(os.fsdecode(path), doraise=True)
    except (OSError, py_compile.PyCompileError):
        pass  # a hook compiles it for itself
