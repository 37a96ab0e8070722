"""OpenAI's and Anthropic's clients and API keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anthropic
import openai
import pytest
from anthropic.types import ErrorResponse

from llmd.config.keys import KeyFile
from tests.clients.strict import check
from tests.serving.running import RunningDaemon, directories_below, running_daemon


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon that demands keys of everyone but its socket."""
    with running_daemon(directories_below(tmp_path), models=(), require_key=True) as running:
        yield running


def test_key_opens_and_a_wrong_one_is_an_authentication_error(locked: RunningDaemon) -> None:
    key = KeyFile(locked.directories.keys).add("sdk")
    locked.client().reload()
    with openai.OpenAI(base_url=f"{locked.url}/v1", api_key=key) as client:
        assert client.models.list().data == []
    with (
        openai.OpenAI(base_url=f"{locked.url}/v1", api_key="llmd-wrong") as client,
        pytest.raises(openai.AuthenticationError, match="is unknown"),
    ):
        client.models.list()


def test_anthropics_client_reads_a_refusal_in_its_own_form(locked: RunningDaemon) -> None:
    key = KeyFile(locked.directories.keys).add("sdk")
    locked.client().reload()
    with anthropic.Anthropic(base_url=locked.url, api_key=key, max_retries=0) as client:
        assert client.models.list().data == []
    with (
        anthropic.Anthropic(base_url=locked.url, api_key="llmd-wrong", max_retries=0) as client,
        pytest.raises(anthropic.AuthenticationError) as refused,
    ):
        client.messages.count_tokens(model="any", messages=[{"role": "user", "content": "Hello"}])
    assert check(ErrorResponse, refused.value.response.text).error.type == "authentication_error"
