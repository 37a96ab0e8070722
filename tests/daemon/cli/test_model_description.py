"""A chat shows an overview of its model and settings, or one topic."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.cli.conversation import Conversation, Turn
from llmd.cli.model_description import TOPICS, described
from tests.daemon.cli.counting_model import CountingModel


@pytest.fixture
def model() -> dict[str, Any]:
    return CountingModel().describe()


def rows(conversation: Conversation, model: dict[str, Any], topic: str = "") -> dict[str, str]:
    """Return the shown lines by title."""
    lines = described(conversation, model, topic).splitlines()
    return {title.strip(): value.strip() for title, _, value in (line.partition("  ") for line in lines)}


@pytest.mark.parametrize("topic", ["", "info"])
def test_shows_model_settings_and_turns_at_a_glance(model: dict[str, Any], topic: str) -> None:
    conversation = Conversation("guide", "be\nbrief", {"seed": 1}, turns=[Turn("one", "1")])
    assert rows(conversation, model, topic) == {
        "model": "guide",
        "architecture": "llama",
        "parameters": "1.2M",
        "weights": "F32 (safetensors)",
        "context": "2048 tokens",
        "capabilities": "completion, tools",
        "system prompt": "be brief",
        "seed": "1",
        "turns": "1",
    }


@pytest.mark.parametrize(
    ("stated", "window", "shown"),
    [
        (2048, 512, "512 tokens; the model supports 2048"),
        (2048, 2048, "2048 tokens"),
        (None, 512, "512 tokens"),
        (None, None, "an unknown number of tokens"),
    ],
)
def test_the_context_is_that_of_the_loaded_model(
    model: dict[str, Any], stated: int | None, window: int | None, shown: str
) -> None:
    model["details"]["context_length"], model["window"] = stated, window
    assert rows(Conversation("guide"), model)["context"] == shown


@pytest.mark.parametrize(("thinking", "shown"), [(None, "the model's default"), (True, "on"), (False, "off")])
def test_thinking_is_shown_of_models_that_can(
    model: dict[str, Any],
    thinking: bool | None,  # noqa: FBT001
    shown: str,
) -> None:
    assert "thinking" not in rows(Conversation("guide", thinking=thinking), model)
    model["capabilities"] = ["thinking"]
    assert rows(Conversation("guide", thinking=thinking), model)["thinking"] == shown


def test_a_text_of_the_model_is_shown_without_steering_the_terminal(model: dict[str, Any]) -> None:
    model["template"] = "{{ a }}\x1b[2J\n"
    assert described(Conversation("guide"), model, "template") == "{{ a }}[2J"
    model["template"] = ""
    assert described(Conversation("guide"), model, "template") == "guide has no template"


def test_the_system_prompt_is_that_of_the_chat_or_else_of_the_model(model: dict[str, Any]) -> None:
    assert described(Conversation("guide"), model, "system") == "there is no system prompt"
    model["system"] = "you are a pirate"
    assert described(Conversation("guide"), model, "system") == "you are a pirate"
    assert described(Conversation("guide", "be\nbrief"), model, "system") == "be\nbrief"


def test_an_unknown_topic_is_answered_with_those_there_are(model: dict[str, Any]) -> None:
    assert described(Conversation("guide"), model, "weather") == (
        f"there is no topic weather; the topics are {', '.join(TOPICS)}"
    )
