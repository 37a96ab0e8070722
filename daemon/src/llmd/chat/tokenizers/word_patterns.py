"""Regular expressions that split text into words before BPE merges, named after the first model to use them.

Some file formats contain the expression, others only name it.
"""

from __future__ import annotations

ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
"""Endings of English contractions."""
DIGIT, DIGITS, NUMBER = r"\p{N}", r"\p{N}{1,3}", r"\p{N}+"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def cl100k(digits: str, *, letters: str = r"\p{L}") -> str:
    """Return GPT-4's pattern: contractions, words with a leading character, numbers, symbols, spaces."""
    words = rf"{ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[{letters}]+"
    return rf"{words}|{digits}| ?[^\s{letters}\p{{N}}]+[\r\n]*|{SPACES}"


def o200k(digits: str, endings: str) -> str:
    """Return GPT-4o's pattern: a word ends before an upper-case letter that follows lower-case ones."""
    before = r"[^\r\n\p{L}\p{N}]?"
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    words = f"{before}{upper}*{lower}+{endings}|{before}{upper}+{lower}*{endings}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = cl100k(DIGITS)
"""Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", section 3.2: it extends cl100k_base."""
QWEN2 = cl100k(DIGIT)
GPT4O = o200k(DIGITS, f"{ENDINGS}?")
TEKKEN = o200k(DIGIT, "")


def _kimi() -> str:
    """Return a pattern in which Chinese characters are words of their own, and others words as in GPT-4o."""
    before, other = r"[^\r\n\p{L}\p{N}]?", r"&&[^\p{Han}]]"
    upper, lower = (
        rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{other}",
        rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{other}",
    )
    words = f"{before}{upper}*{lower}+{ENDINGS}?|{before}{upper}+{lower}*{ENDINGS}?"
    return rf"[\p{{Han}}]+|{words}|{DIGITS}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"


KIMI = _kimi()
"""Source: ``tokenization_kimi.py`` of moonshotai/Kimi-Linear-48B-A3B-Instruct, also of Kimi K2."""
