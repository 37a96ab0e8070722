"""Several threads embed texts with one engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import ContextLengthError, LlmdError, RequestError
from llmd.embedded.engine import Engine
from tests.serving.model import TURN_END, write_embedding_model

TEXTS = ["Hello", "a" * 300, "?", "Hello"]


@pytest.fixture(scope="module")
def embedding_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_embedding_model(tmp_path_factory.mktemp("embedding") / "embedder")


@pytest.fixture
def embedder(embedding_directory: Path) -> Iterator[Engine]:
    with Engine.load(embedding_directory, "reference", kv_dtype="f32") as engine:
        yield engine


def test_a_text_has_the_same_bits_alone_and_among_others(embedder: Engine) -> None:
    together = embedder.embed(TEXTS)
    assert (together.dtype, together.shape) == (np.dtype(np.float32), (4, 64))
    assert np.array_equal(together, np.concatenate([embedder.embed(text) for text in TEXTS]))
    assert np.array_equal(together[0], together[3])
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-6)
    assert embedder.stats().prompt_tokens == 2 * sum(len(text) + 1 for text in TEXTS)
    embedder.reset_stats()
    assert (embedder.stats().steps, embedder.stats().kv_blocks_used) == (0, 0)


def test_token_ids_are_read_as_they_are(embedder: Engine) -> None:
    ids = [*b"Hello", TURN_END]
    expected = embedder.embed("Hello")
    for given in (ids, [ids], np.array(ids), np.array([ids])):
        assert np.array_equal(embedder.embed(given), expected)  # type: ignore[arg-type]


def test_vectors_are_cut_where_the_model_was_made_for_it(embedder: Engine) -> None:
    whole, cut = embedder.embed("Hello"), embedder.embed("Hello", dimensions=8)
    np.testing.assert_allclose(cut, whole[:, :8] / np.linalg.norm(whole[:, :8]), rtol=1e-6)


def test_threads_get_their_own_vectors(embedder: Engine) -> None:
    alone = {text: embedder.embed(text) for text in TEXTS}
    found: dict[str, bool] = {}

    def ask(text: str) -> None:
        found[text] = np.array_equal(embedder.embed([text] * 3), np.repeat(alone[text], 3, axis=0))

    threads = [threading.Thread(target=ask, args=[text]) for text in TEXTS[:3]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(TEXTS[:3], True)


def test_what_cannot_be_embedded_is_refused_and_nothing_stays(embedder: Engine) -> None:
    with pytest.raises(RequestError, match="none of them empty"):
        embedder.embed("")
    with pytest.raises(RequestError, match="the vocabulary ends"):
        embedder.embed([[1], [1 << 20]])
    with pytest.raises(RequestError, match="no prompt 'query'"):
        embedder.embed("Hello", prompt_name="query")
    with pytest.raises(RequestError, match="dimensions must be between 1 and"):
        embedder.embed("Hello", dimensions=0)
    with pytest.raises(ContextLengthError):
        embedder.embed(["short", "x" * embedder.loaded.context_len])
    assert embedder.stats().running == embedder.stats().waiting == 0
    assert embedder.embed("Hello").shape == (1, 64)


def test_a_text_that_is_refused_takes_those_before_it_along(embedder: Engine) -> None:
    with pytest.raises(RequestError, match="token ids reach"):
        embedder._queue.embed([(1, 2), (1 << 20,)])  # type: ignore[union-attr]
    assert embedder.stats().waiting == 0


def test_a_model_does_what_it_was_made_for_alone(embedder: Engine, engine: Engine) -> None:
    with pytest.raises(RequestError, match="and cannot generate") as caught:
        embedder.generate("Hello")
    assert "Engine.embed" in caught.value.hint
    with pytest.raises(RequestError, match="and cannot generate"):
        embedder.forward([1, 2])
    with pytest.raises(RequestError, match="and cannot embed"):
        engine.embed("Hello")


def test_a_closed_engine_says_so(embedding_directory: Path) -> None:
    embedder = Engine.load(embedding_directory, "reference")
    embedder.close()
    embedder.close()
    with pytest.raises(LlmdError, match="closed"):
        embedder.embed("Hello")
