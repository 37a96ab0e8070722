"""The official client of Ollama for Python."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import ollama
import pytest

from tests.serving.model import CONTEXT_LEN, TEMPLATE
from tests.serving.running import MODEL, RunningDaemon


@pytest.fixture(params=["tcp", "unix"])
def client(request: pytest.FixtureRequest, daemon: RunningDaemon) -> Iterator[ollama.Client]:
    if request.param == "unix":
        transport = httpx.HTTPTransport(uds=str(daemon.socket))
        client = ollama.Client(host="http://llmd", transport=transport)
    else:
        client = ollama.Client(host=daemon.url)
    with client:
        yield client


def test_lists_and_shows_models(client: ollama.Client) -> None:
    (model,) = client.list().models
    assert model.model == MODEL
    assert model.details is not None
    assert model.details.family == "llama"
    assert model.modified_at is not None
    shown = client.show(MODEL)
    assert shown.modelinfo is not None
    assert shown.modelinfo["llama.context_length"] == CONTEXT_LEN
    assert shown.template == TEMPLATE
    assert shown.capabilities == ["completion", "tools"]


def test_tells_what_is_loaded(client: ollama.Client) -> None:
    (model,) = client.ps().models
    assert (model.model, model.context_length, model.size_vram) == (MODEL, CONTEXT_LEN, 0)
    assert model.expires_at is not None


def test_errors_arrive_as_the_clients_own(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError) as missing:
        client.show("nobody")
    assert missing.value.status_code == 404
    assert missing.value.error.startswith("there is no model nobody")
    with pytest.raises(ollama.ResponseError) as refused:
        client.embed(MODEL, "text")
    assert refused.value.status_code == 501
