"""What installed hooks run, as `memd_hook.py`: it loads the hook path, a copy of `memctl.hook` beside it.

A script is compiled at every start, a module once: so this file is short. Whatever is wrong with the other,
the agent gets the harmless answer that its command carries.
"""

import posix
import sys

sys.path.insert(0, __file__.rpartition("/")[0] or ".")
try:
    from memd_hook_path import main  # type: ignore[import-not-found]
except BaseException:  # noqa: BLE001

    def main(words):  # type: ignore[no-untyped-def]
        if "--else" in words[:-1]:
            posix.write(1, words[words.index("--else") + 1].encode("utf-8", "surrogateescape"))


try:
    main(sys.argv[1:])
except BaseException:  # noqa: BLE001, S110
    pass
posix._exit(0)  # nothing is left to be tidied: an agent waits for this process to be gone
