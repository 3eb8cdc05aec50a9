"""What cannot be read: told once, those that need a person first, gone when it is over."""

from __future__ import annotations

from memd.ledger.troubles import MAX_TOLD, Troubles


def test_those_that_need_a_person_come_first_and_all_of_them_are_counted() -> None:
    troubles = Troubles()
    for number in range(MAX_TOLD):
        troubles.note(b"/passing/%d" % number, "locked", "")
    for number in range(MAX_TOLD + 5):
        troubles.note(b"/lasting/%d" % number, "damaged", "Mend it.")
    assert all(one.remedy for one in troubles.told())
    assert len(troubles.told()) == MAX_TOLD
    assert troubles.needing() == MAX_TOLD + 5


def test_news_is_what_was_not_told_before() -> None:
    troubles = Troubles()
    troubles.note(b"/a", "damaged", "Mend it.")
    assert troubles.is_news
    troubles.is_news = False
    troubles.note(b"/a", "damaged", "Mend it.")
    assert not troubles.is_news
    troubles.settle(b"/a")
    assert troubles.is_news
    assert troubles.told() == ()


def test_a_look_at_everything_forgets_places_and_what_is_gone() -> None:
    troubles = Troubles()
    troubles.note(b"/there", "damaged", "Mend it.")
    troubles.note(b"/gone", "damaged", "Mend it.")
    troubles.note_place(b"/folder", "closed", "Open it.")
    troubles.begin_look(lambda path: path == b"/there")
    assert [one.path for one in troubles.told()] == [b"/there"]
    troubles.forget()
    assert troubles.told() == ()
