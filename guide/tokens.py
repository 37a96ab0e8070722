"""The guide's tokenizer and chat format: byte-level BPE trained on the corpus, digits one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from guide.turns import Conversation

SYSTEM, USER, ASSISTANT, END = "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"
SPECIAL = (END, SYSTEM, USER, ASSISTANT)
CHAT_TEMPLATE = (Path(__file__).parent / "chat_template.jinja").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Example:
    """Token ids of one conversation; ``answer[i]`` says that token i is the guide's own."""

    ids: list[int]
    answer: list[bool]


def train(conversations: Iterable[Conversation], vocab: int) -> Tokenizer:
    """A tokenizer of at most ``vocab`` tokens; the special ones have the first ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            # A name is the same tokens after a space and after a quote, so that it is easy to copy.
            pre_tokenizers.Split(Regex(" (?=[A-Z])"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(conversations), trainer)
    return tokenizer


class Encoder:
    """Turns conversations into token ids. Questions are sometimes cut into smaller tokens than need be (BPE
    dropout, Provilkov et al. 2020), so that a misspelt word still looks like its neighbours.
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float = 0.0) -> None:
        self._plain = tokenizer
        self._loose = Tokenizer.from_str(tokenizer.to_str())
        self._loose.model.dropout = dropout or None
        self._special = {token: SPECIAL.index(token) for token in SPECIAL}

    def example(
        self, conversation: Conversation, *, loose: bool, longest_answer: int | None = None
    ) -> Example:
        """Ids of a whole conversation; ``loose`` cuts questions with dropout, if their answers are recited:
        what is copied into an answer has the same tokens in both. ``longest_answer`` ends the conversation
        early inside its last answer, if that is recited.
        """
        ids: list[int] = []
        answer: list[bool] = []

        def say(role: str, text: str, *, own: bool = False, loosely: bool = False) -> None:
            tokenizer = self._loose if loosely else self._plain
            body = [*tokenizer.encode(text).ids, self._special[END]]
            ids.extend((self._special[role], *body))
            answer.extend((False, *(own for _ in body)))

        if conversation.system:
            say(SYSTEM, conversation.system)
        for turn in conversation.turns:
            say(USER, turn.question, loosely=loose and turn.recited)
            say(ASSISTANT, turn.answer, own=True)
        last = conversation.turns[-1]
        own = len(self._plain.encode(last.answer).ids) + 1
        kept = len(ids) - (max(0, own - longest_answer) if longest_answer and last.recited else 0)
        return Example(ids[:kept], answer[:kept])

    def prompt(self, question: str) -> list[int]:
        """Ids of one question, ready for the answer."""
        return [
            self._special[USER],
            *self._plain.encode(question).ids,
            self._special[END],
            self._special[ASSISTANT],
        ]


def _texts(conversations: Iterable[Conversation]) -> Iterable[str]:
    for conversation in conversations:
        yield conversation.system
        for turn in conversation.turns:
            yield from (turn.question, turn.answer)
