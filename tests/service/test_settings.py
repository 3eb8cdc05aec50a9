from __future__ import annotations

import tomllib

import pytest

from memd import settings
from memd.errors import ConfigError


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
        ("\n[memorry]\n", ["c.toml:2:", "[memorry]", "[memory], [import], [redaction], [watch], [log]"]),
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
