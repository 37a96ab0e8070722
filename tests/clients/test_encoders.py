"""Encoders through OpenAI's client: the vectors of transformers, for token ids and for texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import openai
import pytest
from numpy.typing import NDArray

from tests.golden.expected import nmse, read_pooled
from tests.golden.models.embedding import ENCODERS, texts
from tests.golden.models.tiny import TinyModel
from tests.serving.encoder import tokenized, write_encoder
from tests.serving.running import RunningDaemon, directories_below, running_daemon

CASES = [case for case in ENCODERS if case.name != "bert-odd"]

each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("encoders"))
    for case in CASES:
        write_encoder(case, directories.models / case.name)
    with running_daemon(directories, models=(CASES[0].name,), device="cpu") as running:
        yield running


def vectors(
    client: openai.OpenAI, case: TinyModel, asked: list[str] | list[list[int]]
) -> NDArray[np.float32]:
    answer = client.embeddings.create(model=case.name, input=asked)
    assert len(answer.data) == len(asked)
    return np.array([row.embedding for row in answer.data], np.float32)


@each_case
def test_vectors_of_token_ids_are_those_of_transformers(client: openai.OpenAI, case: TinyModel) -> None:
    mean = read_pooled(case.name)[0]["mean"]
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    assert nmse(vectors(client, case, [list(text) for text in texts(case)]), expected) <= 1e-9


@each_case
def test_a_text_is_embedded_with_the_tokens_of_transformers(client: openai.OpenAI, case: TinyModel) -> None:
    alone = [one for one in tokenized(case) if one["second"] is None and one["first"]]
    of_texts = vectors(client, case, [one["first"] for one in alone])
    assert np.array_equal(of_texts, vectors(client, case, [one["ids"] for one in alone]))


@each_case
def test_a_text_beyond_the_positions_of_the_model_is_refused(client: openai.OpenAI, case: TinyModel) -> None:
    assert vectors(client, case, [[5] * 128]).shape == (1, 64)
    with pytest.raises(openai.BadRequestError, match="128") as long:
        client.embeddings.create(model=case.name, input=[[5] * 129])
    assert long.value.code == "context_length_exceeded"


def test_an_encoder_does_not_chat(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="cannot generate"):
        client.chat.completions.create(model=CASES[0].name, messages=[{"role": "user", "content": "Hi"}])
