from __future__ import annotations

from llmd_tui.screens.chat.store.records import Attachment, Content
from llmd_tui.screens.chat.widgets.composer import Composer
from llmd_tui.screens.chat.widgets.line import Line
from tests.tui.screens.chat.widgets.shown_widget import alone


def line(composer: Composer, name: str) -> str:
    found = composer.query_one(f"#{name}", Line)
    return str(found.content) if found.display else ""


async def test_commands_are_completed_and_explained() -> None:
    composer = Composer()
    async with alone(composer) as (pilot, _):
        composer.models = ["guide", "other"]
        composer.prompt.focus()
        await pilot.press(*"/mo", "tab")
        assert composer.prompt.text == "/model "
        assert line(composer, "hints") == "Tab: guide  other"
        await pilot.press("g", "tab")
        assert composer.prompt.text == "/model guide "
        assert line(composer, "hints") == "[NAME]  choose the model"
        composer.prompt.write("/")
        await pilot.pause()
        assert line(composer, "hints").endswith(" more")
        composer.prompt.write("hello")
        await pilot.pause()
        assert line(composer, "hints") == ""


async def test_the_draft_is_a_message_with_its_attachments() -> None:
    composer = Composer()
    async with alone(composer) as (pilot, app):
        assert composer.draft() is None
        composer.attach(Attachment("a.txt", "text"))
        assert composer.draft() == Content(attachments=(Attachment("a.txt", "text"),))
        assert line(composer, "chips").startswith("+ a.txt, 4 B")
        composer.prompt.write("/help")
        assert composer.draft() is None
        composer.prompt.write("why?")
        assert composer.draft() == Content("why?", attachments=(Attachment("a.txt", "text"),))
        await pilot.pause()
        assert any(isinstance(message, Composer.Changed) for message in app.posted)
        composer.clear()
        assert (composer.draft(), line(composer, "chips")) == (None, "")


async def test_an_attachment_is_removed_with_backspace_in_an_empty_prompt() -> None:
    composer = Composer()
    async with alone(composer) as (pilot, _):
        composer.prompt.focus()
        composer.attach(Attachment("a.txt", "one"), Attachment("b.txt", "two"))
        await pilot.press("x", "backspace")
        assert len(composer.attachments) == 2
        await pilot.press("backspace")
        await pilot.pause()
        assert [one.name for one in composer.attachments] == ["a.txt"]


async def test_an_edited_message_comes_with_its_attachments_and_a_note() -> None:
    composer = Composer()
    async with alone(composer):
        composer.edit(Content("why?", attachments=(Attachment("a.txt", "text"),)))
        assert composer.draft() == Content("why?", attachments=(Attachment("a.txt", "text"),))
        assert line(composer, "note").startswith("Editing a message")
        composer.clear_attachments()
        assert (line(composer, "note"), composer.prompt.text) == ("", "why?")
