from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from memd import settings
from memd.errors import ConfigError
from memd.ledger import configured
from memd.service.configuration import Configuration


def test_an_empty_file_means_the_defaults() -> None:
    assert settings.parse(b"", "c.toml") == settings.Settings()


def test_the_shown_configuration_reads_back_to_the_same_settings() -> None:
    text = b'[memory]\nheal = false\nconfig_homes = ["~/x y", "/\\u00e9"]\n[log]\nlevel = "debug"\n'
    current = settings.parse(text, "c.toml")
    assert settings.parse(settings.render(current, "here").encode(), "c.toml") == current


def test_every_key_is_shown_with_what_it_takes_and_means() -> None:
    shown = settings.render(settings.Settings(), "here")
    tables = tomllib.loads(shown)
    for dotted, takes, default, meaning in settings.every_key():
        section, _, key = dotted.partition(".")
        assert tables[section][key] == (list(default) if isinstance(default, tuple) else default)
        assert f"# {meaning}\n# takes {takes}" in shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[memory]\nheal = true\nhael = true\n",
            ["c.toml:3:", "memory.hael", "heal, config_homes, rescan_s"],
        ),
        (
            "\n[memorry]\n",
            ["c.toml:2:", "[memorry]", "[memory], [import], [redaction], [ledger], [watch], [log]"],
        ),
        ("[memory]\n\nheal = 1\n", ["c.toml:3:", "memory.heal", "true or false"]),
        ("[memory]\nrescan_s = 0.5\n", ["c.toml:2:", "memory.rescan_s", "from 1 to 3600"]),
        ('[log]\nlevel = "loud"\n', ["c.toml:2:", "log.level", '"debug" or "info"']),
        ('[memory]\nconfig_homes = ["rel"]\n', ["c.toml:2:", "memory.config_homes", "absolute"]),
        ("[memory]\nconfig_homes = [1]\n", ["c.toml:2:", "memory.config_homes", "a list of paths"]),
        ("memory.heal = 3\n", ["c.toml:1:", "memory.heal"]),
        ("memory = 3\n", ["c.toml:1:", "memory"]),
        ("[memory\n", ["c.toml:1:", "not valid TOML"]),
        ("[memory]\nheal = true\nheal = false\n", ["c.toml:3", "not valid TOML"]),
    ],
)
def test_a_mistake_is_named_by_file_line_key_and_what_is_allowed(text: str, says: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        settings.parse(text.encode(), "c.toml")
    for part in says:
        assert part in str(caught.value)


def test_a_file_that_is_not_utf8_is_named_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"c\.toml:2: the file is not UTF-8"):
        settings.parse(b"# fine\n# \xff\n", "c.toml")


PATTERNS = (
    """\
[log]
level = "info"

[redaction]  # ours
allowlist = ["[", "]"]
extra_patterns = [ "a[,]#\\"'b", 'c\\', # not "this" one

  """
    + "'''d\n'''"
    + """, \"\"\"e
f\\\"\"\"\", "",
  "last" ]
[watch]
"""
)


def test_every_entry_of_a_list_is_found_on_its_line() -> None:
    read = settings.parse(PATTERNS.encode(), "c.toml").redaction.extra_patterns
    assert read == ("a[,]#\"'b", "c\\", "d\n", 'e\nf"', "", "last")
    lines = [settings.line_of_entry(PATTERNS, "redaction", "extra_patterns", n) for n in range(len(read))]
    assert lines == [6, 6, 8, 9, 10, 11]
    assert settings.line_of_entry(PATTERNS, "redaction", "allowlist", 1) == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[redaction]\nextra_patterns = [\n  "fine",\n  "(unclosed",\n]\n',
            "c.toml:4: redaction.extra_patterns[1] '(unclosed': missing ), unterminated subpattern",
        ),
        ('[redaction]\nextra_patterns = [""]\n', "c.toml:2: redaction.extra_patterns[0] is empty or longer"),
        ('[redaction]\nallowlist = ["a",\n""]\n', "c.toml:3: redaction.allowlist[1] is empty"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_named_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured.parse(text.encode(), "c.toml")
    assert str(caught.value).startswith(says)


def test_a_configuration_with_such_a_pattern_keeps_what_held_before(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[log]\nlevel = "debug"\n')
    found = Configuration(bytes(path))
    path.write_text('[redaction]\nextra_patterns = ["("]\n')
    assert not found.read()
    assert found.error.startswith(f"{path}:2: redaction.extra_patterns[0] '('")
    assert found.current.log.level == "debug"
