"""A test that asks a daemon for a response fails where the daemon sends another than the shapes have."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from llmd.server.dialects.openai.responses import response
from llmd.server.generation.generation import Usage
from tests.clients.sse import events
from tests.serving.checked_replies import take_mistakes
from tests.serving.http import send
from tests.serving.running import MODEL, RunningDaemon
from tests.shapes_of_replies import pytest_runtest_call

FIELDS: dict[str, Any] = {"model": MODEL, "input": "Hello", "max_output_tokens": 2}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants an unknown field and a float where an integer belongs."""
    usage_body = response.usage_body

    def mistaken(usage: Usage) -> dict[str, Any]:
        return {**usage_body(usage), "total_tokens": 3.0, "odd": 1}

    monkeypatch.setattr(response, "usage_body", mistaken)


@pytest.mark.usefixtures("planted")
def test_a_mistake_in_a_whole_response_is_found(client: openai.OpenAI) -> None:
    client.responses.create(**FIELDS)
    (mistake,) = take_mistakes()
    assert "Expected `int`, got `float` - at `$.usage.total_tokens`" in mistake


@pytest.mark.usefixtures("planted")
def test_a_mistake_in_an_event_is_found(daemon: RunningDaemon) -> None:
    sent = events(send(daemon, "POST", "/v1/responses", {**FIELDS, "stream": True}).content)
    (mistake,) = take_mistakes()
    assert sent[-1].data in mistake
    assert "$.response.usage" in mistake


@pytest.mark.usefixtures("planted")
def test_a_mistake_in_a_kept_response_is_found(daemon: RunningDaemon) -> None:
    body = send(daemon, "POST", "/v1/responses", {**FIELDS, "store": True}).json
    take_mistakes()
    send(daemon, "GET", f"/v1/responses/{body['id']}")
    assert len(take_mistakes()) == 1


@pytest.mark.usefixtures("planted")
def test_a_mistake_fails_the_test_that_it_came_up_in(daemon: RunningDaemon) -> None:
    running = pytest_runtest_call()
    next(running)
    send(daemon, "POST", "/v1/responses", FIELDS)
    with pytest.raises(pytest.fail.Exception, match=r"a daemon sent .*\n.*total_tokens"):
        next(running)
    assert take_mistakes() == []
