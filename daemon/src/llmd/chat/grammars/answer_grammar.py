"""The grammars of one model's answers:
the vocabulary that the engine needs, and the check of each grammar.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cached_property

from llmd.api.messages import Grammar, Vocabulary
from llmd.api.parsing import ReasoningMarks
from llmd.chat.grammars.check_messages import CheckJob
from llmd.chat.grammars.exact_text import exact_text
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.grammar.lark import after_reasoning, any_text, control_token


class ModelGrammars:
    """Checks and builds grammars for one model. Every method may block: call it in a thread.

    Without a ``checker`` grammars are not tested first: a bad grammar then affects only the calling process.
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
        # A reasoning mark that is a single token is a control token,
        # even if the tokenizer's files call it text.
        self._control_ids = tuple(sorted(one for one in specials | single if one is not None))

    @property
    def threads(self) -> Executor | None:
        """The threads in which to wait for a check; None: any thread."""
        return None if self._checker is None else self._checker.threads

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that the engine compiles grammars for; built on first use."""
        tokenizer = self._tokenizer
        return Vocabulary(
            tokens=tuple(tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)),
            special_ids=self._control_ids,
            end_ids=self._end_ids,
        )

    def check(self, grammar: Grammar) -> None:
        """Check a grammar, and build the vocabulary that the engine needs for it.

        Raises:
            GrammarError: it is malformed, too complex, or has a feature that cannot be enforced.
        """
        if self._checker is not None:
            self._checker.check(CheckJob(grammar, self._control_ids))
        _ = self.vocabulary

    def behind(
        self, grammar: Grammar | None, marks: ReasoningMarks, *, is_open: bool, budget: int | None = None
    ) -> Grammar | None:
        """Return the grammar of an answer that may begin with at most ``budget`` tokens of reasoning; None:
        no constraint.

        ``grammar`` constrains the text after the reasoning. ``is_open``: the prompt already opens the
        reasoning.
        """
        end = self.control_ids([marks.end]).get(marks.end, marks.end)
        if grammar is None and (budget is None or isinstance(end, str)):
            return None
        begin = None if is_open else self.expression(marks.begin)
        after = self.expression(marks.after)
        return after_reasoning(grammar or any_text(), begin=begin, end=end, after=after, budget=budget)

    def expression(self, text: str) -> str:
        """Return a Lark expression for exactly this text, in which control tokens are tokens."""
        single = self.control_ids([text]).get(text)
        if single is not None:
            return control_token(single)
        return exact_text(text, self._tokenizer.specials)

    def control_ids(self, marks: Sequence[str]) -> dict[str, int]:
        """Return the token ids of the marks that are control tokens, which no text matches."""
        found = {text: self._tokenizer.token_id(text) for text in marks}
        return {text: one for text, one in found.items() if one is not None and one in self._control_ids}
