"""memctl completion: what completes memctl's words in bash, zsh and fish.

The script asks memctl itself at each Tab, so it never has to be made anew. It asks by `--answer SHELL`, with
the words up to the cursor behind it, and gets a first line, `words`, `files` or `directories`, then a word a
line, with what it means behind a tab.
"""

from __future__ import annotations

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "completion",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Print what completes memctl's words in your shell: commands, options,\n"
        "agents, workstreams, sessions, topics. Let the shell read it:\n\n"
        '  bash   eval "$(memctl completion bash)"    in ~/.bashrc\n'
        '  zsh    eval "$(memctl completion zsh)"     in ~/.zshrc, after compinit\n'
        "  fish   memctl completion fish | source     in ~/.config/fish/config.fish",
    )
    parser.add_argument("shell", choices=SHELLS, help="yours")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words to be completed stand behind `--answer`."""
    at = words.index("--answer") + 1 if "--answer" in words[:3] else len(words)
    return list(words[:at]), list(words[at:])


def run(options: argparse.Namespace) -> int:
    if not options.answer:
        sys.stdout.write(SCRIPTS[options.shell])
        return 0
    from memctl import completing

    words = list(options.rest)
    quote = ""
    if options.shell == "bash":
        words, quote = lexed(words[0] if words else "")
    *before, current = words or [""]
    try:
        found = completing.answer(before, current)
    except Exception:  # noqa: BLE001  a Tab is answered or it is not: nothing of it may stand in the line
        return 0
    print(found.kind)
    for word in found.words:
        if any(ord(sign) < 32 for sign in word.text):
            continue  # no shell could be told
        if options.shell == "bash":
            print(bash_quoted(word.text[_left_of(current, quote) :], quote))
        else:
            print(f"{word.text}\t{_line(word.says)}" if word.says else word.text)
    return 0


def _line(text: str) -> str:
    return " ".join(text.split())


# ------------------------------------------------------------------------------------------ bash


def lexed(line: str) -> tuple[list[str], str]:
    """The words of a line of bash up to the cursor, without the first, and the quote that is still open."""
    words, word, quote, is_open = [], "", "", False
    at = 0
    while at < len(line):
        sign = line[at]
        at += 1
        if sign == "\\" and quote != "'" and at < len(line):
            word, is_open = word + line[at], True
            at += 1
        elif quote:
            if sign == quote:
                quote = ""
            else:
                word += sign
        elif sign in "\"'":
            quote, is_open = sign, True
        elif sign in " \t\n":
            if is_open:
                words.append(word)
            word, is_open = "", False
        else:
            word, is_open = word + sign, True
    return [*words, word][1:], quote


def _left_of(current: str, quote: str) -> int:
    """How much of a word stays where it is: bash completes what is behind the last `=` or `:`."""
    if quote:
        return 0
    value = current.partition("=")[2] if current.startswith("--") and "=" in current else current
    return max(value.rfind("="), value.rfind(":")) + 1


def bash_quoted(text: str, quote: str) -> str:
    """The word as it must stand in the line, in an open quote or without one."""
    if quote == "'":
        return text.replace("'", "'\\''")
    special = '"\\$`' if quote else " \t\"'\\$`&|;<>()*?[]{}~#!="
    return "".join(f"\\{sign}" if sign in special else sign for sign in text)


BASH = r"""# memctl completion for bash
_memctl() {
    local kind line word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    { IFS= read -r kind
      while IFS= read -r line; do COMPREPLY+=("$line"); done
    } < <("${COMP_WORDS[0]}" completion bash --answer "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $kind in
        files) compopt -o default ;;
        directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    esac
}
complete -F _memctl memctl
"""

ZSH = r"""#compdef memctl
# memctl completion for zsh
_memctl() {
    local -a lines values shown
    local kind line
    lines=("${(@f)$("${words[1]}" completion zsh --answer "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    kind=$lines[1]
    shift lines
    case $kind in
        files) _files ;;
        directories) _files -/ ;;
        words)
            for line in $lines; do
                values+=("${line%%$'\t'*}")
                if [[ $line == *$'\t'* ]]; then
                    shown+=("${line%%$'\t'*}  -- ${line#*$'\t'}")
                else
                    shown+=("$line")
                fi
            done
            [[ $PREFIX == --*=* ]] && compset -P '*='
            compadd -l -d shown -a values ;;
    esac
}
if [[ $funcstack[1] == _memctl ]]; then
    _memctl "$@"
else
    compdef _memctl memctl
fi
"""

FISH = r"""# memctl completion for fish
function __memctl_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (command $words[1] completion fish --answer $words[2..-1] 2>/dev/null)
    set -l current (commandline -ct)
    switch "$lines[1]"
        case files
            __fish_complete_path $current
        case directories
            __fish_complete_directories $current ''
        case words
            set -l before ''
            string match -q -- '--*=*' $current; and set before (string replace -r -- '=.*' '=' $current)
            printf '%s\n' $before$lines[2..-1]
    end
end
complete -c memctl -f -a '(__memctl_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
