"""Answers word for word: the engine's tokens are replaced by those of a text,
and all that reads them stays real.

The models of these tests are random: none of them thinks or calls a tool.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from llmd.api.messages import Submit
from llmd.api.results import TokenOutput
from llmd.server.engines.supervisor import Supervisor
from llmd.server.engines.token_stream import TokenStream
from llmd.server.request_record import RequestRecord
from tests.serving.model import TEMPLATE, TURN_END, write_model

ENOUGH = 1 << 20


class _NoControl:
    def cancel(self, request_id: int) -> None:
        """Nothing runs."""

    def pause(self, request_id: int) -> None:
        """Nothing runs."""

    def resume(self, request_id: int) -> None:
        """Nothing runs."""


def answer_with(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let every answer be this text, token by token, as far as its limit allows."""

    def opened(
        _self: Supervisor,
        requests: Sequence[Submit],
        _record: RequestRecord | None = None,
        *,
        together: bool = False,
    ) -> TokenStream:
        stream = TokenStream(tuple(range(len(requests))), _NoControl(), ENOUGH)
        for request_id, request in enumerate(requests):
            for token in _tokens(request_id, text, request.stop.max_tokens):
                stream.push(token)
        return stream

    monkeypatch.setattr(Supervisor, "open", opened)


def _tokens(request_id: int, text: str, max_tokens: int) -> list[TokenOutput]:
    ids = [*text.encode(), TURN_END]
    cut = ids[:max_tokens]
    finish = "stop" if len(cut) == len(ids) else "length"
    return [*(TokenOutput(request_id, token) for token in cut[:-1]), TokenOutput(request_id, cut[-1], finish)]


def write_thinker(directory: Path, *, context_len: int) -> Path:
    """Write a model whose template knows reasoning, so that its answers separate reasoning from text."""
    write_model(directory, context_len=context_len)
    template = TEMPLATE + "{# <think></think> #}"
    config = {"bos_token": "<s>", "eos_token": "<|im_end|>", "chat_template": template}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory
