"""Sums, differences and products of small numbers. Some pairs of operands are never trained on."""

from __future__ import annotations

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
    """The guide's answer; a product counts up in steps, so that it is computed and not remembered."""
    if sign == "*":
        steps = " ".join(str(b * i) for i in range(1, a + 1))
        return f"{a} * {b}: {steps}. {a} * {b} = {a * b}." if a > 1 else f"{a} * {b} = {a * b}."
    return f"{a} {sign} {b} = {a + b if sign == '+' else a - b}."


def pair(random: Random) -> tuple[int, str, int]:
    """Operands that training may show."""
    while True:
        sign = random.choices("+-*", (3, 3, 2))[0]
        a, b = random.randint(0, LARGEST[sign]), random.randint(0, LARGEST[sign])
        if not held_out(a, sign, b):
            return a, sign, b


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
