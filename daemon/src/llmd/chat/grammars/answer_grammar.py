"""The grammars of one model's answers: what the engine must know for them, and which it may get."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cached_property

from llmd.api.messages import Grammar, Vocabulary
from llmd.api.parsing import ReasoningMarks
from llmd.chat.grammars.check_messages import CheckJob
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.grammar.lark import after_reasoning, any_text


class ModelGrammars:
    """Everything here may block: call it in a thread.

    Without a ``checker`` grammars are not tried before: for callers who hurt nobody but themselves.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        end_ids: tuple[int, ...],
        checker: GrammarChecker | None = None,
        reasoning: ReasoningMarks | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._end_ids = end_ids
        self._checker = checker
        marks = () if reasoning is None else (reasoning.begin, reasoning.end)
        single = {tokenizer.token_id(mark) for mark in marks} - {None}
        specials = {token.token_id for token in tokenizer.vocabulary.specials}
        # Where a mark of reasoning is one token, it is the model's mark and no text, whatever the tokenizer's files say.
        self._control_ids = tuple(sorted(one for one in specials | single if one is not None))

    @property
    def threads(self) -> Executor | None:
        """Where to wait for a check; None: anywhere."""
        return None if self._checker is None else self._checker.threads

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What the engine must know of the tokens; made when it is first asked for."""
        tokenizer = self._tokenizer
        return Vocabulary(
            tokens=tuple(tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)),
            special_ids=self._control_ids,
            end_ids=self._end_ids,
        )

    def check(self, grammar: Grammar) -> None:
        """Try a grammar, and make ready what the engine needs for it.

        Raises:
            GrammarError: it is malformed, too complex, or has a feature that cannot be enforced.
        """
        if self._checker is not None:
            self._checker.check(CheckJob(grammar, self._control_ids))
        _ = self.vocabulary

    def behind(
        self, grammar: Grammar | None, marks: ReasoningMarks, *, is_open: bool, budget: int | None = None
    ) -> Grammar | None:
        """The grammar of an answer that may begin with reasoning, of at most ``budget`` tokens; None: nothing is bound.

        ``grammar`` binds what comes after. ``is_open``: the prompt has begun the reasoning already.
        """
        end = self._mark(marks.end)
        if grammar is None and (budget is None or isinstance(end, str)):
            return None
        begin = None if is_open else self._mark(marks.begin)
        return after_reasoning(grammar or any_text(), begin=begin, end=end, budget=budget)

    def control_ids(self, marks: Sequence[str]) -> dict[str, int]:
        """Those marks that are control tokens: no text matches these."""
        found = {text: self._tokenizer.token_id(text) for text in marks}
        return {text: one for text, one in found.items() if one is not None and one in self._control_ids}

    def _mark(self, text: str) -> str | int:
        return self.control_ids([text]).get(text, text)
