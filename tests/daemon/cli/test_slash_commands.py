"""What is typed after a slash changes the chat, and is never asked."""

from __future__ import annotations

import pytest

from llmd.cli.slash_commands import ALIASES, COMMANDS, obey
from tests.daemon.cli.counting_model import CountingModel, Talk


@pytest.fixture
def model() -> CountingModel:
    return CountingModel()


@pytest.fixture
def talk(model: CountingModel) -> Talk:
    return Talk(model, "be brief", seed=1)


@pytest.mark.parametrize("line", ["/exit", "/quit", "/exit now"])
def test_leaves(talk: Talk, line: str) -> None:
    assert not talk.session.is_over
    obey(talk.session, line)
    assert talk.session.is_over


@pytest.mark.parametrize("line", ["/reset"])
def test_reset_forgets_what_was_said_but_not_the_instructions(talk: Talk, line: str) -> None:
    talk.session.answer("one")
    obey(talk.session, line)
    assert talk.said == ["the conversation is forgotten"]
    conversation = talk.session.conversation
    assert (conversation.turns, conversation.system, conversation.settings) == ([], "be brief", {"seed": 1})


def test_system_sets_and_shows_the_instructions(talk: Talk, model: CountingModel) -> None:
    obey(talk.session, "/system")
    obey(talk.session, "/system speak like a pirate")
    talk.session.answer("one")
    assert talk.said == ["be brief", "speak like a pirate"]
    assert model.asked == [["speak like a pirate", "one"]]
    silent = Talk(model)
    obey(silent.session, "/system")
    assert silent.said == ["there is no system prompt"]


def test_think_tells_the_template(talk: Talk) -> None:
    for state in ("on", "off"):
        obey(talk.session, f"/think {state}")
        assert talk.session.conversation.thinking == (state == "on")
        assert talk.said[-1] == f"thinking is {state}"
    obey(talk.session, "/think perhaps")
    assert talk.said[-1] == "write /think on or /think off"


def test_set_changes_how_answers_are_made(talk: Talk, model: CountingModel) -> None:
    obey(talk.session, "/set temp 0.5")
    talk.session.answer("one")
    assert model.fields == {"seed": 1, "temperature": 0.5}
    assert talk.said == ["seed 1\ntemperature 0.5"]


def test_set_shows_settings_and_refuses_what_is_none(model: CountingModel) -> None:
    talk = Talk(model)
    obey(talk.session, "/set")
    obey(talk.session, "/set heat 1")
    obey(talk.session, "/set temp hot")
    assert talk.said[0].startswith("every setting is as")
    assert "no setting heat" in talk.said[1]
    assert "must be a number" in talk.said[2]


def test_help_lists_every_command_in_eighty_columns(talk: Talk) -> None:
    obey(talk.session, "/help")
    for name in (*COMMANDS, *ALIASES):
        assert f"/{name}" in talk.said[0]
    assert '"""' in talk.said[0]
    assert max(map(len, talk.said[0].splitlines())) <= 80


def test_an_unknown_command_is_not_asked(talk: Talk, model: CountingModel) -> None:
    obey(talk.session, "/dance")
    assert model.asked == []
    assert talk.said == ["there is no command /dance; /help lists them"]
