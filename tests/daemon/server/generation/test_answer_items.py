from __future__ import annotations

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.server.generation.answer_items import (
    AnswerItems,
    Item,
    ItemClosed,
    ItemEvent,
    ItemGrew,
    ItemKind,
    ItemOpened,
)


def run(*parts: AnswerPart) -> list[ItemEvent]:
    items = AnswerItems()
    return [*items.feed(parts), *items.finish()]


def test_parts_of_one_kind_are_one_item() -> None:
    empty = Item(0, ItemKind.TEXT)
    assert run(Text("a"), Text("b")) == [
        ItemOpened(empty),
        ItemGrew(empty, "a"),
        ItemGrew(empty, "b"),
        ItemClosed(Item(0, ItemKind.TEXT, "ab")),
    ]


def test_one_item_is_open_at_a_time_and_they_are_numbered() -> None:
    events = run(Reasoning("hm"), Text("a"), CallStart(0, "f"), CallArguments(0, "{}"), Text("b"))
    kinds = [ItemKind.REASONING, ItemKind.TEXT, ItemKind.CALL, ItemKind.TEXT]
    assert [event.item.kind for event in events if isinstance(event, ItemClosed)] == kinds
    assert [event.item.index for event in events if not isinstance(event, ItemGrew)] == [
        0, 0, 1, 1, 2, 2, 3, 3,
    ]  # fmt: skip


def test_each_call_is_an_item_of_its_own() -> None:
    items = AnswerItems()
    parts: list[AnswerPart] = [
        CallStart(0, "f"),
        CallArguments(0, '{"a":'),
        CallArguments(0, "1}"),
        CallStart(1, "f"),
    ]
    events = [*items.feed(parts), *items.finish()]
    first, second = Item(0, ItemKind.CALL, '{"a":1}', "f"), Item(1, ItemKind.CALL, "{}", "f")
    assert [event.item for event in events if isinstance(event, ItemClosed)] == [first, second]
    assert items.items == [first, second]


def test_a_call_without_arguments_gets_an_empty_object() -> None:
    begun = Item(0, ItemKind.CALL, name="f")
    assert run(CallStart(0, "f")) == [
        ItemOpened(begun),
        ItemGrew(begun, "{}"),
        ItemClosed(Item(0, ItemKind.CALL, "{}", "f")),
    ]


def test_an_answer_of_nothing_has_no_items() -> None:
    assert run() == []
