from __future__ import annotations

from typing import Any

import pytest

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.rerank.request import MAX_DOCUMENTS, read_request

BODY: dict[str, Any] = {"model": "m", "query": "q", "documents": ["a", "b"]}


def test_reads_what_is_to_be_ranked_in_every_form() -> None:
    asked = read_request(
        RequestFields({**BODY, "query": {"text": "q"}, "documents": ["a", {"text": "b", "id": 7}]})
    )
    assert (asked.query, asked.documents) == ("q", ("a", "b"))
    assert (asked.top_n, asked.returns_documents, asked.instruction) == (None, False, None)
    assert asked.max_document_tokens is None


def test_reads_how_it_is_answered() -> None:
    more = {"top_n": 1, "return_documents": True, "instruction": "Find", "max_tokens_per_doc": 9, "user": "u"}
    fields = RequestFields({**BODY, **more})
    asked = read_request(fields)
    assert (asked.top_n, asked.returns_documents, asked.instruction) == (1, True, "Find")
    assert asked.max_document_tokens == 9
    assert fields.ignored == ("user",)


def test_no_number_is_all_documents_as_vllm_has_it() -> None:
    assert read_request(RequestFields({**BODY, "top_n": 0})).top_n is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", None),
        ("query", ""),
        ("query", ["q"]),
        ("documents", None),
        ("documents", []),
        ("documents", "a"),
        ("documents", ["a"] * (MAX_DOCUMENTS + 1)),
        ("top_n", -1),
        ("top_n", "all"),
        ("max_tokens_per_doc", 0),
        ("return_documents", "perhaps"),
        ("rank_fields", ["title"]),
        ("truncate_prompt_tokens", 8),
        ("use_activation", False),
    ],
)
def test_what_cannot_be_ranked_so_is_refused_with_its_field(field: str, value: object) -> None:
    with pytest.raises(BadRequestError) as refused:
        read_request(RequestFields({**BODY, field: value}))
    assert refused.value.param == field


@pytest.mark.parametrize("document", [7, ["a"], {"title": "a"}, None])
def test_a_document_that_is_no_text_is_named(document: object) -> None:
    with pytest.raises(BadRequestError, match=r"documents\[1\] is not a text") as refused:
        read_request(RequestFields({**BODY, "documents": ["a", document]}))
    assert refused.value.param == "documents[1]"
