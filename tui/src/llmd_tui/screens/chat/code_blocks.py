"""The code blocks of a text in Markdown."""

from __future__ import annotations

from markdown_it import MarkdownIt


def code_blocks(text: str) -> list[str]:
    """Return the contents of all code blocks, in their order."""
    tokens = MarkdownIt("gfm-like").parse(text)
    return [token.content for token in tokens if token.type in {"fence", "code_block"}]
