"""memctl config: the settings in force, every key explained."""

from __future__ import annotations

import argparse
import sys

from memctl import paths
from memd import settings
from memd.errors import ConfigError, DiskError
from memd.ledger import configured


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "config",
        description="Show the configuration: every key, what it takes, what it means, and what holds now.",
    )
    parser.add_argument("--show", action="store_true", help="print it as TOML (the default)")
    parser.add_argument("--path", action="store_true", help="only say where the file is")


def run(options: argparse.Namespace) -> int:
    path = paths.config_path()
    if options.path:
        print(paths.shown(path))
        return 0
    source = paths.shown(path)
    try:
        with open(path, "rb") as file:
            current = configured.parse(file.read(), source)
    except FileNotFoundError:
        current, source = settings.Settings(), f"{source} does not exist: these are the defaults"
    except OSError as reason:
        raise DiskError("read", path, reason) from reason
    except ConfigError as reason:
        sys.stdout.write(settings.render(settings.Settings(), "the defaults; the file is broken, see below"))
        raise reason
    sys.stdout.write(settings.render(current, source))
    return 0
