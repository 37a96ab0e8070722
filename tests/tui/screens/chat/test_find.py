from __future__ import annotations

from llmd_tui.screens.chat.find import Finder
from llmd_tui.screens.chat.store.records import Attachment, Content, Message

PATH = (
    Message(1, None, "user", Content("the Zebra", attachments=(Attachment("a", "striped"),))),
    Message(2, 1, "assistant", Content("a horse", reasoning="zebra, striped")),
    Message(3, 2, "user", Content("zebra?")),
)


def test_the_newest_message_comes_first_and_the_search_goes_round() -> None:
    finder = Finder(PATH, "zebra")
    assert [finder.step() for _ in range(4)] == [3, 2, 1, 3]
    assert finder.step(1) == 1
    assert finder.words == "1 of 3"


def test_all_words_are_wanted_in_text_reasoning_or_attachments() -> None:
    assert Finder(PATH, "zebra striped").found == [1, 2]
    nothing = Finder(PATH, "lion")
    assert (nothing.step(), nothing.words) == (None, "nothing found")
    assert Finder(PATH, " ").found == []


def test_a_search_belongs_to_its_words_and_its_branch() -> None:
    finder = Finder(PATH, "zebra")
    assert finder.is_of(PATH, "zebra")
    assert not finder.is_of(PATH, "lion")
    assert not finder.is_of(PATH[:2], "zebra")
