"""Whatever is sent to the socket is answered once or ended, and the daemon serves the next one."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator

import psutil
import pytest

import support_points
from memctl import hook
from support_daemon import Home

pytestmark = pytest.mark.faults

WRONG = 10_000
LARGE = 50


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    top = tmp_path_factory.mktemp("garbage")
    made = Home(top / "home", runtime=top / "run")
    made.start()
    yield made
    made.end_all()


def answered(path: bytes, data: bytes) -> bytes:
    """What comes back until the other side ends it."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10.0)
        sock.connect(path)
        got = b""
        with contextlib.suppress(OSError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while chunk := sock.recv(65536):
                got += chunk
        return got


def is_one_reply_or_none(got: bytes) -> bool:
    if not got:
        return True
    head, _, body = got.partition(b"\n")
    word, kind, length = head.split(b" ")
    return (word, kind) == (b"memd1", b"j") and len(body) == int(length) and b'"re":"failure"' in body


def test_wrong_words_ten_thousand_times(home: Home) -> None:
    path = home.socket()
    chance = random.Random(5)
    ops = (b"ping", b"status", b"stop ", b"heal", b"", b"\xff\xfe", b"search", b"x" * 200)
    values = (b"1", b'"a"', b"null", b"[]", b"{}", b"1e999", b'"\\ud800"', b"true")
    for _ in range(WRONG):
        body = b'{"op":"%b","%b":%b' % (chance.choice(ops), chance.choice(ops), chance.choice(values))
        got = answered(path, hook.frame(b"j", body + chance.choice((b"", b"}", b"}}", b",}"))))
        assert is_one_reply_or_none(got) or b'"re"' in got
    support_points.tried(WRONG)
    assert home.answers()


def test_a_mebibyte_without_a_line_fifty_times(home: Home) -> None:
    path = home.socket()
    for number in range(LARGE):
        assert is_one_reply_or_none(answered(path, os.urandom(64).replace(b"\n", b"") * (16384 + number)))
    support_points.tried(LARGE)
    assert home.answers()


@pytest.mark.parametrize("depth", [100, 10_000, 300_000])
def test_deep_documents(home: Home, depth: int) -> None:
    for opened in (b"[", b'{"op":'):
        body = opened * depth
        assert is_one_reply_or_none(answered(home.socket(), hook.frame(b"j", body[: 1 << 20])))
    assert home.answers()


def test_garbage_leaves_no_memory_and_no_descriptors_behind(home: Home) -> None:
    path = home.socket()
    pid = home.json("status")["pid"]
    files = psutil.Process(pid).num_fds()
    for number in range(500):
        answered(path, random.Random(number).randbytes(number * 7))
    assert psutil.Process(pid).num_fds() <= files + 2
    assert psutil.Process(pid).memory_info().rss < 150 << 20
