"""What the development questions tell while training:
a score to watch, and how sure the guide may be of itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from guide.batches import padded
from guide.model import Guide
from guide.questions import DEVELOPMENT, UNFAMILIAR, Question, read
from guide.tokens import Encoder, Example
from guide.topics import REFUSALS, Book
from guide.turns import Conversation, Turn

TEMPERATURES = torch.arange(0.8, 3.0, 0.1)


def development_score(model: Guide, encoder: Encoder, book: Book) -> float:
    """Share of the questions whose answer is the likeliest token at every place,
    so that greedy decoding gives it.
    """
    outcomes = development_outcomes(model, encoder, book)
    return sum(right for _, right in outcomes) / len(outcomes)


def refused_share(model: Guide, encoder: Encoder) -> float:
    """Share of the unfamiliar questions (things that llmd lacks, and names that it does not have, of kinds
    that no training text has) whose likeliest answer begins as a refusal does.
    """
    begun = [
        _likeliest(model, [_beginning(encoder, question.ask, text) for question in read(UNFAMILIAR)])
        for text in REFUSALS
    ]
    return sum(any(ways) for ways in zip(*begun, strict=True)) / len(begun[0])


def development_outcomes(model: Guide, encoder: Encoder, book: Book) -> list[tuple[Question, bool]]:
    """Each development question, and whether its answer would come out exactly."""
    rights = _likeliest(model, _examples(encoder, book))
    return list(zip(read(DEVELOPMENT), rights, strict=True))


def development_temperature(model: Guide, encoder: Encoder, book: Book) -> float:
    """The temperature at which the answers are likeliest (Guo et al. 2017, "On
    Calibration of Modern Neural Networks").
    """
    losses = torch.zeros(len(TEMPERATURES))
    for logits, targets, own in _logits(model, _examples(encoder, book)):
        for i, temperature in enumerate(TEMPERATURES):
            tempered = logits[own].float() / temperature
            losses[i] += functional.cross_entropy(tempered, targets[own], reduction="sum").item()
    return TEMPERATURES[losses.argmin()].item()


def _examples(encoder: Encoder, book: Book) -> list[Example]:
    turns = [Turn(question.ask, question.answer(book)) for question in read(DEVELOPMENT)]
    return [encoder.example(Conversation("", (turn,)), loose=False) for turn in turns]


def _beginning(encoder: Encoder, ask: str, answer: str) -> Example:
    """A question and the beginning of its answer: the token that would end the answer is left out."""
    whole = encoder.example(Conversation("", (Turn(ask, answer),)), loose=False)
    return Example(whole.ids[:-1], whole.answer[:-1])


def _likeliest(model: Guide, examples: list[Example]) -> list[bool]:
    """For each example, whether each token of its answer is the likeliest one."""
    rights: list[bool] = []
    for logits, targets, own in _logits(model, examples):
        rights += ((logits.argmax(-1) == targets) | ~own).all(1).tolist()
    return rights


@torch.no_grad()
def _logits(model: Guide, examples: list[Example]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Logits [batch, length, vocab], the ids that should follow, and which of these are an answer's,
    both [batch, length].
    """
    for start in range(0, len(examples), 32):
        batch, device = padded(examples[start : start + 32]), model.norm.device
        ids, own = torch.from_numpy(batch.ids).to(device).long(), torch.from_numpy(batch.own).to(device)
        inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:]
        logits = model(inputs, torch.arange(inputs.numel(), device=device))
        yield logits.view(*inputs.shape, -1), targets, own[:, 1:]
