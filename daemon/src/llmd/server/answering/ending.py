"""When answers end."""

from __future__ import annotations

from msgspec import Struct

from llmd.api.messages import StopParams
from llmd.server.answering.sampling_fields import MAX_TOKENS
from llmd.server.http.request_fields import RequestFields

MAX_STOPS = 16


class EndChoice(Struct, frozen=True):
    """When answers end. ``max_tokens`` None: at the end of the window. ``shows_stop``: with what stopped them."""

    max_tokens: int | None = None
    min_tokens: int = 0
    strings: tuple[str, ...] = ()
    token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    shows_stop: bool = False

    def stop_params(self, room: int, stop_ids: tuple[int, ...]) -> StopParams:
        """The same for an engine: ``room`` is left in the window, ``stop_ids`` are the model's own."""
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
