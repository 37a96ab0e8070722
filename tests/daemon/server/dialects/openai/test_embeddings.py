from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from llmd.requests.embedding import read_inputs
from llmd.requests.fields import BadRequestError, RequestFields
from tests.serving.http import Reply, chat, complete, send
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon


def embed(daemon: RunningDaemon, **fields: Any) -> Reply:
    return send(daemon, "POST", "/v1/embeddings", {"model": EMBEDDER, "input": "Hello", **fields})


def test_answer_has_every_field_that_clients_read(embedder: RunningDaemon) -> None:
    reply = embed(embedder, input=["Hello", "Hi"], user="me")
    body = reply.json
    assert (body["object"], body["model"]) == ("list", EMBEDDER)
    assert [(row["object"], row["index"], len(row["embedding"])) for row in body["data"]] == [
        ("embedding", 0, 64),
        ("embedding", 1, 64),
    ]
    assert body["usage"] == {"prompt_tokens": 6 + 3, "total_tokens": 6 + 3}
    assert reply.headers["x-llmd-model"] == EMBEDDER
    assert reply.headers["x-llmd-ignored"] == "user"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("Hi", ("Hi",)),
        (["Hi", "Ho"], ("Hi", "Ho")),
        ([72, 105], ((72, 105),)),
        ([[72, 105], [72]], ((72, 105), (72,))),
        (["Hi", [72]], ("Hi", (72,))),
        ([72, "i"], ((72, "i"),)),
        (["x"] * 2048, ("x",) * 2048),
    ],
)
def test_inputs_come_in_every_form(value: Any, read: Any) -> None:
    assert read_inputs(RequestFields({"input": value})) == read


@pytest.mark.parametrize(
    "value",
    [None, "", [], [""], ["a", ""], 5, False, {}, [1, None], [[]], [[-1]], [None], [True], ["x"] * 2049],
)
def test_what_is_no_input_is_refused(value: Any) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_inputs(RequestFields({"input": value}))
    assert caught.value.param == "input"


def test_numbers_are_the_same_as_floats_and_as_base64(embedder: RunningDaemon) -> None:
    numbers = embed(embedder, encoding_format="float").json["data"][0]["embedding"]
    encoded = embed(embedder, encoding_format="base64").json["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(encoded), "<f4").tolist() == numbers
    assert embed(embedder).json["data"][0]["embedding"] == numbers


def test_vectors_are_cut_on_request(embedder: RunningDaemon) -> None:
    whole = np.array(embed(embedder).json["data"][0]["embedding"])
    cut = np.array(embed(embedder, dimensions=16).json["data"][0]["embedding"])
    np.testing.assert_allclose(cut, whole[:16] / np.linalg.norm(whole[:16]), rtol=1e-5)
    reply = embed(embedder, dimensions=65)
    assert (reply.status, reply.error["param"]) == (400, "dimensions")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("encoding_format", "int8"),
        ("encoding_format", 3),
        ("dimensions", 0),
        ("dimensions", "many"),
        ("input", ""),
        ("keep_alive", "soon"),
        ("truncate_prompt_tokens", 5),
        ("add_special_tokens", False),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(embedder: RunningDaemon, field: str, value: Any) -> None:
    reply = embed(embedder, **{field: value})
    assert (reply.status, reply.error["param"]) == (400, field)
    assert embed(embedder).status == 200


def test_path_without_the_version_and_no_model_name_will_do(embedder: RunningDaemon) -> None:
    assert (
        send(embedder, "POST", "/embeddings", {"model": EMBEDDER, "input": "Hello"}).json
        == embed(embedder).json
    )


def test_each_model_does_what_it_was_made_for(embedder: RunningDaemon) -> None:
    for reply in (chat(embedder, model=EMBEDDER), complete(embedder, model=EMBEDDER)):
        assert (reply.status, reply.error["code"], reply.error["param"]) == (
            400,
            "unsupported_model",
            "model",
        )
        assert "cannot generate" in reply.error["message"]
    streamed = chat(embedder, model=EMBEDDER, stream=True)
    assert (streamed.status, streamed.error["code"]) == (400, "unsupported_model")
    reply = embed(embedder, model=MODEL)
    assert (reply.status, reply.error["code"], reply.error["param"]) == (400, "unsupported_model", "model")
    assert "cannot embed" in reply.error["message"]


def test_models_unknown_are_not_found(embedder: RunningDaemon) -> None:
    assert embed(embedder, model="nobody").status == 404
