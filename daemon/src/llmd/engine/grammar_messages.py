"""What an engine and its grammar process say to each other, in the frames of `llmd.process.frames`.

The process sends `Ready` once, then `Compiled` for each `Compile`, when that is done, and `Filled` for each `Fill`.
"""

from __future__ import annotations

import msgspec

from llmd.api.messages import Grammar


class Compile(msgspec.Struct, frozen=True, tag=True):
    """Compile a grammar for a sequence, whose answer has the tokens ``output`` already."""

    sequence_id: int
    grammar: Grammar
    output: tuple[int, ...] = ()


class Fork(msgspec.Struct, frozen=True, tag=True):
    """Let a new sequence be where another is in its grammar."""

    parent_id: int
    child_id: int


class Forget(msgspec.Struct, frozen=True, tag=True):
    """A sequence has ended, whether its grammar is compiled or not."""

    sequence_id: int


class BoundRow(msgspec.Struct, frozen=True, array_like=True):
    """A row that needs a mask: as `llmd.grammar.masks.MaskRow`, for the matcher of a sequence."""

    sequence_id: int
    stop_ids: tuple[int, ...]
    new: tuple[int, ...]
    longer: bool


class Fill(msgspec.Struct, frozen=True, tag=True):
    """Fill the masks of rows, into the first places of the shared memory."""

    rows: tuple[BoundRow, ...]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The vocabulary has been taken in."""


class Compiled(msgspec.Struct, frozen=True, tag=True):
    """The grammar of a sequence is ready, or cannot be followed: then ``message`` says why."""

    sequence_id: int
    message: str = ""
    hint: str = ""


class Filled(msgspec.Struct, frozen=True, tag=True):
    """The masks are there; ``failed`` says why rows have none, by their place."""

    failed: dict[int, str]


ToGrammars = Compile | Fork | Forget | Fill
FromGrammars = Ready | Compiled | Filled
