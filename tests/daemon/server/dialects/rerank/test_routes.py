from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from llmd.client_connection import connected
from tests.golden.rankings import read_ranking
from tests.serving.engine_state import report, wait_until
from tests.serving.http import chat, send
from tests.serving.rankings import ask, ranked, scores
from tests.serving.reranker import CASE, CONTEXT_LEN, DOCUMENTS, QUERY, RERANKER, write_reranker
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

FEW, MANY = 48, 400
PATHS = ("/v1/rerank", "/rerank", "/v2/rerank", "/v1/reranking", "/reranking")


@pytest.mark.parametrize("path", PATHS)
def test_documents_come_in_the_order_that_transformers_gives_them(ranking: RunningDaemon, path: str) -> None:
    expected = read_ranking(CASE)
    found = ranked(ask(ranking, path))
    order = sorted(range(len(DOCUMENTS)), key=lambda place: -expected.relevance[place])
    assert [result.index for result in found.results] == order
    assert found.model == RERANKER
    for result in found.results:
        assert result.relevance_score == pytest.approx(expected.relevance[result.index], abs=1e-5)
        assert result.document is None
    total = int(expected.lengths.sum())
    assert (found.usage.prompt_tokens, found.usage.total_tokens) == (total, total)
    assert found.meta == {"tokens": {"input_tokens": total, "output_tokens": 0}}


def test_only_the_best_are_returned_and_with_their_texts_where_that_is_asked_for(
    ranking: RunningDaemon,
) -> None:
    everything = ranked(ask(ranking)).results
    best = ranked(ask(ranking, top_n=2, return_documents=True)).results
    assert [one.index for one in best] == [one.index for one in everything[:2]]
    assert [one.document and one.document.text for one in best] == [DOCUMENTS[one.index] for one in best]
    assert len(ranked(ask(ranking, top_n=99)).results) == len(DOCUMENTS)


def test_equal_documents_keep_their_order(ranking: RunningDaemon) -> None:
    assert [one.index for one in ranked(ask(ranking, documents=["same"] * 5)).results] == list(range(5))


def test_scores_do_not_depend_on_what_is_ranked_beside(ranking: RunningDaemon) -> None:
    alone = [scores(ask(ranking, documents=[document], cache_salt=document))[0] for document in DOCUMENTS]
    assert scores(ask(ranking)) == alone


def test_an_instruction_changes_the_scores(ranking: RunningDaemon) -> None:
    assert scores(ask(ranking, instruction="Find recipes")) != scores(ask(ranking))


def test_prefix_of_the_query_is_shared_by_the_documents(ranking: RunningDaemon) -> None:
    query = "Which planet " + "is red and " * 30
    before = report_of(ranking)
    ranked(ask(ranking, query=query, documents=[f"Planet {place}" for place in range(12)], cache_salt="own"))
    after = report_of(ranking)
    computed = after["prompt_tokens"] - before["prompt_tokens"]
    cached = after["cached_tokens"] - before["cached_tokens"]
    assert cached > 2 * computed


def report_of(daemon: RunningDaemon) -> dict[str, Any]:
    rows = send(daemon, "GET", "/llmd/ps", unix=True).json["models"]
    (row,) = [row for row in rows if row["name"] == RERANKER]
    counters: dict[str, Any] = row["report"]
    return counters


def test_model_that_ranks_does_not_chat(ranking: RunningDaemon) -> None:
    refused = chat(ranking, model=RERANKER)
    assert (refused.status, refused.error["param"]) == (400, "model")
    assert "/v1/rerank" in refused.error["message"]


def test_model_that_does_not_rank_says_so(ranking: RunningDaemon) -> None:
    reply = ask(ranking, model=MODEL)
    assert (reply.status, reply.error["type"], reply.error["param"]) == (
        400,
        "invalid_request_error",
        "model",
    )
    assert "does not rank documents" in reply.error["message"]
    assert chat(ranking, model=MODEL).status == 200


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"documents": []}, "documents"),
        ({"documents": ["fine", 7]}, "documents[1]"),
        ({"query": ""}, "query"),
        ({"top_n": -1}, "top_n"),
        ({"documents": ["x" * CONTEXT_LEN]}, "documents"),
    ],
)
def test_bad_fields_are_refused_by_name_and_the_next_request_is_served(
    ranking: RunningDaemon, fields: dict[str, Any], param: str
) -> None:
    reply = ask(ranking, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert ask(ranking).status == 200


def test_long_documents_are_cut_where_that_is_asked_for_and_the_reply_says_so(ranking: RunningDaemon) -> None:
    reply = ask(ranking, documents=["x" * CONTEXT_LEN, "short"], max_tokens_per_doc=100)
    assert (reply.status, reply.headers["x-llmd-truncated"]) == (200, str(CONTEXT_LEN - 100))
    assert "x-llmd-truncated" not in ask(ranking, max_tokens_per_doc=1000).headers


def test_fields_that_nobody_read_are_named(ranking: RunningDaemon) -> None:
    reply = ask(ranking, user="me", max_chunks_per_doc=10)
    assert reply.headers["x-llmd-ignored"] == "max_chunks_per_doc, user"
    assert reply.headers["x-llmd-model"] == RERANKER


@pytest.fixture
def own(tmp_path: Path, probes: Path) -> Iterator[RunningDaemon]:
    """A daemon that gets requests from one test only."""
    directories = directories_below(tmp_path, cache=probes)
    write_reranker(directories.models / RERANKER)
    with running_daemon(directories, models=(RERANKER,), slots=2) as running:
        yield running


def body_of(count: int) -> dict[str, Any]:
    return {"model": RERANKER, "query": QUERY, "documents": [f"{place} " * 20 for place in range(count)]}


def test_client_that_leaves_frees_every_document(own: RunningDaemon) -> None:
    with closing(HTTPConnection("localhost")) as connection:
        connection.sock = connected(own.tcp)
        connection.request("POST", PATHS[0], json.dumps(body_of(MANY)))
        while not report(own)["output_tokens"]:
            pass
    wait_until(own, running=0, waiting=0, kv_blocks_used=0)
    assert report(own)["output_tokens"] < MANY // 2


def test_documents_take_one_place_in_the_queue(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_reranker(directories.models / RERANKER)
    with (
        running_daemon(directories, models=(RERANKER,), slots=1, max_queue=1) as narrow,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(send, narrow, "POST", PATHS[0], body_of(FEW))
        while not report(narrow)["output_tokens"]:
            pass
        assert ask(narrow).status == 200
        assert len(scores(first.result())) == FEW


def test_engine_that_is_killed_costs_no_score(own: RunningDaemon) -> None:
    undisturbed = scores(send(own, "POST", PATHS[0], body_of(FEW)))
    (row,) = send(own, "GET", "/llmd/ps", unix=True).json["models"]
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(send, own, "POST", PATHS[0], body_of(FEW) | {"cache_salt": "again"})
        while report(own)["output_tokens"] < FEW + 2:
            assert not again.done(), "the engine was too fast to be killed"
        os.kill(row["engine_pid"], signal.SIGKILL)
        assert scores(again.result()) == undisturbed
    (later,) = send(own, "GET", "/llmd/ps", unix=True).json["models"]
    assert later["engine_pid"] != row["engine_pid"]
