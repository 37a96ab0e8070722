from __future__ import annotations

from typing import Any, get_args

import pytest

from llmd.chat.templates.template_messages import prepare_messages
from llmd.chat.tools.call_ids import CallIds, taken_ids, with_call_ids


def calls(*ids: str | None, name: str = "now") -> dict[str, Any]:
    """Return an assistant message with calls; None: a call without an id."""
    named = [({} if one is None else {"id": one}) | {"function": {"name": name}} for one in ids]
    return {"role": "assistant", "tool_calls": named}


def answer(call_id: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": "12:00"} | ({} if call_id is None else {"tool_call_id": call_id})


def ids_of(*messages: dict[str, Any], form: CallIds = "short") -> list[str]:
    found = []
    for message in with_call_ids(prepare_messages(messages), form):
        found += [call["id"] for call in message.get("tool_calls", ())]
        found += [message["tool_call_id"]] if message["role"] == "tool" else []
    assert form != "short" or all(len(one) == 9 and one.isalnum() and one.isascii() for one in found)
    return found


@pytest.mark.parametrize(
    ("template", "form"),
    [
        ("{% if tool_call.id|length != 9 %}", "short"),
        ("{{ id | length  !=9 }}", "short"),
        ("{{ call.id }}<|tool_call_argument_begin|>", "numbered"),
        ("{{ call.id }}", "any"),
    ],
)
def test_ids_that_are_taken_are_told_by_the_template(template: str, form: CallIds) -> None:
    assert taken_ids(template) == form


def test_answers_keep_their_calls() -> None:
    first, second, *answers = ids_of(calls("call_1", "call_2"), answer("call_2"), answer("call_1"))
    assert first != second
    assert answers == [second, first]


def test_good_ids_stay_as_they_are() -> None:
    assert ids_of(calls("VvvODy9mT"), answer("VvvODy9mT")) == ["VvvODy9mT"] * 2


def test_missing_ids_are_made_and_answers_follow_in_order() -> None:
    first, second, *answers = ids_of(calls(None, None), answer(), answer())
    assert first != second
    assert answers == [first, second]
    assert len(ids_of(answer())) == 1


def test_other_messages_are_left_alone() -> None:
    messages = prepare_messages([{"role": "user", "content": "x"}])
    for form in get_args(CallIds):
        assert with_call_ids(messages, form) == messages


def test_calls_are_numbered_through_the_conversation() -> None:
    history = [
        calls("call_1", "call_2"),
        answer("call_2"),
        answer("call_1"),
        calls("call_1", name="find"),
        answer("call_1"),
    ]
    first, second, again = "functions.now:0", "functions.now:1", "functions.find:2"
    assert ids_of(*history, form="numbered") == [first, second, second, first, again, again]
    assert ids_of(calls(None), answer(), answer(), form="numbered") == [first, first, "functions.unknown:1"]
