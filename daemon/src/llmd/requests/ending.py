"""When answers end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from msgspec import Struct

from llmd.api.messages import StopParams
from llmd.requests.fields import RequestFields
from llmd.requests.sampling import MAX_TOKENS

MAX_STOPS = 16


class EndFields(TypedDict, total=False):
    """Fields that say when answers end, except the limit of tokens, which has other names in some APIs."""

    min_tokens: int | None
    """No stop token is drawn before an answer has this many."""
    stop: str | Sequence[str] | None
    """Texts that end an answer."""
    stop_token_ids: Sequence[int] | None
    """Tokens that end an answer, in addition to the model's own."""
    ignore_eos: bool | None
    """The model's own stop tokens do not end an answer."""
    include_stop_str_in_output: bool | None
    """Answers keep the text that stopped them."""


class EndOptions(EndFields, total=False):
    """Fields that say when answers end, also options of `llmd.Engine`."""

    max_tokens: int | None
    """How many tokens an answer may have."""


class EndChoice(Struct, frozen=True):
    """When answers end."""

    max_tokens: int | None = None
    """None: at the end of the context window."""
    min_tokens: int = 0
    strings: tuple[str, ...] = ()
    token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    shows_stop: bool = False
    """Answers keep the text that stopped them."""

    def stop_params(self, room: int, stop_ids: tuple[int, ...]) -> StopParams:
        """Return the parameters for the engine.

        Args:
            room: tokens that are left in the context window.
            stop_ids: the model's own stop tokens.
        """
        ids = self.token_ids if self.ignore_eos else (*stop_ids, *self.token_ids)
        return StopParams(
            max_tokens=room if self.max_tokens is None else min(room, self.max_tokens),
            stop_ids=tuple(sorted(set(ids))),
            min_tokens=self.min_tokens,
        )


def read_end(fields: RequestFields, max_tokens: int | None) -> EndChoice:
    """When answers end."""
    return EndChoice(
        max_tokens=max_tokens,
        min_tokens=fields.integer("min_tokens", 0, MAX_TOKENS) or 0,
        strings=fields.strings("stop", MAX_STOPS),
        token_ids=fields.token_ids("stop_token_ids"),
        ignore_eos=fields.boolean("ignore_eos"),
        shows_stop=fields.boolean("include_stop_str_in_output"),
    )
