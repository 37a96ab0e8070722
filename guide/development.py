"""A score to watch while training: the share of development questions that get exactly the book's answer."""

from __future__ import annotations

import torch

from guide.batches import padded
from guide.model import Guide
from guide.questions import DEVELOPMENT, Question, read
from guide.tokens import Encoder
from guide.topics import Book
from guide.turns import Conversation, Turn


def development_score(model: Guide, encoder: Encoder, book: Book) -> float:
    """Share of the questions whose answer is the likeliest token at every place, so that greedy decoding gives it."""
    outcomes = development_outcomes(model, encoder, book)
    return sum(right for _, right in outcomes) / len(outcomes)


@torch.no_grad()
def development_outcomes(model: Guide, encoder: Encoder, book: Book) -> list[tuple[Question, bool]]:
    """Each development question, and whether its answer would come out exactly."""
    questions = read(DEVELOPMENT)
    turns = [Turn(question.ask, question.answer(book)) for question in questions]
    examples = [encoder.example(Conversation("", (turn,)), loose=False) for turn in turns]
    rights: list[bool] = []
    for start in range(0, len(examples), 32):
        ids, weights = padded(examples[start : start + 32])
        inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:]
        best = model(inputs, torch.arange(inputs.numel())).argmax(-1).view(targets.shape)
        rights += ((best == targets) | (weights[:, 1:] == 0)).all(1).tolist()
    return list(zip(questions, rights, strict=True))
