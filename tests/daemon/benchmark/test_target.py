"""Base URLs are parsed, and requests have the form of each API."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.benchmark.load import Sample
from llmd.benchmark.target import CHAT, COMPLETIONS, Endpoint, Target

SAMPLE = Sample("Hello", 2, 7)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://host:8000", "http://host:8000"),
        ("http://host:8000/", "http://host:8000"),
        ("http://host:8000/v1/", "http://host:8000"),
        ("https://host/api/v1", "https://host/api"),
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        ("http://[::1]:9", "http://[::1]:9"),
    ],
)
def test_reads_the_url_of_a_server_or_of_its_api(text: str, url: str) -> None:
    assert Target.parse(text) == Target(url)


def test_reads_a_unix_socket() -> None:
    assert Target.parse("unix:/run/x.sock").socket == Path("/run/x.sock")


@pytest.mark.parametrize("text", ["ftp://host", "http://", "http://host:99999", "http://host:x", "unix:"])
def test_refuses_what_is_no_url(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Target.parse(text)
    assert "--base-url" in caught.value.message
    assert caught.value.hint


def test_a_sample_is_a_prompt_of_a_completion() -> None:
    assert Endpoint(COMPLETIONS, "/x", "m", {"ignore_eos": True}).body(SAMPLE) == {
        "model": "m",
        "prompt": "Hello",
        "max_tokens": 7,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }


def test_a_sample_is_the_message_of_a_chat() -> None:
    assert Endpoint(CHAT, "/x", "m").body(SAMPLE) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        "max_completion_tokens": 7,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_fields_that_were_given_win() -> None:
    assert Endpoint(COMPLETIONS, "/x", "m", {"max_tokens": 1}).body(SAMPLE)["max_tokens"] == 1
