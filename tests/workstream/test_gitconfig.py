"""git's configuration syntax, against what the real git reads from the same file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd import gitconfig
from support_git import answer, git

FILES = {
    "plain": b'[remote "origin"]\n\turl = https://example.com/a.git\n',
    "no blanks": b'[remote "origin"]url=https://example.com/a.git',
    "case": b'[REMOTE "origin"]\n\tURL = a\n[remote "Origin"]\n\turl = b\n',
    "dotted": b"[remote.ORIGIN]\n\turl = a\n",
    "comments": b'# x\n; y\n[remote "origin"] # z\n\turl = a # b\n\turl = c ; d\n',
    "quotes": b'[remote "origin"]\n\turl = " a # b "\n\turl = "x"y"z"  \n',
    "escapes": b'[remote "origin"]\n\turl = a\\tb\\\\c\\"d\n',
    "continued": b'[remote "origin"]\n\turl = a\\\nb\n\turl = "c\\\nd"\n',
    "no value": b'[remote "origin"]\n\tprune\n\turl = a\n',
    "crlf": b'[remote "origin"]\r\n\turl = a\r\n',
    "mark": b'\xef\xbb\xbf[remote "origin"]\n\turl = a\n',
    "odd subsection": b'[remote "a]\\"b"]\n\turl = x\n[remote "origin"]\n\turl = a\n',
    "other sections": b'[branch "main"]\n\tremote = origin\n\tmerge = x\n[remote "origin"]\n\turl = a\n',
    "comment with a backslash": b'[remote "origin"]\n# c \\\n\turl = a\n',
    "bytes": b'[remote "origin"]\n\turl = /w/\xff\xfe\n',
}


@pytest.mark.parametrize("name", FILES)
def test_addresses_are_those_that_git_reads(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(FILES[name])
    said = git(tmp_path, "config", "-z", "-f", str(path), "--get-all", "remote.origin.url")
    expected = tuple(url for url in said.split(b"\0") if url)
    assert gitconfig.remotes(gitconfig.parse(FILES[name])) == expected
    assert expected


@pytest.mark.parametrize(
    "text", [b"[a", b"= 1\n", b"[a]\n1x = 2\n", b'[a]\nx = "b\n', b"[a]\nx = b\\q\n", b'[a "b\nc"]\n']
)
def test_what_git_refuses_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(text)
    assert answer(tmp_path, "config", "-f", str(path), "--list") == b""
    with pytest.raises(ValueError, match="git"):
        gitconfig.parse(text)


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        (b"[core]\n\tbare = false\n", True),
        (b"[include]\n\tpath = x\n", False),
        (b'[includeIf "gitdir:/w/"]\n\tpath = x\n', False),
        (b"[extensions]\n\tworktreeConfig = true\n", False),
        (b"[extensions]\n\tworktreeConfig\n", False),
        (b"[extensions]\n\tworktreeConfig = false\n", True),
    ],
)
def test_a_file_that_does_not_say_all_is_known(text: bytes, is_whole: bool) -> None:
    assert gitconfig.is_whole(gitconfig.parse(text)) is is_whole


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        entries = gitconfig.parse(text)
    except ValueError:
        return
    assert all(isinstance(entry.value, bytes) for entry in entries)
