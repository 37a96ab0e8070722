"""Cohere's clients, of both versions of its API, and the documents that they have ranked."""

from __future__ import annotations

from collections.abc import Iterator

import cohere
import pytest
from cohere.errors import BadRequestError

from tests.golden.rankings import read_ranking
from tests.serving.model import write_model
from tests.serving.reranker import CASE, DOCUMENTS, QUERY, RERANKER, write_reranker
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


@pytest.fixture(scope="module")
def ranking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("rerank"))
    write_reranker(directories.models / RERANKER)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=(RERANKER,)) as running:
        yield running


@pytest.fixture
def client(ranking: RunningDaemon) -> Iterator[cohere.ClientV2]:
    with cohere.ClientV2(api_key="none", base_url=ranking.url) as client:
        yield client


def test_ranks_as_transformers_does(client: cohere.ClientV2) -> None:
    expected = read_ranking(CASE).relevance
    answer = client.rerank(model=RERANKER, query=QUERY, documents=list(DOCUMENTS), top_n=3)
    best = sorted(range(len(DOCUMENTS)), key=lambda place: -expected[place])[:3]
    assert [result.index for result in answer.results] == best
    assert [result.relevance_score for result in answer.results] == pytest.approx(
        [expected[place] for place in best], abs=1e-5
    )
    assert answer.id
    assert answer.meta is not None
    assert answer.meta.tokens is not None
    assert answer.meta.tokens.input_tokens == read_ranking(CASE).lengths.sum()


def test_first_version_of_the_api_returns_documents(ranking: RunningDaemon) -> None:
    documents = [{"text": document} for document in DOCUMENTS]
    with cohere.Client(api_key="none", base_url=ranking.url) as client:
        answer = client.rerank(model=RERANKER, query=QUERY, documents=documents, return_documents=True)
    assert len(answer.results) == len(DOCUMENTS)
    for result in answer.results:
        assert result.document is not None
        assert result.document.text == DOCUMENTS[result.index]


def test_model_that_does_not_rank_is_a_bad_request(client: cohere.ClientV2) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.rerank(model=MODEL, query=QUERY, documents=list(DOCUMENTS))
    assert "does not rank documents" in str(refused.value.body)


async def test_asynchronous_client_ranks(ranking: RunningDaemon) -> None:
    async with cohere.AsyncClientV2(api_key="none", base_url=ranking.url) as client:
        answer = await client.rerank(model=RERANKER, query=QUERY, documents=list(DOCUMENTS))
    assert sorted(result.index for result in answer.results) == list(range(len(DOCUMENTS)))
