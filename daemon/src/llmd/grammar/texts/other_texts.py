"""Write a regular expression for all texts except some."""

from __future__ import annotations

from collections.abc import Iterable

from llmd.grammar.texts.automaton import character_class

_REST = r"[\s\S]*"


def pattern_of_others(texts: Iterable[str]) -> str:
    """Return the regular expression of all whole texts except the given ones.

    It is about as long as the texts together: after each of their prefixes a text may end or differ in the
    next character.
    """
    known = set(texts)
    following: dict[str, set[str]] = {"": set()}
    for text in known:
        for end, sign in enumerate(text):
            following.setdefault(text[:end], set()).add(sign)
            following.setdefault(text[: end + 1], set())
    written: dict[str, str] = {}
    for begin in sorted(following, key=len, reverse=True):
        signs = sorted(following[begin])
        ways = [f"{character_class(sign)}{written.pop(begin + sign)}" for sign in signs]
        ways.append(f"{character_class(*signs, is_inverted=True)}{_REST}")
        written[begin] = f"(?:{'|'.join(ways)}){'' if begin in known else '?'}"
    return f"^{written['']}$"
