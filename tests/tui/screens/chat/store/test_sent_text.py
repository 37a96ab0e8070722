from __future__ import annotations

import pytest

from llmd_tui.screens.chat.store.records import Attachment, Content
from llmd_tui.screens.chat.store.sent_text import fenced, sent_text


def test_attachments_stand_before_the_text() -> None:
    content = Content("what is it?", attachments=(Attachment("a.txt", "one\n"), Attachment("b.py", "two")))
    assert sent_text(content) == "a.txt:\n```\none\n```\n\nb.py:\n```\ntwo\n```\n\nwhat is it?"
    assert sent_text(Content(attachments=(Attachment("a.txt", "one"),))) == "a.txt:\n```\none\n```"
    assert sent_text(Content("alone")) == "alone"


@pytest.mark.parametrize(
    ("text", "fence"), [("plain", "```"), ("```py\nx\n```", "````"), ("`````", "``````")]
)
def test_a_fence_is_longer_than_those_in_the_text(text: str, fence: str) -> None:
    assert fenced("x", text).splitlines()[1] == fence
