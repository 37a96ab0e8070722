"""Convert a Lark grammar to one regular expression, which can constrain a text inside a JSON string.

Regular expressions cannot nest without limit, so a rule may contain itself only to some depth; every text
that the expression matches still follows the grammar. Lists written by recursion at one end have any length:
X = B | X A becomes B A*, after Arden 1961, "Delayed-logic and finite-state machines".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from llmd.api.errors import GrammarError
from llmd.grammar.lark_syntax import (
    Choice,
    Expression,
    LarkGrammar,
    Pattern,
    Reference,
    Repeat,
    Sequence,
    read_lark,
)

START = "start"
MAX_DEPTH = 8
MAX_PATTERN_LEN = 16 * 1024
"""The pattern has the deepest nesting that fits into this length."""
MAX_TEXT_LEN = 64 * 1024


def pattern_of_lark(text: str) -> str:
    """Return the regular expression of a grammar, nested as deeply as `MAX_DEPTH` and its size allow.

    Raises:
        GrammarError: it is malformed, too large, matches nothing, or exceeds what regular expressions can
        say.
    """
    if len(text) > MAX_TEXT_LEN:
        raise _too_large()
    found: str | None = None
    try:
        grammar = read_lark(text)
        _check_names(grammar)
        for depth in range(1, MAX_DEPTH + 1):
            pattern = _Writer(grammar, depth).pattern()
            if pattern is None:  # a grammar that matches any text does so without a rule inside itself
                raise GrammarError("no text matches the Lark grammar", hint="correct it")
            if pattern == found:
                break
            found = pattern
    except (_TooLongError, RecursionError) as error:
        if found is None:
            raise _too_large() from error
    assert found is not None
    return found


def _too_large() -> GrammarError:
    return GrammarError("the Lark grammar is too large to be enforced", hint="send a smaller grammar")


def _check_names(grammar: LarkGrammar) -> None:
    used = {START, *(name for one in (*grammar.rules.values(), *grammar.ignored) for name in _names(one))}
    unknown = sorted(used - grammar.rules.keys())
    if unknown:
        raise GrammarError(f"the Lark grammar has no rule {unknown[0]}", hint="add the rule")


def _names(expression: Expression) -> Iterable[str]:
    match expression:
        case Reference(name):
            yield name
        case Repeat(item):
            yield from _names(item)
        case Sequence(parts) | Choice(parts):
            for part in parts:
                yield from _names(part)


class _TooLongError(Exception):
    """The pattern is longer than its limit."""


class _Writer:
    """Writes expressions; None is one that matches no text, such as a rule nested in itself too often."""

    def __init__(self, grammar: LarkGrammar, depth: int) -> None:
        self._rules = {name: _without_recursion_at_ends(name, rule) for name, rule in grammar.rules.items()}
        self._depth = depth
        self._open: Counter[str] = Counter()
        self._written = 0
        self._skipped = ""
        skipped = [self._write(one) for one in grammar.ignored]
        if known := [one for one in skipped if one is not None]:
            self._skipped = f"(?:{'|'.join(known)})*"

    def pattern(self) -> str | None:
        found = self._write(Reference(START))
        return None if found is None else self._skipped + found

    def _write(self, expression: Expression) -> str | None:
        self._count(1)  # expressions that write nothing take time, too
        match expression:
            case Pattern(regex):
                return self._terminal(f"(?:{regex})")
            case Reference(name):
                return self._referred(name)
            case Repeat(item, least, most):
                return self._repeated(item, least, most)
            case Sequence(items):
                written = [self._write(item) for item in items]
                known = [one for one in written if one is not None]
                return "".join(known) if len(known) == len(written) else None
            case Choice(options):
                known = [one for one in map(self._write, options) if one is not None]
                return f"(?:{'|'.join(known)})" if known else None

    def _terminal(self, regex: str) -> str:
        """Append ignored text to a terminal, but not to the parts of one."""
        written = regex if any(name.isupper() for name in self._open) else regex + self._skipped
        self._count(len(written))
        return written

    def _count(self, written: int) -> None:
        self._written += written
        if self._written > MAX_PATTERN_LEN:
            raise _TooLongError

    def _referred(self, name: str) -> str | None:
        if self._open[name] >= self._depth:
            return None
        begins_terminal = name.isupper() and not any(one.isupper() for one in self._open)
        self._open[name] += 1
        written = self._write(self._rules[name])
        self._open[name] -= 1
        if not self._open[name]:
            del self._open[name]
        return self._terminal(written) if begins_terminal and written is not None else written

    def _repeated(self, item: Expression, least: int, most: int | None) -> str | None:
        written = self._write(item)
        if written is None:
            return "" if least == 0 else None
        return f"(?:{written}){{{least},{'' if most is None else most}}}"


def _without_recursion_at_ends(name: str, rule: Expression) -> Expression:
    """Rewrite X = B | X A | C X as C* B A*."""
    options = rule.options if isinstance(rule, Choice) else (rule,)
    itself = Reference(name)
    split = [option.items if isinstance(option, Sequence) else (option,) for option in options]
    bases = [items for items in split if items and itself not in (items[0], items[-1])]
    heads = [items[:-1] for items in split if len(items) > 1 and items[-1] == itself != items[0]]
    tails = [items[1:] for items in split if len(items) > 1 and items[0] == itself]
    bases += [items for items in split if not items]
    if not heads and not tails:
        return rule
    parts = (_any_of(heads), _one_of(bases), _any_of(tails))
    return Sequence(tuple(part for part in parts if part is not None))


def _one_of(options: list[tuple[Expression, ...]]) -> Expression:
    return Choice(tuple(Sequence(items) for items in options))


def _any_of(options: list[tuple[Expression, ...]]) -> Expression | None:
    return Repeat(_one_of(options), 0, None) if options else None
