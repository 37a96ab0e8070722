"""Converts conversations of Ollama's clients to the messages that templates expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.generation.chat_messages import check_message

ROLES = ("system", "user", "assistant", "tool")


def read_messages(fields: RequestFields) -> list[dict[str, Any]]:
    """Parse the conversation; empty if there is none.

    Raises:
        RequestError: a message has an unknown role, no content, or images.
    """
    messages = fields.value("messages") or []
    if not isinstance(messages, list):
        raise fields.invalid("messages", "a list of messages")
    return [_message(message, f"messages[{place}]") for place, message in enumerate(messages)]


def refuse_images(holder: Mapping[str, Any], param: str) -> None:
    """Raises `BadRequestError` if there are images, which no model here can read."""
    if holder.get("images"):
        raise BadRequestError(
            f"{param} is not supported: the models that llmd serves read only text",
            code="unsupported_parameter",
            param=param,
            hint="remove the images",
        )


def _message(message: Any, param: str) -> dict[str, Any]:
    if isinstance(message, dict):
        refuse_images(message, f"{param}.images")
        if isinstance(message.get("role"), str):
            message = {**message, "role": message["role"].lower()}
    check_message(message, param, ROLES)
    kept = {name: value for name, value in message.items() if name not in {"images", "tool_name"}}
    named = {"name": message["tool_name"]} if isinstance(message.get("tool_name"), str) else {}
    return kept | named
