"""Messages between the daemon and its grammar checker, as msgpack payloads of `llmd.process.worker`."""

from __future__ import annotations

import msgspec

from llmd.api.messages import Grammar


class CheckJob(msgspec.Struct, frozen=True):
    """Compile a grammar."""

    grammar: Grammar
    control_ids: tuple[int, ...]
    """The control tokens that the grammar may name."""


class Checked(msgspec.Struct, frozen=True):
    """The result of a check."""

    message: str = ""
    """Why the grammar is refused; empty: it compiles."""
    hint: str = ""
