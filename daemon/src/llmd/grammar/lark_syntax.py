"""Parse the part of Lark that one regular expression can express (`llmd.grammar.lark_pattern`).

Sources of the syntax: Lark's reference, and llguidance's documentation of its differences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from llmd.api.errors import GrammarError


class Pattern(Struct, frozen=True):
    """A regular expression."""

    regex: str


class Reference(Struct, frozen=True):
    """A reference to a rule or terminal by name."""

    name: str


class Repeat(Struct, frozen=True):
    """An expression repeated ``least`` to ``most`` times."""

    item: Expression
    least: int
    most: int | None
    """None: any number."""


class Sequence(Struct, frozen=True):
    """Expressions one after the other."""

    items: tuple[Expression, ...]


class Choice(Struct, frozen=True):
    """One of several expressions."""

    options: tuple[Expression, ...]


Expression = Pattern | Reference | Repeat | Sequence | Choice


class LarkGrammar(Struct, frozen=True):
    """A parsed grammar."""

    rules: Mapping[str, Expression]
    """Rules and terminals by name."""
    ignored: tuple[Expression, ...]
    """May occur between any two terminals."""


_STRING = r'"(?:\\.|[^"\\\n])*"i?'
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+|(?:\#|//)[^\n]*)"
    r"|(?P<head>^[?!]*[A-Za-z_][\w-]*(?:\.\s*-?\d+)?[ \t]*:)"
    rf"|(?P<range>{_STRING}\s*\.\.\s*{_STRING})|(?P<string>{_STRING})"
    r"|(?P<regex>/(?:\\.|[^/\\\n])+/[a-z]*)"
    r"|(?P<directive>%[a-z]+)|(?P<alias>->\s*[A-Za-z_][\w-]*)|(?P<name>[A-Za-z_][\w.-]*)"
    r"|(?P<times>~\s*\d+(?:\s*\.\.\s*\d+)?|\{\s*\d*\s*(?:,\s*\d*\s*)?\})|(?P<sign>[|()\[\]*+?,:])",
    re.MULTILINE,
)
_COMMON = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9A-Fa-f]",
    "INT": "[0-9]+",
    "SIGNED_INT": "[+-]?[0-9]+",
    "DECIMAL": r"(?:[0-9]+\.[0-9]*|\.[0-9]+)",
    "FLOAT": r"(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    "NUMBER": r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "SIGNED_NUMBER": r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\[^\n])*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[A-Za-z]",
    "WORD": "[A-Za-z]+",
    "CNAME": "[A-Za-z_][A-Za-z0-9_]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "SQL_COMMENT": r"--[^\n]*",
}
_QUANTIFIERS: Mapping[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_META = re.compile(r"[\\.+*?()|\[\]{}^$#&~/-]")
_FLAGS = frozenset("imsux")


class _Token(Struct, frozen=True):
    kind: str
    text: str


def read_lark(text: str) -> LarkGrammar:
    """Parse a grammar.

    Raises:
        GrammarError: it is malformed, or exceeds what regular expressions can say.
    """
    return _Reader([*_tokens(text)]).grammar()


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            line = text.count("\n", 0, place) + 1
            raise _refused(f"line {line} has {text[place : place + 12]!r}")
        kind = found.lastgroup or ""
        if kind != "space":
            yield _Token(kind, found[0])
        place = found.end()


class _Reader:
    """A recursive-descent parser over the tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._rules: dict[str, Expression] = {}
        self._ignored: list[Expression] = []

    def grammar(self) -> LarkGrammar:
        while (token := self._next()) is not None:
            if token.kind == "head":
                name = re.split(r"[.:\s]", token.text.lstrip("?!"), maxsplit=1)[0]
                self._rules[name] = self._choice()
            elif token.text == "%import":
                self._import()
            elif token.text == "%ignore":
                self._ignored.append(self._choice())
            else:
                raise _refused(f"a statement begins with {token.text!r}")
        return LarkGrammar(self._rules, tuple(self._ignored))

    def _import(self) -> None:
        library, _, name = self._expect("name").partition(".")
        names = [name] if name else self._listed()
        alias = self._accept_kind("alias")
        for one in names:
            if library != "common" or one not in _COMMON:
                raise _refused(f"it imports {library}.{one}")
            known = alias.removeprefix("->").strip() if alias else one
            self._rules[known] = Pattern(_COMMON[one])

    def _listed(self) -> list[str]:
        if not self._accept("("):
            raise _refused("an import has no names")
        names = [self._expect("name")]
        while self._accept(","):
            names.append(self._expect("name"))
        self._close(")")
        return names

    def _choice(self) -> Expression:
        self._accept("|")
        options = [self._sequence()]
        while self._accept("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Expression:
        items = []
        while (item := self._repeated()) is not None:
            items.append(item)
        self._accept_kind("alias")
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _repeated(self) -> Expression | None:
        item = self._one()
        while item is not None and (token := self._peek()) is not None:
            if token.text in _QUANTIFIERS:
                item = Repeat(item, *_QUANTIFIERS[token.text])
            elif token.kind == "times":
                item = _times(item, token.text)
            else:
                break
            self._next()
        return item

    def _one(self) -> Expression | None:
        token = self._peek()
        if token is None or token.kind in {"head", "directive", "alias"} or token.text in {"|", ")", "]"}:
            return None
        self._next()
        match token.kind:
            case "string":
                return Pattern(_literal(token.text))
            case "range":
                return Pattern(_range(token.text))
            case "regex":
                return Pattern(_regex(token.text))
            case "name":
                return Reference(token.text)
        if token.text in {"(", "["}:
            inner = self._choice()
            self._close(")" if token.text == "(" else "]")
            return inner if token.text == "(" else Repeat(inner, 0, 1)
        raise _refused(f"a rule contains {token.text!r}")

    def _peek(self) -> _Token | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _next(self) -> _Token | None:
        token = self._peek()
        self._place += 1
        return token

    def _accept(self, text: str) -> bool:
        token = self._peek()
        found = token is not None and token.text == text
        self._place += found
        return found

    def _accept_kind(self, kind: str) -> str:
        token = self._peek()
        if token is None or token.kind != kind:
            return ""
        self._place += 1
        return token.text

    def _expect(self, kind: str) -> str:
        text = self._accept_kind(kind)
        if not text:
            raise _refused(f"a {kind} is missing")
        return text

    def _close(self, bracket: str) -> None:
        if not self._accept(bracket):
            raise _refused(f"a {bracket!r} is missing")


def _times(item: Expression, text: str) -> Expression:
    """``~2``, ``~2..3``, ``{2}``, ``{2,}``, ``{,3}`` or ``{2,3}``."""
    ends = [end.strip() for end in re.split(r",|\.\.", text.strip("~{} \t"))]
    least = int(ends[0] or 0)
    return Repeat(item, least, (int(ends[1]) if ends[1] else None) if len(ends) > 1 else least)


def _literal(text: str) -> str:
    regex = escaped(_unquoted(text.removesuffix("i")))
    return f"(?i:{regex})" if text.endswith("i") else regex


def _range(text: str) -> str:
    first, last = map(_unquoted, re.findall(_STRING, text))
    if len(first) != 1 or len(last) != 1:
        raise _refused(f"the range {text} is not between two characters")
    return f"[{escaped(first)}-{escaped(last)}]"


def escaped(text: str) -> str:
    """Return a regular expression for exactly this text, on one line."""
    regex = _META.sub(r"\\\g<0>", text)
    return regex.replace("\n", r"\n").replace("\r", r"\r")


def _unquoted(text: str) -> str:
    """Return the text of a string literal. Escapes are those of JSON, and x with two digits."""
    try:
        return str(json.loads(re.sub(r"(?<!\\)((?:\\\\)*)\\x", r"\1\\u00", text)))
    except ValueError:
        raise _refused(f"{text} is not a valid string") from None


def _regex(text: str) -> str:
    body, _, flags = text[1:].rpartition("/")
    if set(flags) - _FLAGS:
        raise _refused(f"a regular expression has the flags {flags!r}")
    body = body.replace(r"\/", "/")
    return f"(?{flags}:{body})" if flags else f"(?:{body})"


def _refused(what: str) -> GrammarError:
    return GrammarError(
        f"the Lark grammar cannot be enforced: {what}",
        hint="use only rules, terminals, strings, regular expressions, %import common and %ignore",
    )
