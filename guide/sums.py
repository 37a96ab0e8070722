"""Sums, differences and products of small numbers. Some pairs of operands are never trained on."""

from __future__ import annotations

import re
from random import Random
from zlib import crc32

LARGEST = {"+": 50, "-": 50, "*": 12}
WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
SPOKEN = {
    "+": ("plus", "+", " + ", "and", "added to"),
    "-": ("minus", "-", " - ", "less", "take away"),
    "*": ("times", "*", " * ", "x", "multiplied by", "×"),
}  # fmt: skip
FRAMES = (
    "@", "@", "@", "@ =", "@=", "what is @", "what's @", "how much is @", "compute @", "calculate @", "what does @ make", "@ is", "@ equals", "@ makes", "add up @", "solve @",
    "can you compute @", "what do you get for @", "please calculate @", "tell me @", "give me @", "do you know what @ is", "i need @", "result of @", "quick: @", "what would @ be",
    "how many are @", "work out @", "what's the result of @", "what number is @", "evaluate @", "math: @", "@ gives what", "if i have @ what do i get", "could you work out @ for me",
)  # fmt: skip
STORIES = {
    "+": ("the sum of {a} and {b}", "add {a} and {b}", "add {b} to {a}", "{a} apples and {b} more apples", "{a} increased by {b}", "the total of {a} and {b}", "i have {a} and get {b} more", "sum {a} {b}", "put {a} and {b} together"),
    "-": ("the difference of {a} and {b}", "subtract {b} from {a}", "take {b} from {a}", "{a} apples without {b}", "{a} decreased by {b}", "{a} reduced by {b}", "i had {a} and lost {b}", "{b} subtracted from {a}", "remove {b} from {a}"),
    "*": ("the product of {a} and {b}", "multiply {a} by {b}", "multiply {a} and {b}", "{a} boxes of {b} eggs", "{a} times the number {b}", "{a} groups of {b}", "{a} multiplied with {b}", "{a} rows of {b}"),
}  # fmt: skip


def held_out(a: int, sign: str, b: int) -> bool:
    """Whether training never shows this pair, in either order for + and *."""
    low, high = (a, b) if sign == "-" else sorted((a, b))
    return crc32(f"{low} {sign} {high}".encode()) % 10 == 0


def solution(a: int, sign: str, b: int) -> str:
    """The guide's answer, worked in steps so that it is computed and not remembered: a product counts up, a sum or
    difference takes tens before ones, a negative difference is turned around.
    """
    if sign == "*":
        steps = " ".join(str(b * i) for i in range(1, a + 1))
        return f"{a} * {b}: {steps}. {a} * {b} = {a * b}." if a > 1 else f"{a} * {b} = {a * b}."
    result = a + b if sign == "+" else a - b
    if sign == "-" and a < b:
        return f"{_steps(b, '-', a)}{b} - {a} = {-result}, so {a} - {b} = {result}."
    return f"{_steps(a, sign, b)}{a} {sign} {b} = {result}."


def _steps(a: int, sign: str, b: int) -> str:
    tens, ones = b - b % 10, b % 10
    if not tens or not ones:
        return ""
    between = a + tens if sign == "+" else a - tens
    return f"{a} {sign} {tens} = {between}, {between} {sign} {ones} = {between + ones if sign == '+' else between - ones}. "


def pair(random: Random) -> tuple[int, str, int]:
    """Operands that training may show, in the question and in every step of the answer."""
    while True:
        sign = random.choices("+-*", (3, 3, 2))[0]
        a, b = random.randint(0, LARGEST[sign]), random.randint(0, LARGEST[sign])
        if not any(held_out(*shown) for shown in shown_pairs(a, sign, b)):
            return a, sign, b


def shown_pairs(a: int, sign: str, b: int) -> list[tuple[int, str, int]]:
    """Every pair of operands that a question and its answer hold."""
    equations = re.findall(r"(\d+) ([-+*]) (\d+) =", solution(a, sign, b))
    return [(a, sign, b), *((int(left), mark, int(right)) for left, mark, right in equations)]


def question(a: int, sign: str, b: int, random: Random) -> str:
    """One wording of a sum."""
    left, right = _spoken(a, b, random)
    if random.random() < 0.25:
        body = random.choice(STORIES[sign]).format(a=left, b=right)
    else:
        sign_text = random.choice(SPOKEN[sign])
        space = "" if sign_text in "+-*×x" and random.random() < 0.6 else " "
        body = f"{left}{space}{sign_text}{space}{right}"
    return random.choice(FRAMES).replace("@", " ".join(body.split()))


def _spoken(a: int, b: int, random: Random) -> tuple[str, str]:
    if max(a, b) < len(WORDS) and random.random() < 0.25:
        return WORDS[a], WORDS[b]
    return str(a), str(b)
