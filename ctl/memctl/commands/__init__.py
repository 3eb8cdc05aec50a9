"""One module per command or small family: `add_parser(subparsers)` and `run(options) -> exit status`."""
