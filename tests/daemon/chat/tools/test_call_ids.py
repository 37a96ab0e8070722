from __future__ import annotations

from typing import Any

import pytest

from llmd.chat.templates.template_messages import prepare_messages
from llmd.chat.tools.call_ids import demands_short_ids, with_short_ids


def calls(*ids: str | None) -> dict[str, Any]:
    """Return an assistant message with calls; None: a call without an id."""
    named = [({} if one is None else {"id": one}) | {"function": {"name": "now"}} for one in ids]
    return {"role": "assistant", "tool_calls": named}


def answer(call_id: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": "12:00"} | ({} if call_id is None else {"tool_call_id": call_id})


def ids_of(*messages: dict[str, Any]) -> list[str]:
    found = []
    for message in with_short_ids(prepare_messages(messages)):
        found += [call["id"] for call in message.get("tool_calls", ())]
        found += [message["tool_call_id"]] if message["role"] == "tool" else []
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in found)
    return found


@pytest.mark.parametrize(
    ("template", "demands"),
    [("{% if tool_call.id|length != 9 %}", True), ("{{ id | length  !=9 }}", True), ("{{ call.id }}", False)],
)
def test_demand_is_told_by_the_template(template: str, demands: bool) -> None:  # noqa: FBT001
    assert demands_short_ids(template) is demands


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
    assert with_short_ids(messages) == messages
