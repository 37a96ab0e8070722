"""What the front and the grammar process say to each other, as msgpack in the frames of `llmd.process.worker`."""

from __future__ import annotations

import msgspec

from llmd.api.messages import Grammar


class CheckJob(msgspec.Struct, frozen=True):
    """Compile a grammar. ``control_ids`` are the control tokens that it may name."""

    grammar: Grammar
    control_ids: tuple[int, ...]


class Checked(msgspec.Struct, frozen=True):
    """Why a grammar is refused, and what to do; no ``message``: it is good."""

    message: str = ""
    hint: str = ""
