"""A chat remembers what was said, and obeys commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from llmd.api.errors import ContextLengthError
from llmd.cli.conversation import Conversation, Message
from llmd.cli.streaming import Printed


class Model:
    """Answers with the number of the question, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[Message]] = []
        self.fields: dict[str, Any] = {}
        self.said: list[str] = []
        self.full = False

    def ask(self, messages: list[Message], fields: Mapping[str, Any]) -> Printed:
        if self.full:
            raise ContextLengthError(99, 50)
        self.asked.append(messages)
        self.fields = dict(fields)
        return Printed(f"answer {len(self.asked)}", "stop", 1, 1, 0.0, 0.0)

    def conversation(self, system: str | None = None, **fields: Any) -> Conversation:
        return Conversation(self.ask, self.said.append, system, fields)


@pytest.fixture
def model() -> Model:
    return Model()


def roles(messages: list[Message]) -> list[str]:
    return [message["role"] for message in messages]


def test_each_question_comes_with_what_was_said_before(model: Model) -> None:
    talk = model.conversation(system="be brief")
    assert talk.take("one")
    assert talk.take("two")
    assert roles(model.asked[1]) == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in model.asked[1]] == ["be brief", "one", "answer 1", "two"]


def test_empty_lines_are_not_asked(model: Model) -> None:
    assert model.conversation().take("   ")
    assert model.asked == []


@pytest.mark.parametrize("line", ["/exit", "/quit", "/exit now"])
def test_leaves(model: Model, line: str) -> None:
    assert not model.conversation().take(line)


def test_reset_forgets_what_was_said_but_not_the_instructions(model: Model) -> None:
    talk = model.conversation(system="be brief")
    talk.take("one")
    talk.take("/reset")
    talk.take("two")
    assert roles(model.asked[1]) == ["system", "user"]


def test_system_sets_and_shows_the_instructions(model: Model) -> None:
    talk = model.conversation()
    talk.take("/system")
    talk.take("/system speak like a pirate")
    talk.take("one")
    assert model.said == ["no instructions", "speak like a pirate"]
    assert model.asked[0][0] == {"role": "system", "content": "speak like a pirate"}


def test_think_tells_the_template(model: Model) -> None:
    talk = model.conversation()
    talk.take("/think on")
    talk.take("one")
    assert model.fields == {"chat_template_kwargs": {"enable_thinking": True}}
    talk.take("/think off")
    talk.take("two")
    assert model.fields == {"chat_template_kwargs": {"enable_thinking": False}}
    talk.take("/think perhaps")
    assert model.said[-1] == "write /think on or /think off"


def test_set_changes_how_answers_are_made(model: Model) -> None:
    talk = model.conversation(seed=1)
    talk.take("/set temp 0.5")
    talk.take("one")
    assert model.fields == {"seed": 1, "temperature": 0.5}
    assert model.said[-1] == "seed 1\ntemperature 0.5"


def test_set_shows_settings_and_refuses_what_is_none(model: Model) -> None:
    talk = model.conversation()
    talk.take("/set")
    talk.take("/set heat 1")
    talk.take("/set temp hot")
    assert model.said[0].startswith("everything is as")
    assert "no setting heat" in model.said[1]
    assert "must be a number" in model.said[2]


def test_help_lists_every_command(model: Model) -> None:
    model.conversation().take("/help")
    for name in ("/exit", "/quit", "/reset", "/system", "/think", "/set", "/help", '"""'):
        assert name in model.said[0]


def test_an_unknown_command_is_not_asked(model: Model) -> None:
    assert model.conversation().take("/dance")
    assert model.asked == []
    assert "/dance" in model.said[0]


def test_a_question_that_cannot_be_answered_is_forgotten(model: Model) -> None:
    talk = model.conversation()
    model.full = True
    assert talk.take("too long")
    assert "99 tokens" in model.said[0]
    model.full = False
    talk.take("short")
    assert roles(model.asked[0]) == ["user"]
