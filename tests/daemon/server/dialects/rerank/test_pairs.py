"""Cross-encoders through the daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.models.embedding import SCORERS
from tests.golden.models.tiny import TinyModel
from tests.golden.rankings import read_ranking
from tests.serving.encoder import write_encoder
from tests.serving.http import chat
from tests.serving.rankings import ask, ranked, scores
from tests.serving.reranker import QUERY, SHORT_DOCUMENTS
from tests.serving.running import RunningDaemon, directories_below, running_daemon

BARE = "bare"
each_case = pytest.mark.parametrize("case", SCORERS, ids=[case.name for case in SCORERS])


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """Cross-encoders, one of which returns logits as scores."""
    directories = directories_below(tmp_path_factory.mktemp("encoders"), cache=probes)
    for case in SCORERS:
        write_encoder(case, directories.models / case.name)
    config = write_encoder(SCORERS[0], directories.models / BARE) / "config.json"
    identity = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}
    config.write_text(json.dumps(json.loads(config.read_text()) | identity))
    with running_daemon(directories, models=(SCORERS[0].name,), device="cpu") as running:
        yield running


@each_case
def test_documents_get_the_scores_of_transformers(encoders: RunningDaemon, case: TinyModel) -> None:
    expected = read_ranking(case)
    reply = ask(encoders, model=case.name, documents=SHORT_DOCUMENTS)
    assert scores(reply) == pytest.approx(expected.relevance, abs=1e-5)
    assert ranked(reply).usage.prompt_tokens == expected.lengths.sum()


def test_scores_are_bare_where_the_configuration_says_so(encoders: RunningDaemon) -> None:
    expected = read_ranking(SCORERS[0]).log_odds.tolist()
    assert scores(ask(encoders, model=BARE, documents=SHORT_DOCUMENTS)) == pytest.approx(expected, abs=1e-5)


def test_fields_about_prompts_are_named_as_ignored(encoders: RunningDaemon) -> None:
    asked: dict[str, Any] = {"model": SCORERS[0].name, "documents": SHORT_DOCUMENTS}
    reply = ask(encoders, **asked, priority=3, cache_salt="s", user="me")
    assert reply.headers["x-llmd-ignored"] == "cache_salt, priority, user"
    assert "x-llmd-ignored" not in ask(encoders, **asked, priority=0).headers


@each_case
def test_scores_do_not_depend_on_what_is_ranked_beside(encoders: RunningDaemon, case: TinyModel) -> None:
    alone = [scores(ask(encoders, model=case.name, documents=[one]))[0] for one in SHORT_DOCUMENTS]
    assert scores(ask(encoders, model=case.name, documents=SHORT_DOCUMENTS)) == alone


def test_a_document_beyond_the_window_is_refused_or_cut(encoders: RunningDaemon) -> None:
    long = ["red " * 200]
    refused = ask(encoders, model=SCORERS[0].name, documents=long)
    assert (refused.status, refused.error["code"]) == (400, "context_length_exceeded")
    assert refused.error["param"] == "documents"
    assert ask(encoders, model=SCORERS[0].name, documents=long, max_tokens_per_doc=40).status == 200


def test_an_instruction_is_refused(encoders: RunningDaemon) -> None:
    refused = ask(encoders, model=SCORERS[0].name, instruction="Find laws", documents=[QUERY])
    assert (refused.status, refused.error["param"]) == (400, "instruction")


def test_a_cross_encoder_does_not_chat(encoders: RunningDaemon) -> None:
    assert chat(encoders, model=SCORERS[0].name).status == 400
