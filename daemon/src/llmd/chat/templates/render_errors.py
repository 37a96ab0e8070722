"""Errors that a chat template raises while it renders."""

from __future__ import annotations

from llmd.api.errors import RequestError, TemplateError


class TemplateRefusedError(RequestError):
    """The template refused the conversation by calling ``raise_exception``."""


class TemplateFailedError(TemplateError):
    """An expression of the template failed, for instance because a variable has an unexpected value."""
