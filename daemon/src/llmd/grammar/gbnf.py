"""Convert llama.cpp's GBNF to Lark. Source: grammars/README of llama.cpp."""

from __future__ import annotations

import re

from llmd.api.errors import GrammarError

# Tokens, in the order in which they are tried; only names are rewritten.
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
    """Convert a grammar to Lark; ``root`` becomes ``start``.

    llguidance's converter does most of the work, but it confuses rules that differ only in case or dashes and
    misreads code points below U+1000. So rules are renamed first, and escaped code points become plain
    characters.

    Raises:
        GrammarError: it is malformed, or uses a rule that it does not define.
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
        raise GrammarError(
            "the GBNF grammar has no rule root", hint="add a rule named root for the whole answer"
        )
    return {name: _ROOT if name == _ROOT else f"r{place}" for place, name in enumerate(defined)}


def _rewritten(match: re.Match[str], names: dict[str, str]) -> str:
    if match["quoted"]:
        return _CODE_POINT.sub(_character, match["quoted"])
    if not match["name"]:
        return match[0]
    if match["name"] not in names:
        raise GrammarError(
            f"the GBNF grammar uses the rule {match['name']}, which it does not define",
            hint="define the rule",
        )
    return names[match["name"]] + (match["defines"] or "")


def _character(match: re.Match[str]) -> str:
    """Return an escaped code point as a character; ASCII stays escaped, since it may have a meaning."""
    digits = match[1] or match[2] or match[3]
    if digits is None:
        return match[0]
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise GrammarError(f"the GBNF grammar has {match[0]}, which is not a character", hint="correct it")
    if code < 0x80:
        return f"\\x{code:02x}"
    return chr(code)
