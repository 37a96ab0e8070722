from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from llmd.api.messages import EmbedText, Load
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.composition import make_host
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.loading import load_model
from llmd.requests.embedding import normalized
from tests.serving.engine_state import report
from tests.serving.http import send
from tests.serving.model import TURN_END, write_embedding_model
from tests.serving.running import EMBEDDER, RunningDaemon, directories_below, running_daemon


def embed(daemon: RunningDaemon, texts: Any, **fields: Any) -> Any:
    return send(daemon, "POST", "/v1/embeddings", {"model": EMBEDDER, "input": texts, **fields})


def vectors(daemon: RunningDaemon, texts: Any, **fields: Any) -> np.ndarray:
    return np.array([row["embedding"] for row in embed(daemon, texts, **fields).json["data"]])


def test_vectors_are_those_of_the_engine(embedder: RunningDaemon, tmp_path: Path) -> None:
    directory = write_embedding_model(tmp_path / EMBEDDER)
    load = Load(str(directory), device="reference", kv_dtype="f32")
    architectures = make_host(embedder.directories.cache).architectures()
    model = load_model(load, architectures, lambda _: ReferenceDevice(), lambda _: None)
    assert isinstance(model.runner, EmbeddingCore)
    model.runner.submit(EmbedText(1, (*b"Hello", TURN_END)))
    (one,) = model.runner.step().vectors
    model.close()
    expected = normalized(np.frombuffer(one.vector, "<f4")[None])
    np.testing.assert_allclose(vectors(embedder, "Hello"), expected, rtol=1e-6)


def test_a_text_has_the_same_bits_alone_and_among_others(embedder: RunningDaemon) -> None:
    texts = ["Hello", "a" * 300, "?", "Hello"]
    together = vectors(embedder, texts)
    assert np.array_equal(together, np.concatenate([vectors(embedder, text) for text in texts]))
    assert np.array_equal(together[0], together[3])
    assert len({row.tobytes() for row in together}) == 3
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-6)


def test_tokens_are_read_as_they_are(embedder: RunningDaemon) -> None:
    ids = [*b"Hello", TURN_END]
    text = vectors(embedder, "Hello")
    assert np.array_equal(vectors(embedder, ids), text)
    assert np.array_equal(vectors(embedder, [ids, [*b"Hello"]])[:1], text)
    assert not np.array_equal(vectors(embedder, [*b"Hello"]), text)


def test_a_text_over_the_window_is_refused_with_both_numbers(embedder: RunningDaemon) -> None:
    assert embed(embedder, "x" * 511).status == 200
    reply = embed(embedder, ["ok", "x" * 512])
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert (reply.error["n_prompt_tokens"], reply.error["n_ctx"]) == (513, 512)
    assert reply.error["param"] == "input"


def test_tokens_outside_the_vocabulary_are_refused(embedder: RunningDaemon) -> None:
    reply = embed(embedder, [[1, 999]])
    assert reply.status == 400
    assert "999" in reply.error["message"]


def test_the_queue_and_the_deadline_hold_for_texts_too(embedder: RunningDaemon) -> None:
    body = {"model": EMBEDDER, "input": ["x" * 500] * 500}
    reply = send(embedder, "POST", "/v1/embeddings", body, {"x-request-timeout-ms": "300"})
    assert (reply.status, reply.error["code"]) == (408, "deadline_exceeded")
    while report_of(embedder)["running"] + report_of(embedder)["waiting"]:
        pass
    assert embed(embedder, "Hello").status == 200


def report_of(daemon: RunningDaemon) -> dict[str, Any]:
    rows = send(daemon, "GET", "/llmd/ps", unix=True).json["models"]
    found: dict[str, Any] = next(row for row in rows if row["name"] == EMBEDDER)["report"]
    return found


def test_requests_are_counted(embedder: RunningDaemon) -> None:
    def counts() -> tuple[float, float]:
        lines = dict(
            line.rsplit(" ", 1) for line in send(embedder, "GET", "/metrics").content.decode().splitlines()
        )
        tokens = lines.get(f'llmd_prompt_tokens_total{{model="{EMBEDDER}"}}', "0")
        done = lines.get(f'llmd_requests_total{{model="{EMBEDDER}",outcome="stop"}}', "0")
        return float(tokens), float(done)

    tokens, done = counts()
    assert embed(embedder, ["Hello", "Hi"]).status == 200
    assert counts() == (tokens + 9, done + 1)


def test_makers_say_how_texts_and_vectors_are(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    directory = write_embedding_model(directories.models / EMBEDDER, pooling="mean", normalizes=False)
    (directory / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 20, "do_lower_case": True})
    )
    (directory / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"q": "Find: ", "d": "About "}, "default_prompt_name": "q"})
    )
    with running_daemon(directories, models=(EMBEDDER,)) as daemon:
        assert np.array_equal(vectors(daemon, "HELLO"), vectors(daemon, "hello"))
        assert np.array_equal(vectors(daemon, "Hello"), vectors(daemon, [*b"find: hello", TURN_END]))
        about = vectors(daemon, [*b"about hello", TURN_END])
        assert np.array_equal(vectors(daemon, "Hello", prompt_name="d"), about)
        assert np.array_equal(vectors(daemon, [*b"about hello", TURN_END], prompt_name="q"), about)
        refused = embed(daemon, "Hello", prompt_name="x")
        assert (refused.status, refused.error["param"]) == (400, "prompt_name")
        assert "known prompts: q, d" in refused.error["message"]
        assert abs(np.linalg.norm(vectors(daemon, "Hello")) - 1) > 1e-3
        assert embed(daemon, "x" * 14).error["n_ctx"] == 20
        assert report(daemon)["output_tokens"] == 0
