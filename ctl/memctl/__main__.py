"""The command's entry: `status` and `hook` by the short way, everything else by argparse.

The short way imports builtins and `memctl.hook` only: a status costs little more than the interpreter.
"""

import sys


def main() -> int:
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115  for the life of the process
    if sys.stderr is None:
        sys.stderr = open("/dev/null", "w")  # noqa: SIM115
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        return _output_is_gone(141)
    except OSError as reason:
        sys.stderr.write(f"memctl: cannot write the answer: {reason.strerror or reason}\n")
        return _output_is_gone(74)
    return code


def _output_is_gone(code: int) -> int:
    """Whoever read our output left, or the disk is full: nothing more is written at the end either."""
    import posix

    posix.dup2(posix.open("/dev/null", posix.O_WRONLY), 1)
    return code


def _run(words: list[str]) -> int:
    if words and words[0] == "hook" and words[1:2] not in (["-h"], ["--help"]):
        from memctl import hook, quick

        return hook.main(words[1:], quick.known_event)
    if words and words[0] == "status":
        from memctl import quick

        answer = quick.status(words[1:])
        if answer is not None:
            return answer
    from memctl import cli

    return cli.run(words)


if __name__ == "__main__":
    sys.exit(main())
