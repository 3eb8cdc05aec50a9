"""The command's entry: `status` and hooks by the short way, everything else by argparse.

The short way imports builtins and `memctl.hook` only: a status costs little more than the interpreter.
"""

import sys


def main() -> int:
    words = sys.argv[1:]
    if words and words[0] == "status":
        from memctl import quick

        answer = quick.status(words[1:])
        if answer is not None:
            return answer
    from memctl import cli

    return cli.run(words)


if __name__ == "__main__":
    sys.exit(main())
