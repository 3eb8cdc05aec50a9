"""The licence of every locked package that is installed here, one a line, as its own metadata says.

python requirements/licences.py > requirements/licences.txt
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

ALLOWED = frozenset(
    (
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "LGPL-3.0-only", "MIT", "MIT-0"),
        *("MPL-2.0", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib", "any-OSI"),
    )
)
"""What memd may come beside. LGPL: psycopg, for the postgresql extra alone, imported as it is."""

UNSAID = {"atheris": "Apache-2.0"}
"""Of packages whose metadata name none: what the licence file in them is."""

WORDS = (
    (r"Apache.*2|Apache Software License|^Apache$", "Apache-2.0"),
    (r"\bMIT\b", "MIT"),
    (r"BSD.2|2.Clause", "BSD-2-Clause"),
    (r"BSD.*3|3.Clause|^(New )?BSD( License)?$|BSD License", "BSD-3-Clause"),
    (r"Lesser General Public License v3|LGPL.*3", "LGPL-3.0-only"),
    (r"Mozilla Public License 2|MPL.*2", "MPL-2.0"),
    (r"Python Software Foundation|PSF", "PSF-2.0"),
    (r"Unlicense", "Unlicense"),
    (r"any-OSI", "any-OSI"),
    (r"ISC", "ISC"),
)


def locked(name: str) -> dict[str, str]:
    """Package and version of a lock file."""
    text = (HERE / name).read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", text, re.MULTILINE))


def licence(package: str) -> str:
    """A licence expression, as short as the metadata lets one know it; empty: it says none."""
    told = importlib.metadata.metadata(package)
    expression = told.get("License-Expression", "")
    if expression:
        return str(expression)
    classified = [one for one in told.get_all("Classifier") or () if "License ::" in one]
    short = [line for line in [str(told.get("License", "")).split("\n")[0].strip()] if 0 < len(line) < 60]
    found = [_known(words) for words in (*(one.split("::")[-1].strip() for one in classified), *short)]
    return " OR ".join(dict.fromkeys(one for one in found if one)) or UNSAID.get(package, "")


def _known(words: str) -> str:
    return next((name for pattern, name in WORDS if re.search(pattern, words)), "")


def is_allowed(expression: str) -> bool:
    """Whether one choice of an expression is in the list, with all of its parts."""
    choices = re.split(r"\s+OR\s+", expression.replace("(", "").replace(")", ""))
    return any(set(re.split(r"\s+AND\s+", choice)) <= ALLOWED for choice in choices)


def listed() -> list[str]:
    rows = []
    for package, _version in sorted(locked("all.txt").items()):
        try:
            rows.append(f"{package:28} {licence(package) or 'none said'}")
        except importlib.metadata.PackageNotFoundError:
            print(f"{package} is not installed here", file=sys.stderr)
    return rows


if __name__ == "__main__":
    print("\n".join(listed()))
