from __future__ import annotations

from typing import Any

import pytest

from llmd.requests.fields import BadRequestError
from llmd.server.dialects.anthropic.blocks import Block, block_text, read_blocks, texts


def text(**fields: Any) -> str:
    (found,) = texts([fields], "messages.0.content")
    return found


def test_a_string_is_one_block_of_text() -> None:
    (block,) = read_blocks("Hello", "system")
    assert (block.type, block_text(block)) == ("text", "Hello")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"type": "text", "media_type": "text/plain", "data": "Body"}, "Title\n\nContext\n\nBody"),
        ({"type": "content", "content": "Body"}, "Title\n\nContext\n\nBody"),
        (
            {"type": "content", "content": [{"type": "text", "text": t} for t in "ab"]},
            "Title\n\nContext\n\na\n\nb",
        ),
    ],
)
def test_documents_are_read_as_text(source: dict[str, Any], expected: str) -> None:
    assert text(type="document", title="Title", context="Context", source=source) == expected


def test_documents_may_have_nothing_but_a_source() -> None:
    assert text(type="document", source={"type": "text", "data": "Body"}) == "Body"


def test_search_results_are_text_with_their_source() -> None:
    content = [{"type": "text", "text": "Found"}]
    found = text(type="search_result", title="Title", source="https://x", content=content)
    assert found == "Title\n\nhttps://x\n\nFound"


@pytest.mark.parametrize(
    "kind",
    ["redacted_thinking", "server_tool_use", "web_search_tool_result", "mcp_tool_use", "tool_reference"],
)
def test_what_only_the_service_reads_is_skipped(kind: str) -> None:
    assert texts([{"type": kind}, {"type": "text", "text": "a"}], "p") == ["a"]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "container_upload", "file_id": "x"},
        {"type": "nonsense"},
    ],
)
def test_what_is_no_text_is_refused_by_its_place(block: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError, match="only text") as caught:
        texts([{"type": "text", "text": "a"}, block], "messages.0.content")
    assert caught.value.param == "messages.0.content.1"


@pytest.mark.parametrize("source", [{"type": "base64", "data": "AA=="}, {"type": "url"}, None, "x"])
def test_documents_that_are_no_text_are_refused_by_their_place(source: object) -> None:
    with pytest.raises(BadRequestError, match="only text documents") as caught:
        text(type="document", source=source)
    assert caught.value.param == "messages.0.content.0.source"


@pytest.mark.parametrize(
    ("content", "param"),
    [
        (5, "p"),
        (["a"], "p.0"),
        ([{"text": "a"}], "p.0"),
        ([{"type": 1}], "p.0"),
        ([{"type": "text"}], "p.0.text"),
        ([{"type": "search_result", "title": "a", "content": []}], "p.0.source"),
        ([{"type": "document", "title": 5, "source": {"type": "text", "data": ""}}], "p.0.title"),
    ],
)
def test_malformed_blocks_are_refused_by_their_place(content: object, param: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        texts(content, "p")
    assert caught.value.param == param


def test_results_of_the_clients_own_tools_are_not_skipped() -> None:
    assert not Block("tool_result", {}, "p").is_skipped
