"""Invented words, prose, code and command output: as uneven as real ones, the same for the same seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

VOCABULARY = 45_000
POOL_BYTES = 2_000_000  # of each kind of text

_SYLLABLES = (
    "ba be bi bo bu da de di do du fa fe fi fo ga ge gi go ka ke ki ko la le li lo lu ma me mi mo mu na ne ni"
    " no pa pe pi po ra re ri ro ru sa se si so su ta te ti to tu va ve vi vo wa we xe ya zo con pro tra ser"
    " cli res ent ion ing der ter ver sch end str"
)
SYLLABLES = _SYLLABLES.split()
_COMMON = (
    "the to of and a in is it for that on with as this be are was not we can if have from or by an at which"
    " use file test error function return value type class import data path run code line set get list string"
    " user server client session memory index search config build fix add remove update check read write"
    " parse lock cache token request response async await thread process database table query row column"
    " schema migration failed passed warning assert expected actual timeout retry scope resolver decision"
    " daemon socket watch"
)
COMMON = _COMMON.split()
SUFFIXES = ("py", "ts", "go", "rs", "md", "json", "toml", "tsx", "sql", "sh")
CODE = (
    "def {a}_{b}({c}, *, limit=None):\n",
    "if {a} is not None and {b}.{c}:\n",
    "return {a}.{b}({c})\n",
    'raise ValueError("{a} {b}: " + str({c}))\n',
    '{a} = {b}["{c}"]\n',
    "for {a} in {b}.{c}():\n",
    "import {a}\n",
    "# {a} {b} {c}\n",
    "const {a} = await {b}({{ {c}: true }});\n",
    "}} // {a}\n",
    "\n",
    "self.{a}.append(({b}, '{c}'))\n",
    'assert {a} == {b}, f"{{{c}}}"\n',
)
OUTPUT = (
    "src/{a}/{b}.{suffix}:{n}: {c}\n",
    "tests/test_{a}.py::test_{b} PASSED [{n:3d}%]\n",
    "{hex} {a} {b}\n",
    "\x1b[32m✓\x1b[0m {a} › {b} ({n} ms)\n",
    "drwxr-xr-x 4 user user {n} Oct 12 12:07 {a}.{b}\n",
    '  File "/home/user/work/{a}/{b}.py", line {n}, in {c}\n',
    "WARN {a}: {b} took {n}.125s\n",
)


class Text:
    """Words by frequency (Zipf), and pools of prose, code and output that are cut at random places."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.words = _vocabulary(self.random)
        self.weights = list(itertools.accumulate(1.0 / (i + 2.7) ** 1.05 for i in range(VOCABULARY)))
        self._pools = {
            "prose": self._pool(self._sentence),
            "code": self._pool(self._code),
            "output": self._pool(self._output),
        }

    def cut(self, kind: str, length: int) -> str:
        """`length` characters of prose, code or output."""
        pool = self._pools[kind]
        if length >= len(pool):
            return (pool * (length // len(pool) + 1))[:length]
        at = self.random.randrange(len(pool) - length)
        return pool[at : at + length]

    def size(self, median: float, spread: float, least: int, most: int) -> int:
        """A length with a heavy tail: log-normal, `spread` its sigma."""
        return int(min(most, max(least, self.random.lognormvariate(0, spread) * median)))

    def hex(self, digits: int) -> str:
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        h = self.hex(32)
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"

    def letters(self, length: int) -> str:
        """What a signature or an encoded image looks like."""
        alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz123456789"
        return "".join(self.random.choices(alphabet, k=length))

    def path(self, folder: str) -> str:
        a, b = self.random.choice(self.words[100:9000]), self.random.choice(self.words[100:9000])
        return f"{folder}/src/{a}/{b}.{self.random.choice(SUFFIXES)}"

    def _pool(self, piece: Callable[[], str]) -> str:
        pieces, size = [], 0
        while size < POOL_BYTES:
            pieces.append(piece())
            size += len(pieces[-1])
        return "".join(pieces)

    def _pick(self, count: int) -> list[str]:
        return self.random.choices(self.words, cum_weights=self.weights, k=count)

    def _sentence(self) -> str:
        end = self.random.choice((". ", ". ", ".\n", ".\n\n", ": ", "; `{}`. "))
        name = self.random.choice(self.words[len(COMMON) :])
        return " ".join(self._pick(self.random.randint(6, 22))).capitalize() + end.format(name)

    def _code(self) -> str:
        a, b, c = self._pick(3)
        indent = "    " * self.random.choice((0, 1, 1, 2, 2, 3))
        return indent + self.random.choice(CODE).format(a=a, b=b, c=c)

    def _output(self) -> str:
        a, b, c = self._pick(3)
        return self.random.choice(OUTPUT).format(
            a=a,
            b=b,
            c=c,
            n=self.random.randint(1, 999),
            hex=self.hex(40),
            suffix=self.random.choice(SUFFIXES),
        )


def _vocabulary(source: random.Random) -> list[str]:
    words = dict.fromkeys(COMMON)
    known = list(words)
    while len(known) < VOCABULARY:
        word = "".join(source.choice(SYLLABLES) for _ in range(source.choice((1, 2, 2, 2, 3, 3, 4))))
        kind = source.random()
        if kind < 0.12:
            word = f"{word}_{source.choice(known[:2000])}"
        elif kind < 0.2:
            word += source.choice(known[:500]).title()
        if word not in words:
            words[word] = None
            known.append(word)
    return known
