"""Calls of tools as a grammar: what a family writes, in llguidance's Lark, bound to the tools that may be called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from llmd.api.messages import Grammar
from llmd.api.parsing import CallGrammar, ChoiceTerm, ListTerm, SchemaTerm, Term, TextTerm
from llmd.chat.tokenizers.special_tokens import SpecialToken, SpecialTokenSplitter
from llmd.chat.tools.choice import ToolChoice
from llmd.grammar.lark import control_token, embedded, json_value, literal, regular_expression

_ANY = r"/(.|\n)*/"


def lark_of_calls(
    form: CallGrammar,
    choice: ToolChoice,
    control_ids: Mapping[str, int],
    *,
    answer: Grammar | None = None,
    reasoning_begin: str | None = None,
) -> Grammar:
    """The grammar of an answer that calls tools, or may.

    ``control_ids`` are the marks that are control tokens. A required call comes at once. One that is the model's own
    decision is bound from its trigger on; before it, or instead of it, comes any text, or what ``answer`` binds. A text
    never begins with ``reasoning_begin``: what the model thinks is nobody's grammar.

    Raises:
        GrammarError: a schema has a feature that cannot be enforced.
    """
    writer = _Writer(control_ids)
    more = writer.more(form, parallel=choice.parallel)
    calls = f"{writer.text(form.trigger + form.opening)} {more}"
    if choice.mode == "required":
        start = [f"start: {calls}"]
    elif answer is not None:
        start = [f"start: {calls} | answer", f"answer: {embedded(answer)}"]
    else:
        kept_out = [reasoning_begin] if reasoning_begin and reasoning_begin not in control_ids else []
        start = _free_start(form, writer, more, kept_out)
    return Grammar("lark", "\n".join([*start, *writer.rules]) + "\n")


def _free_start(form: CallGrammar, writer: _Writer, more: str, kept_out: Sequence[str]) -> list[str]:
    if form.at_start:
        return _marked_by_form(form, writer, more, kept_out)
    opening = writer.text(form.opening)
    if form.trigger in writer.control_ids:
        trigger = writer.text(form.trigger)
        return [f"start: CALL_FREE ({trigger} {opening} {more})?", _free_text(kept_out)]
    before = f"call_before[suffix={literal(form.trigger)}]: CALL_FREE"
    return [f"start: call_before {opening} {more} | CALL_FREE", before, _free_text(kept_out)]


def _marked_by_form(form: CallGrammar, writer: _Writer, more: str, kept_out: Sequence[str]) -> list[str]:
    """Where calls have no mark, whatever begins like one is one.

    That beginning is one lexeme, as the text that it is told from: of two lexemes that go on, only the longer is seen.
    """
    options: list[str] = []
    beginnings: list[str] = []
    for first, *rest in form.calls:
        assert isinstance(first, str), "calls without a mark are told by the text with which they begin"
        beginnings.append(_escaped(form.trigger + form.opening + first))
        options.append(f"CALL_BEGIN{len(options)} {writer.sequence(rest)}")
    begins = [rf"CALL_BEGIN{place}: /\s*{beginning}/" for place, beginning in enumerate(beginnings)]
    after = more.removeprefix("call_one")
    free = _free_text(kept_out, beginnings)
    return [f"start: ({' | '.join(options)}) {after} | CALL_FREE", *begins, free]


def _free_text(kept_out: Sequence[str], patterns: Sequence[str] = ()) -> str:
    """A terminal for text that begins with none of these."""
    beginnings = [*map(_escaped, kept_out), *patterns]
    if not beginnings:
        return f"CALL_FREE: {_ANY}"
    return rf"CALL_FREE: {_ANY} & ~/\s*({'|'.join(beginnings)})(.|\n)*/"


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\\n", "\\n").replace("/", "\\/")


class _Writer:
    """Writes terms as expressions; ``rules`` are those that the expressions use."""

    def __init__(self, control_ids: Mapping[str, int]) -> None:
        self.control_ids = control_ids
        self._splitter = SpecialTokenSplitter(SpecialToken(text, one) for text, one in control_ids.items())
        self.rules: list[str] = []

    def more(self, form: CallGrammar, *, parallel: bool) -> str:
        """What follows the opening: one call, others where they may be, and what closes them."""
        options = " | ".join(self.sequence(call) for call in form.calls)
        self.rules.append(f"call_one: {options}")
        others = f"({self.text(form.separator)} call_one)*" if parallel else ""
        return " ".join(filter(None, ["call_one", others, self.text(form.closing)]))

    def text(self, text: str) -> str:
        """Exactly this text; its control tokens are tokens."""
        pieces = self._splitter.split(text)
        return " ".join(
            literal(piece.text) if piece.token is None else control_token(piece.token.token_id)
            for piece in pieces
        )

    def sequence(self, terms: Sequence[Term]) -> str:
        return " ".join(filter(None, map(self._term, terms)))

    def _term(self, term: Term) -> str:
        match term:
            case str():
                return self.text(term)
            case SchemaTerm(schema):
                return json_value(dict(schema))
            case TextTerm(end, pattern):
                return self._text_up_to(end, _ANY if pattern is None else regular_expression(pattern))
            case ChoiceTerm(options):
                written = [self.sequence(option) for option in options]
                group = f"({' | '.join(filter(None, written))})"
                return group if all(written) else f"{group}?"
            case ListTerm(item, separator):
                one = self.sequence(item)
                return f"({one} ({self.text(separator)} {one})*)?"

    def _text_up_to(self, end: str, text: str) -> str:
        (piece, *others) = self._splitter.split(end)
        if piece.token is not None and not others:
            return f"{text} {control_token(piece.token.token_id)}"
        name = f"call_text{len(self.rules)}"
        self.rules.append(f"{name}[suffix={literal(end)}]: {text}")
        return name
