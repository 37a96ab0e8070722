"""Tool calls as a grammar in llguidance's Lark: a family's call format, restricted to the callable tools."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from llmd.api.messages import Grammar
from llmd.api.parsing import CallGrammar, ChoiceTerm, ListTerm, SchemaTerm, Term, TextTerm
from llmd.chat.grammars.exact_text import exact_text
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
    text_begin: str = "",
) -> Grammar:
    """Return the grammar of an answer that must or may call tools.

    ``control_ids`` are the marks that are control tokens. A required call comes at once. An optional call is
    constrained from its trigger on; any text may precede or replace it. With ``answer`` the answer is either
    calls or text that matches ``answer``. Free text never begins with ``reasoning_begin``: this grammar does
    not cover reasoning. With ``text_begin``, text comes after it and without calls.

    Raises:
        GrammarError: a schema has a feature that cannot be enforced.
    """
    writer = _Writer(control_ids)
    more = writer.more(form, parallel=choice.parallel)
    calls = f"{writer.text(form.trigger + form.opening)} {more}"
    before_text = writer.text(text_begin)
    if choice.mode == "required":
        start = [f"start: {calls}"]
    elif answer is not None:
        start = [f"start: {calls} | {before_text} answer", f"answer: {embedded(answer)}"]
    elif text_begin:
        start = [f"start: {calls} | {before_text} CALL_FREE", _free_text([])]
    else:
        kept_out = [reasoning_begin] if reasoning_begin and reasoning_begin not in control_ids else []
        start = _free_start(form, writer, more, kept_out)
    return Grammar("lark", "\n".join([*start, *writer.rules]) + "\n")


def _free_start(form: CallGrammar, writer: _Writer, more: str, kept_out: Sequence[str]) -> list[str]:
    if form.at_start:
        return _marked_by_form(form, writer, more, kept_out)
    opening = writer.text(form.opening)
    marks = [form.trigger.index(mark) for mark in writer.control_ids if mark in form.trigger]
    if marks:  # free text has no control tokens, so calls begin at the first; what is before it is text
        trigger = writer.text(form.trigger[min(marks) :])
        return [f"start: CALL_FREE ({trigger} {opening} {more})?", _free_text(kept_out)]
    before = f"call_before[suffix={literal(form.trigger)}]: CALL_FREE"
    return [f"start: call_before {opening} {more} | CALL_FREE", before, _free_text(kept_out)]


def _marked_by_form(form: CallGrammar, writer: _Writer, more: str, kept_out: Sequence[str]) -> list[str]:
    """Return rules for calls without a mark: text that begins like a call is a call.

    The beginning of a call is one lexeme, like the free text that it is distinguished from: of two lexemes
    that match, the lexer reports only the longer.
    """
    options: list[str] = []
    beginnings: list[str] = []
    for first, *rest in form.calls:
        assert isinstance(first, str), "calls without a mark begin with a fixed text"
        beginnings.append(_escaped(form.trigger + form.opening + first))
        options.append(f"CALL_BEGIN{len(options)} {writer.sequence(rest)}")
    begins = [rf"CALL_BEGIN{place}: /\s*{beginning}/" for place, beginning in enumerate(beginnings)]
    after = more.removeprefix("call_one")
    free = _free_text(kept_out, beginnings)
    return [f"start: ({' | '.join(options)}) {after} | CALL_FREE", *begins, free]


def _free_text(kept_out: Sequence[str], patterns: Sequence[str] = ()) -> str:
    """Return a terminal for text that begins with none of these."""
    beginnings = [*map(_escaped, kept_out), *patterns]
    if not beginnings:
        return f"CALL_FREE: {_ANY}"
    return rf"CALL_FREE: {_ANY} & ~/\s*({'|'.join(beginnings)})(.|\n)*/"


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\\n", "\\n").replace("/", "\\/")


class _Writer:
    """Writes terms as Lark expressions; ``rules`` collects the rules that they use."""

    def __init__(self, control_ids: Mapping[str, int]) -> None:
        self.control_ids = control_ids
        self._splitter = SpecialTokenSplitter(SpecialToken(text, one) for text, one in control_ids.items())
        self.rules: list[str] = []

    def more(self, form: CallGrammar, *, parallel: bool) -> str:
        """Return what follows the opening: one call, more calls if ``parallel``, and the closing text."""
        options = " | ".join(self.sequence(call) for call in form.calls)
        self.rules.append(f"call_one: {options}")
        others = f"({self.text(form.separator)} call_one)*" if parallel else ""
        return " ".join(filter(None, ["call_one", others, self.text(form.closing)]))

    def text(self, text: str) -> str:
        """Return an expression for exactly this text, in which control tokens are tokens."""
        return exact_text(text, self._splitter)

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
