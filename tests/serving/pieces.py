"""Pieces of answers made by hand, for what is written from their parts."""

from __future__ import annotations

from llmd.api.parts import AnswerPart
from llmd.chat.answers.answer_text import AnswerToken, Piece


class MadePiece(Piece, frozen=True):
    """A piece of these parts."""

    made: tuple[AnswerPart, ...] = ()

    @property
    def parts(self) -> tuple[AnswerPart, ...]:
        return self.made


def pieces(*parts: AnswerPart, finish: str = "stop", stop: str | None = None) -> list[Piece]:
    """One piece for each part, then the last one, which is empty."""
    return [*(MadePiece("", made=(part,)) for part in parts), Piece("", finish=finish, stop=stop)]


def piece(part: AnswerPart, *tokens: AnswerToken) -> Piece:
    """A piece of one part, with the tokens that it covers."""
    return MadePiece("", tokens, made=(part,))
