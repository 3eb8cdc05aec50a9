"""The log file, and standard error beside it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.service import logs
from memd.settings import Log

LINE = '{"event": "one"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memd.log"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for fd in (read, write):
        try:
            os.close(fd)
        except OSError:
            continue


def test_a_standard_error_that_nobody_reads_stops_nothing(path: Path, pipe: tuple[int, int]) -> None:
    with os.fdopen(os.dup(pipe[1]), "w") as echo:
        log = logs.LogFile(bytes(path), Log(), echo)
        for _ in range(10_000):
            log.write(LINE)
    assert path.read_text() == LINE * 10_000
    assert os.read(pipe[0], len(LINE)) == LINE.encode()


def test_a_standard_error_that_is_gone_stops_nothing(path: Path, pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    with os.fdopen(os.dup(pipe[1]), "w") as echo:
        log = logs.LogFile(bytes(path), Log(), echo)
        log.write(LINE)
        log.write(LINE)
    assert path.read_text() == LINE * 2


def test_a_disk_that_takes_a_part_gets_the_rest_and_one_that_is_full_costs_that_line_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logs.LogFile(bytes(path), Log())
    real, left = os.write, [5, 5, 0]

    def write(fd: int, data: bytes) -> int:
        if not left:
            return real(fd, data)
        count = left.pop(0)
        if count == 0:
            raise OSError(errno.ENOSPC, "full")
        return real(fd, data[:count])

    monkeypatch.setattr(logs.os, "write", write)
    log.write(LINE)  # ten bytes of it
    log.write(LINE)
    left[:] = [3, 4]
    log.write(LINE)
    cut, *whole = path.read_text().splitlines()
    assert cut == LINE[:10]
    assert [json.loads(line)["event"] for line in whole] == ["one", "one"]


def test_a_line_that_the_last_daemon_did_not_end_costs_no_other(path: Path) -> None:
    path.write_text(LINE + LINE[:10])
    for _ in range(2):
        log = logs.LogFile(bytes(path), Log())
        log.write(LINE)
        log.close()
    assert path.read_text() == LINE + LINE[:10] + "\n" + LINE * 2
