"""Compile grammars to matchers, within limits that requests cannot change."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar, Vocabulary
from llmd.grammar.lark import lark_of
from llmd.grammar.matcher import Matcher
from llmd.grammar.vocabulary import token_trie

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits

MAX_TEXT_LEN = 256 * 1024
MAX_REASON_LEN = 500
KEPT = 32
"""How many compiled grammars are cached: applications send the same few repeatedly."""

_PLACE = re.compile(r"^at \d+\(\d+\): (?:failed to compile JSON schema: )?")
_SNIPPET = re.compile(r"\n *\d+ \| ")


class GrammarCompiler:
    """Compiles grammars for one vocabulary. Not thread-safe."""

    def __init__(self, vocabulary: Vocabulary, vocab_size: int) -> None:
        """Build the token trie, which takes half a second for 150,000 tokens."""
        self._trie = token_trie(vocabulary, vocab_size)
        self._limits = _parser_limits()
        self._kept: OrderedDict[Grammar, LLMatcher] = OrderedDict()

    def compile(self, grammar: Grammar) -> Matcher:
        """Return a matcher at the start of the grammar.

        Raises:
            GrammarError: the grammar is malformed, too large, or has a feature that cannot be enforced.
        """
        compiled = self._kept.pop(grammar, None)
        if compiled is None:
            compiled = self._compile(grammar)
        self._kept[grammar] = compiled
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return Matcher(compiled.deep_copy())

    def _compile(self, grammar: Grammar) -> LLMatcher:
        from llguidance import LLMatcher

        if len(grammar.text) > MAX_TEXT_LEN:
            raise GrammarError(
                f"the grammar has {len(grammar.text)} characters, but the limit is {MAX_TEXT_LEN}",
                hint="send a smaller grammar",
            )
        compiled = LLMatcher(self._trie, lark_of(grammar), log_level=0, limits=self._limits)
        if compiled.is_error():
            raise _refusal(grammar, compiled.get_error())
        trial = compiled.deep_copy()
        trial.compute_bitmask()
        if trial.is_error():
            raise GrammarError(f"no text matches the {_NAMES[grammar.kind]}", hint="correct it")
        return compiled


def _parser_limits() -> LLParserLimits:
    """Limit masks to about 20 ms and matchers to about 50 MB; the default is ten times the lexer states."""
    from llguidance import LLParserLimits

    return LLParserLimits(max_lexer_states=25_000, verbose_errors=False)


def _refusal(grammar: Grammar, error: str) -> GrammarError:
    reason = " ".join(_SNIPPET.split(_PLACE.sub("", error))[0].split())[:MAX_REASON_LEN]
    return GrammarError(f"the {_NAMES[grammar.kind]} cannot be compiled: {reason}", hint="correct it")


_NAMES = {
    "json_schema": "JSON schema",
    "json_object": "JSON object",
    "regex": "regular expression",
    "choice": "list of choices",
    "lark": "Lark grammar",
    "gbnf": "GBNF grammar",
}
