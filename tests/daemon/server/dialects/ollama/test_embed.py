from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.serving.http import Reply, send
from tests.serving.model import write_embedding_model
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon, directories_below, running_daemon


def embed(daemon: RunningDaemon, **fields: Any) -> Reply:
    return send(daemon, "POST", "/api/embed", {"model": EMBEDDER, "input": "Hello", **fields})


def test_answer_has_every_field_that_clients_read(embedder: RunningDaemon) -> None:
    body = embed(embedder, input=["Hello", "Hi"]).json
    assert body["model"] == EMBEDDER
    assert [len(row) for row in body["embeddings"]] == [64, 64]
    assert body["prompt_eval_count"] == 6 + 3
    assert body["total_duration"] >= body["load_duration"] >= 0
    assert embed(embedder).json["embeddings"] == body["embeddings"][:1]
    openai = send(embedder, "POST", "/v1/embeddings", {"model": EMBEDDER, "input": "Hello"}).json
    assert openai["data"][0]["embedding"] == body["embeddings"][0]


def test_older_route_embeds_one_prompt(embedder: RunningDaemon) -> None:
    reply = send(embedder, "POST", "/api/embeddings", {"model": EMBEDDER, "prompt": "Hello"})
    assert reply.json == {"embedding": embed(embedder).json["embeddings"][0]}


def test_long_texts_are_cut_and_the_reply_says_so_unless_that_is_not_wanted(embedder: RunningDaemon) -> None:
    reply = embed(embedder, input=["x" * 600, "Hello"])
    assert reply.headers["x-llmd-truncated"] == "89"
    assert reply.json["llmd"] == {"truncated_tokens": 89}
    assert reply.json["embeddings"][0] == embed(embedder, input="x" * 511).json["embeddings"][0]
    refused = embed(embedder, input="x" * 600, truncate=False)
    assert refused.status == 400
    assert "num_ctx" in refused.json["error"]


def test_the_window_may_be_smaller_for_a_request(embedder: RunningDaemon) -> None:
    reply = embed(embedder, input="Hello world", options={"num_ctx": 6, "temperature": 1})
    assert reply.json["embeddings"] == embed(embedder).json["embeddings"]
    assert reply.json["prompt_eval_count"] == 6
    assert reply.headers["x-llmd-ignored"] == "options.temperature"


def test_vectors_are_cut_on_request(embedder: RunningDaemon) -> None:
    whole = np.array(embed(embedder).json["embeddings"][0])
    cut = embed(embedder, dimensions=8).json["embeddings"][0]
    np.testing.assert_allclose(cut, whole[:8] / np.linalg.norm(whole[:8]), rtol=1e-5)
    assert embed(embedder, dimensions=0).json["embeddings"][0] == whole.tolist()


@pytest.mark.parametrize("value", ["", [], None])
def test_nothing_to_embed_loads_the_model(embedder: RunningDaemon, value: Any) -> None:
    assert embed(embedder, input=value).json == {"model": EMBEDDER, "embeddings": []}
    assert send(embedder, "POST", "/api/embeddings", {"model": EMBEDDER}).json == {"embedding": []}


@pytest.mark.parametrize(
    "fields", [{"input": 5}, {"input": [1, 2]}, {"input": [None]}, {"input": ["x"] * 2049}, {"dimensions": -1},
               {"dimensions": 65}, {"truncate": "perhaps"}, {"options": {"num_ctx": 0}}, {"options": []},
               {"keep_alive": "soon"}, {"model": ""}],
)  # fmt: skip
def test_malformed_requests_are_refused(embedder: RunningDaemon, fields: dict[str, Any]) -> None:
    reply = embed(embedder, **fields)
    assert reply.status == 400
    assert isinstance(reply.json["error"], str)


def test_each_model_does_what_it_was_made_for(embedder: RunningDaemon) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    replies = [
        send(embedder, "POST", "/api/chat", {"model": EMBEDDER, "messages": messages}),
        send(embedder, "POST", "/api/generate", {"model": EMBEDDER, "prompt": "Hi"}),
        embed(embedder, model=MODEL),
    ]
    assert [reply.status for reply in replies] == [400, 400, 400]
    assert ["cannot" in reply.json["error"] for reply in replies] == [True] * 3


def test_what_a_model_can_do_is_told(embedder: RunningDaemon) -> None:
    shown = send(embedder, "POST", "/api/show", {"model": EMBEDDER}).json
    assert shown["capabilities"] == ["embedding"]
    assert shown["model_info"]["qwen3.embedding_length"] == 64
    models = send(embedder, "GET", "/api/tags").json["models"]
    found = {model["name"]: model["capabilities"] for model in models}
    assert found == {EMBEDDER: ["embedding"], MODEL: ["completion", "tools"]}


def test_model_goes_when_the_request_says_so(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_embedding_model(directories.models / EMBEDDER)
    with running_daemon(directories, models=()) as daemon:
        assert embed(daemon, keep_alive=-1).status == 200
        assert [row["model"] for row in send(daemon, "GET", "/api/ps").json["models"]] == [EMBEDDER]
        assert embed(daemon, keep_alive=0).status == 200
        while send(daemon, "GET", "/api/ps").json["models"]:
            pass
