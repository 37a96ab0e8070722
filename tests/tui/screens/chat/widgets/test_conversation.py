"""The branch is shown, and its end is followed only while it is in view."""

from __future__ import annotations

from textual.containers import VerticalScroll

from llmd_tui.screens.chat.store.records import Content, Message
from llmd_tui.screens.chat.tree import Tree
from llmd_tui.screens.chat.widgets.conversation import SHOWN, Conversation
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.screens.chat.widgets.message_view import MessageView
from tests.tui.pilots import until
from tests.tui.screens.chat.widgets.shown_widget import alone


def long_tree(count: int) -> Tree:
    return Tree(Message(n, n - 1 or None, "user", Content(f"message {n}")) for n in range(1, count + 1))


def ids(conversation: Conversation) -> list[int]:
    return [view.message.message_id for view in conversation.views]


def marked(conversation: Conversation) -> bool:
    return conversation.query_one("#new").display


async def test_nothing_is_below_what_is_in_view_as_a_whole() -> None:
    conversation = Conversation()
    async with alone(conversation, (60, 40)) as (pilot, _):
        await conversation.show(long_tree(2), None)
        conversation.go_to_end()
        await pilot.pause()
        conversation.views[-1].post_message(MessageView.Grown())
        await pilot.pause()
        await pilot.pause()
        assert not marked(conversation)


async def test_growth_is_no_longer_marked_once_all_fits() -> None:
    conversation = Conversation()
    async with alone(conversation, (60, 12)) as (pilot, _):
        await conversation.show(long_tree(20), None)
        conversation.go_to_end()
        await pilot.pause()
        scroll = conversation.query_one(VerticalScroll)
        scroll.scroll_to(y=0, animate=False, force=True, immediate=True)
        scroll.release_anchor()
        conversation.views[-1].post_message(MessageView.Grown())
        await until(pilot, lambda: marked(conversation))
        await pilot.resize_terminal(60, 200)
        await until(pilot, lambda: not marked(conversation))


async def test_the_end_is_followed_until_the_person_scrolls_up() -> None:
    conversation = Conversation()
    async with alone(conversation, (60, 12)) as (pilot, _):
        await conversation.show(long_tree(20), None)
        conversation.go_to_end()
        await pilot.pause()
        scroll = conversation.query_one(VerticalScroll)
        assert scroll.is_vertical_scroll_end
        conversation.views[-1].post_message(MessageView.Grown())
        await pilot.pause()
        await pilot.pause()
        assert not marked(conversation)
        scroll.scroll_to(y=0, animate=False, force=True, immediate=True)
        scroll.release_anchor()
        await pilot.pause()
        await conversation.show(long_tree(22), None)
        conversation.views[-1].post_message(MessageView.Grown())
        await until(pilot, lambda: marked(conversation))
        assert scroll.scroll_y == 0
        await pilot.click("#new")
        await until(pilot, lambda: scroll.is_vertical_scroll_end and not marked(conversation))


async def test_long_branches_begin_with_their_last_messages_and_show_more_on_request() -> None:
    conversation = Conversation()
    async with alone(conversation) as (pilot, _):
        tree = long_tree(SHOWN + 5)
        await conversation.show(tree, None)
        assert ids(conversation) == list(range(6, SHOWN + 6))
        assert str(conversation.query_one("#earlier", Line).content) == "↑ 5 earlier messages"
        await conversation.step(6, -1)
        await until(pilot, lambda: conversation.views[4].has_focus)
        assert ids(conversation) == list(range(1, SHOWN + 6))


async def test_a_message_that_is_not_shown_yet_is_revealed() -> None:
    conversation = Conversation()
    async with alone(conversation) as (pilot, _):
        await conversation.show(long_tree(SHOWN + 5), None)
        await conversation.reveal(2, found=True)
        await until(pilot, lambda: conversation.views[1].has_class("found"))
        await conversation.reveal(3)
        await until(pilot, lambda: conversation.views[2].has_focus)
        assert not conversation.views[1].has_class("found")


async def test_messages_that_stay_are_not_built_again() -> None:
    conversation = Conversation()
    async with alone(conversation):
        tree = long_tree(3)
        await conversation.show(tree, None)
        before = conversation.views
        tree.add(Message(4, 2, "user", Content("another")))
        await conversation.show(tree, first_sent=2)
        assert ids(conversation) == [1, 2, 4]
        assert conversation.views[:2] == before[:2]
        assert conversation.views[2].place == (2, 2)
        assert [view.has_class("dropped") for view in conversation.views] == [True, False, False]


async def test_the_cursor_leaves_at_the_end() -> None:
    conversation = Conversation()
    async with alone(conversation) as (pilot, app):
        await conversation.show(long_tree(2), None)
        await conversation.step(2, 1)
        await conversation.step(1, -1)
        await until(pilot, lambda: conversation.views[0].has_focus)
        await until(pilot, lambda: sum(isinstance(one, Conversation.Left) for one in app.posted) == 1)
        conversation.focus_last()
        await until(pilot, lambda: conversation.views[1].has_focus)


async def test_an_empty_chat_says_how_to_begin() -> None:
    conversation = Conversation()
    async with alone(conversation):
        await conversation.show(Tree(), None)
        assert conversation.query_one("#empty").display
        await conversation.show(long_tree(1), None)
        assert not conversation.query_one("#empty").display
