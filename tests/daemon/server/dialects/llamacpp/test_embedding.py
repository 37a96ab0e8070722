from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llmd.server.dialects.llamacpp.embedding import scaled
from tests.serving.http import Reply, send
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon

PATHS = ("/embedding", "/embeddings")


def embed(daemon: RunningDaemon, path: str = "/embedding", /, **fields: Any) -> Reply:
    return send(daemon, "POST", path, {"model": EMBEDDER, **fields})


def openai_vectors(daemon: RunningDaemon, texts: Any) -> list[list[float]]:
    reply = send(daemon, "POST", "/v1/embeddings", {"model": EMBEDDER, "input": texts})
    return [row["embedding"] for row in reply.json["data"]]


@pytest.mark.parametrize("path", PATHS)
def test_answer_is_a_list_in_which_each_text_has_its_vector_in_a_list(
    embedder: RunningDaemon, path: str
) -> None:
    reply = embed(embedder, path, content=["Hello", "Hi"], cache_prompt=True)
    first, second = openai_vectors(embedder, ["Hello", "Hi"])
    assert reply.json == [{"index": 0, "embedding": [first]}, {"index": 1, "embedding": [second]}]
    assert (reply.headers["x-llmd-model"], reply.headers["x-llmd-ignored"]) == (EMBEDDER, "cache_prompt")


def test_one_text_token_ids_and_the_other_name_of_the_field_will_do(embedder: RunningDaemon) -> None:
    expected = [{"index": 0, "embedding": openai_vectors(embedder, "Hello")}]
    assert embed(embedder, content="Hello").json == expected
    assert embed(embedder, input="Hello").json == expected
    ids = [*b"Hello"]
    assert embed(embedder, content=ids).json == [{"index": 0, "embedding": openai_vectors(embedder, [ids])}]


def test_texts_and_token_ids_may_be_mixed(embedder: RunningDaemon) -> None:
    ids, hello = [*b"Hello"], openai_vectors(embedder, "Hello")[0]
    expected = openai_vectors(embedder, [ids])[0]

    def vectors(content: Any) -> list[list[float]]:
        return [row["embedding"][0] for row in embed(embedder, content=content).json]

    assert vectors([*b"He", "l", *b"lo"]) == vectors([*b"Hell", "o"]) == [expected]
    assert vectors(["Hello", [*b"Hel", "lo"], {"prompt_string": "Hello"}]) == [hello, expected, hello]
    assert openai_vectors(embedder, ["Hello", [*b"Hel", "lo"]]) == [hello, expected]


def test_the_path_without_a_version_is_openais_for_its_clients(embedder: RunningDaemon) -> None:
    assert embed(embedder, "/embeddings", input="Hello").json["object"] == "list"
    assert embed(embedder, "/embeddings").error["param"] == "input"


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        (-1, [3.0, -4.0]),
        (0, [0.75 * 32760, -32760.0]),
        (1, [3 / 7, -4 / 7]),
        (3, [3 / 91 ** (1 / 3), -4 / 91 ** (1 / 3)]),
    ],
)
def test_vectors_are_scaled_as_llama_cpp_does(norm: int, expected: list[float]) -> None:
    vectors = np.array([[3, -4], [0, 0]], np.float32)
    np.testing.assert_allclose(scaled(vectors, norm), np.array([expected, [0.0, 0.0]]), rtol=1e-6)


def test_the_length_is_1_unless_the_request_wants_another(embedder: RunningDaemon) -> None:
    def numbers(**fields: Any) -> Any:
        return np.array(embed(embedder, content="Hello", **fields).json[0]["embedding"][0])

    raw = numbers(embd_normalize=-1)
    assert abs(np.linalg.norm(raw) - 1) > 0.1
    np.testing.assert_allclose(numbers(), raw / np.linalg.norm(raw), rtol=1e-5)
    np.testing.assert_allclose(numbers(embd_normalize=1), raw / np.abs(raw).sum(), rtol=1e-5)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "input"),
        ({"content": ""}, "content"),
        ({"content": [1, None]}, "content"),
        ({"content": ["a", ""]}, "content"),
        ({"content": {"prompt_string": "a", "multimodal_data": ["AA=="]}}, "content"),
        ({"content": "x" * 600}, "content"),
        ({"content": "x", "embd_normalize": -2}, "embd_normalize"),
        ({"content": "x", "image_data": [{"data": "AA==", "id": 1}]}, "image_data"),
        ({"content": "x", "encoding_format": "base64"}, "encoding_format"),
        ({"content": "x", "model": MODEL}, "model"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    embedder: RunningDaemon, fields: dict[str, Any], param: str
) -> None:
    reply = embed(embedder, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
