"""Harnesses are found by walking the package and answer to all their names."""

from __future__ import annotations

import pytest

from memd.errors import UsageError
from memd.harness import registry
from memd.harness.losses import CLASSES, Losses


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("claude", "claude"),
        ("claude-code", "claude"),
        ("Claude_Code", "claude"),
        ("codex", "codex"),
        (" CODEX ", "codex"),
        ("codex-cli", "codex"),
    ],
)
def test_every_word_for_a_harness_finds_it(word: str, name: str) -> None:
    assert registry.canonical(word) == name
    assert registry.resolve(word).name == name


def test_unknown_word_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match="'emacs'") as caught:
        registry.resolve("emacs")
    assert "claude" in caught.value.remedy
    assert registry.canonical("emacs") is None


def test_adapters_are_sorted_and_read_something() -> None:
    found = registry.adapters()
    assert list(found) == sorted(found)
    assert {"claude", "codex"} <= set(found)
    for adapter in found.values():
        assert adapter.parse is not None or adapter.queries
        assert adapter.title


def test_losses_are_counted_by_session_and_class() -> None:
    losses = Losses()
    losses.add("s", "image")
    losses.add("s", "image", 2)
    losses.add("t", "image")
    assert [(loss.session, loss.what, loss.count) for loss in losses.done()] == [
        ("s", "image", 3),
        ("t", "image", 1),
    ]


def test_every_class_has_a_sentence() -> None:
    assert all(sentence.endswith(".") for sentence in CLASSES.values())
