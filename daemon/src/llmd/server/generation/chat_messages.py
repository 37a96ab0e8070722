"""Checks the chat messages of a request, in every dialect, before a model is loaded for them."""

from __future__ import annotations

from collections.abc import Collection

from llmd.chat.templates.message_keys import CHAT_KEYS, misspelt, require_content
from llmd.requests.fields import BadRequestError


def check_message(message: object, param: str, roles: Collection[str]) -> None:
    """Check one message.

    Raises:
        RequestError: it is not an object, its role is not one of ``roles``, or it has no content.
    """
    if not isinstance(message, dict):
        raise BadRequestError(f"{param} must be an object", code="invalid_value", param=param)
    if message.get("role") not in roles:
        raise BadRequestError(
            f"{param}.role must be one of {', '.join(roles)}, not {message.get('role')!r}",
            code="invalid_value",
            param=f"{param}.role",
            hint=misspelt(message, CHAT_KEYS),
        )
    require_content(message, param)
