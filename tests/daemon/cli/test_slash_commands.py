"""Slash commands change the chat and are never sent to the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.cli.conversation import Conversation, Turn
from llmd.cli.slash_commands import ALIASES, COMMANDS, completions, obey
from tests.daemon.cli.counting_model import CountingModel, Talk


@pytest.fixture
def model() -> CountingModel:
    return CountingModel()


@pytest.fixture
def talk(model: CountingModel, tmp_path: Path) -> Talk:
    return Talk(model, "be brief", folder=tmp_path, seed=1)


@pytest.mark.parametrize("line", ["/exit", "/quit", "/bye", "/exit now"])
def test_leaves(talk: Talk, line: str) -> None:
    assert not talk.session.is_over
    obey(talk.session, line)
    assert talk.session.is_over


@pytest.mark.parametrize("line", ["/reset", "/clear"])
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


def test_think_tells_the_template(talk: Talk, model: CountingModel) -> None:
    model.description["capabilities"] = ["completion", "thinking"]
    for state in ("on", "off"):
        obey(talk.session, f"/think {state}")
        assert talk.session.conversation.thinking == (state == "on")
        assert talk.said[-1] == f"thinking is {state}"
    obey(talk.session, "/think perhaps")
    assert talk.said[-1] == "write /think on or /think off"


@pytest.mark.parametrize("state", ["on", "off", ""])
def test_a_model_that_does_not_think_has_nothing_to_switch(talk: Talk, state: str) -> None:
    obey(talk.session, f"/think {state}")
    assert talk.said == ["guide cannot think before it answers, so /think has no effect"]
    assert talk.session.conversation.thinking is None


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
    assert talk.said[0].startswith("every setting has")
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


def test_show_says_what_is_known_of_model_and_settings(talk: Talk) -> None:
    obey(talk.session, "/show")
    shown = dict(line.split(maxsplit=1) for line in talk.said[0].splitlines())
    assert (shown["model"], shown["seed"], shown["turns"]) == ("guide", "1", "0")


def test_save_keeps_a_conversation_and_load_replaces_the_current_one_by_it(talk: Talk) -> None:
    talk.session.answer("one")
    obey(talk.session, "/save talk")
    obey(talk.session, "/set seed 2")
    obey(talk.session, "/system speak like a pirate")
    talk.session.answer("two")
    obey(talk.session, "/load talk")
    conversation = talk.session.conversation
    assert conversation.turns == [Turn("one", "answer 1")]
    assert (conversation.system, conversation.settings) == ("be brief", {"seed": 1})
    assert talk.said[0] == "saved 1 turn as talk; /load talk restores it"
    assert talk.said[-1] == "loaded 1 turn"


def test_save_says_that_it_replaces_another_one(talk: Talk) -> None:
    obey(talk.session, "/save talk")
    obey(talk.session, "/save talk")
    assert talk.said[-1] == "saved 0 turns as talk; it replaces an older one"


def test_another_model_goes_on_with_a_saved_conversation_and_says_so(
    talk: Talk, model: CountingModel
) -> None:
    talk.session.conversation.model = "thinker"
    talk.session.conversation.thinking = True
    obey(talk.session, "/save talk")
    talk.session.conversation.model = "guide"
    obey(talk.session, "/load talk")
    assert talk.said[-1] == "loaded 0 turns; they were saved with thinker, and guide continues"
    assert talk.session.conversation == Conversation("guide", "be brief", {"seed": 1})
    model.description["capabilities"] = ["thinking"]
    obey(talk.session, "/load talk")
    assert talk.session.conversation.thinking


def test_without_a_name_load_lists_and_save_asks_for_one(talk: Talk) -> None:
    obey(talk.session, "/load")
    assert talk.said[-1] == "no conversation has been saved; /save NAME saves this one"
    obey(talk.session, "/save")
    assert talk.said[-1] == "write /save NAME"
    obey(talk.session, "/save b")
    obey(talk.session, "/save org/a:1")
    obey(talk.session, "/load")
    assert talk.said[-1] == "b\norg/a:1"


@pytest.mark.parametrize("command", ["/save", "/load"])
@pytest.mark.parametrize("name", ["../../x", "-rf", ".hidden", "a/b/c", "a b"])
def test_names_follow_the_rule_of_model_names(talk: Talk, command: str, name: str) -> None:
    obey(talk.session, f"{command} {name}")
    assert f"{name!r} is not a valid conversation name (a name is NAME or ORG/NAME" in talk.said[0]


def test_what_cannot_be_loaded_leaves_the_conversation_as_it_is(talk: Talk) -> None:
    talk.session.answer("one")
    obey(talk.session, "/load nothing")
    assert talk.said == [
        "there is no saved conversation nothing; saved conversations: none (/save NAME saves this one)"
    ]
    assert len(talk.session.conversation.turns) == 1


@pytest.mark.parametrize(
    ("before", "word", "found"),
    [
        ("", "/s", ["/save", "/set", "/show", "/system"]),
        ("", "/by", ["/bye"]),
        ("", "s", []),
        ("", "", []),
        ("/set ", "t", ["temperature", "top_k", "top_p"]),
        ("/think ", "", ["on", "off"]),
        ("/show ", "te", ["template"]),
        ("/load ", "", ["mine", "yours"]),
        ("/save ", "y", ["yours"]),
        ("/set seed ", "s", []),
        ("/dance ", "", []),
        ("to be ", "o", []),
        ("load ", "", []),
    ],
)
def test_tab_completes_commands_and_what_follows_them(
    talk: Talk, before: str, word: str, found: list[str]
) -> None:
    obey(talk.session, "/save mine")
    obey(talk.session, "/save yours")
    assert completions(talk.session, before, word) == found
