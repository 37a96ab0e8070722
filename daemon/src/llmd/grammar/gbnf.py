"""llama.cpp's GBNF as Lark. Source: the grammars/README of llama.cpp."""

from __future__ import annotations

import re

from llmd.api.errors import GrammarError

# What rule names are told apart from, in the order in which a reader tries them.
_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n\r]*)
    | (?P<quoted>"(?:\\.|[^"\\])*(?:"|\Z) | \[(?:\\.|[^\]\\])*(?:\]|\Z))
    | (?P<repeat>\{[\s\d,]*\})
    | (?P<name>[A-Za-z0-9_-]+)(?P<defines>\s*::=)?
    """,
    re.VERBOSE | re.DOTALL,
)
_CODE_POINT = re.compile(r"\\(?:\\|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_ROOT = "root"


def lark_of_gbnf(text: str) -> str:
    """The same grammar in Lark; ``root`` becomes ``start``.

    llguidance's own converter does the work. It takes rules that differ in case or dashes for one, and misreads code points
    below U+1000: rules are named anew before, and code points become the characters that they are.

    Raises:
        GrammarError: it is malformed, or names a rule that it does not define.
    """
    from llguidance.gbnf_to_lark import gbnf_to_lark

    names = _new_names(text)
    try:
        return gbnf_to_lark(_TOKEN.sub(lambda match: _rewritten(match, names), text))
    except GrammarError:
        raise
    except Exception as error:  # the converter raises Exception itself
        raise GrammarError(f"the GBNF grammar cannot be read: {error}", hint="correct it") from error


def _new_names(text: str) -> dict[str, str]:
    defined = [m["name"] for m in _TOKEN.finditer(text) if m["name"] and m["defines"]]
    if _ROOT not in defined:
        raise GrammarError("the GBNF grammar has no rule root", hint="name the rule of the whole answer root")
    return {name: _ROOT if name == _ROOT else f"r{place}" for place, name in enumerate(defined)}


def _rewritten(match: re.Match[str], names: dict[str, str]) -> str:
    if match["quoted"]:
        return _CODE_POINT.sub(_character, match["quoted"])
    if not match["name"]:
        return match[0]
    if match["name"] not in names:
        raise GrammarError(
            f"the GBNF grammar uses the rule {match['name']}, which it does not define", hint="define it"
        )
    return names[match["name"]] + (match["defines"] or "")


def _character(match: re.Match[str]) -> str:
    """A code point as itself, unless it means something where it stands."""
    digits = match[1] or match[2] or match[3]
    if digits is None:
        return match[0]
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise GrammarError(f"the GBNF grammar has {match[0]}, which is no character", hint="correct it")
    if code < 0x80:
        return f"\\x{code:02x}"
    return chr(code)
