"""Summaries of conversations as opaque text, in which clients send them back."""

from __future__ import annotations

import base64
import binascii

from llmd.requests.fields import BadRequestError

MARK = "llmd1:"
"""What every summary of this daemon begins with. OpenAI encrypts its summaries; here, nothing is secret."""

HEAD = "Summary of the conversation so far:\n\n"


def written_summary(text: str) -> str:
    """Return a summary in the form for clients."""
    return MARK + base64.b64encode(text.encode()).decode()


def read_summary(content: object, param: str) -> str:
    """Return the text of a summary, under a heading for the model.

    Raises:
        BadRequestError: it was not made by llmd.
    """
    if isinstance(content, str) and content.startswith(MARK):
        try:
            return HEAD + base64.b64decode(content.removeprefix(MARK), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            pass
    raise BadRequestError(
        f"{param}.encrypted_content is not a summary that llmd made",
        code="invalid_encrypted_content",
        param=f"{param}.encrypted_content",
        hint="send what /v1/responses/compact returned, or the conversation itself",
    )
