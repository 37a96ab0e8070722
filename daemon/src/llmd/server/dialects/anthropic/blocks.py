"""Content blocks of a request: text, skipped blocks and unsupported ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from llmd.requests.fields import BadRequestError

BETWEEN_BLOCKS = "\n\n"
_RESULT = "_tool_result"
_SKIPPED = frozenset({"redacted_thinking", "server_tool_use", "mcp_tool_use", "tool_reference"})


class Block(Struct, frozen=True):
    """A content block."""

    type: str
    fields: dict[str, Any]
    param: str
    """Its path in the request, for error messages."""

    @property
    def is_skipped(self) -> bool:
        """Whether it holds data that only Anthropic's servers can read, or work of tools that run there."""
        return self.type in _SKIPPED or self.type.endswith(_RESULT)

    def text_field(self, name: str) -> str:
        """Return a field that must be a string."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise invalid(f"{self.param}.{name}", "a string")
        return value

    def optional_text(self, name: str) -> str:
        """Return a string field, or an empty string if it is absent."""
        return "" if self.fields.get(name) is None else self.text_field(name)


def invalid(param: str, expected: str, hint: str = "") -> BadRequestError:
    """Return the error for an invalid part of a conversation."""
    return BadRequestError(f"{param} must be {expected}", code="invalid_value", param=param, hint=hint)


def read_blocks(content: Any, param: str) -> Iterator[Block]:
    """Yield the blocks of a message's content, which may be one string."""
    if isinstance(content, str):
        yield Block("text", {"text": content}, param)
        return
    if not isinstance(content, list):
        raise invalid(param, "a string or a list of content blocks")
    for place, fields in enumerate(content):
        where = f"{param}.{place}"
        if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
            raise invalid(where, "a content block with a type")
        yield Block(fields["type"], fields, where)


def block_text(block: Block) -> str:
    """Return a block as text for the model.

    Raises:
        BadRequestError: it is an image, a file or of an unknown type.
    """
    match block.type:
        case "text":
            return block.text_field("text")
        case "document":
            return _document_text(block)
        case "search_result":
            found = texts(block.fields.get("content"), f"{block.param}.content")
            return BETWEEN_BLOCKS.join([block.text_field("title"), block.text_field("source"), *found])
        case _:
            raise BadRequestError(
                f"{block.param} is of type {block.type!r}, but this model reads only text",
                code="unsupported_content",
                param=block.param,
                hint="remove it, or send its text",
            )


def texts(content: Any, param: str) -> list[str]:
    """Return the text of every block that is not skipped."""
    return [block_text(block) for block in read_blocks(content, param) if not block.is_skipped]


def _document_text(block: Block) -> str:
    source = block.fields.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    where = f"{block.param}.source"
    heads = [block.optional_text(name) for name in ("title", "context")]
    if isinstance(source, dict) and kind == "text":
        body = [Block("text", source, where).text_field("data")]
    elif isinstance(source, dict) and kind == "content":
        body = texts(source.get("content"), f"{where}.content")
    else:
        raise BadRequestError(
            f"{where} is of type {kind!r}, but only text documents are supported",
            code="unsupported_content",
            param=where,
            hint="send the document's text",
        )
    return BETWEEN_BLOCKS.join(filter(None, [*heads, *body]))
