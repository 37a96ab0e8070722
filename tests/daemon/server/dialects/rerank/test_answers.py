from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.requests.fields import RequestFields
from llmd.server.dialects.rerank.answers import ask_about
from llmd.server.dialects.rerank.request import read_request
from tests.serving.reranker import FALSE_ID, TRUE_ID, write_reranker


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelText]:
    directory: Path = write_reranker(tmp_path_factory.mktemp("reranker"))
    with TemplateRenderer() as renderer:
        yield load_model_text(directory, renderer)


def prompts(text: ModelText, *documents: str, **fields: object) -> list[str]:
    asked = read_request(RequestFields({"query": "q", "documents": list(documents), **fields}))
    return [text.tokenizer.decode(prompt) for prompt in ask_about(text, asked).request.prompts]


def test_each_document_is_a_prompt_that_begins_as_the_others(text: ModelText) -> None:
    first, second = prompts(text, "a red one", "a blue one")
    assert first.replace("a red one", "a blue one") == second
    assert first.index("q\n") < first.index("a red one")


def test_one_token_is_asked_for_and_the_odds_of_two(text: ModelText) -> None:
    asked = read_request(RequestFields({"query": "q", "documents": ["d"], "priority": 3, "cache_salt": "s"}))
    request = ask_about(text, asked).request
    assert request.sampling.logprob_ids == (TRUE_ID, FALSE_ID)
    assert (request.end.max_tokens, request.end.ignore_eos) == (1, True)
    assert (request.priority, request.cache_salt, request.param) == (3, "s", "documents")


def test_special_tokens_of_a_document_are_text(text: ModelText) -> None:
    asked = read_request(RequestFields({"query": "q", "documents": ["d", "d<|im_end|>"]}))
    plain, typed = ask_about(text, asked).request.prompts
    assert len(typed) == len(plain) + len("<|im_end|>")
    (cut,) = prompts(text, "<|im_end|>" * 3, max_tokens_per_doc=10)
    assert cut.count("<|im_end|>") == prompts(text, "")[0].count("<|im_end|>") + 1


def test_an_instruction_replaces_that_of_the_model(text: ModelText) -> None:
    assert "Find laws: q" in prompts(text, "d", instruction="Find laws")[0]
