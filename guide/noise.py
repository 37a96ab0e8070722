"""How people really type: other words around, typos, capitals, missing marks."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from guide.grammar import tidy
from guide.slots import invented
from guide.topics import Book

SMALL_WORDS = frozenset(
    "a an the to i my is of do does in on it for me please with this that can you some how what".split()
)
FILLERS = """
    really just actually maybe then still even again now here quickly somehow perhaps also only simply
    always never usually anyway basically probably exactly properly suddenly finally ever already soon
    today tonight yesterday tomorrow nicely slowly gladly honestly sadly possibly certainly personally
    normally currently kindly together alone well instead else otherwise though although because since
    while whenever nevertheless besides meanwhile further
""".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NEIGHBOURS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def wrap(text: str, book: Book, random: Random) -> str:
    """Put a sentence without meaning before or after, now and then."""
    if random.random() < 0.22:
        text = f"{_around(book, 'before', random)} {text}"
    if random.random() < 0.18:
        text = f"{text}{random.choice(('', '', ',', '?', '.', ';'))} {_around(book, 'after', random)}"
    return tidy(text)


def spoil(text: str, kept: Iterable[str], random: Random) -> str:
    """Drop, insert, swap and misspell words, then choose capitals and marks;
    words with a value of ``kept`` stay.
    """
    words = text.split()
    safe = [not any(value in word for value in kept if value) for word in words]
    for change, chance in (
        (_drop, 0.15),
        (_insert, 0.15),
        (_swap, 0.05),
        (_replace, 0.06),
        (_hide, 0.06),
        (_misspell, 0.16),
    ):
        if random.random() < chance:
            words, safe = change(words, safe, random)
    return _dress(words, safe, random)


def _around(book: Book, side: str, random: Random) -> str:
    return random.choice(book.around[side]).sample(random, lambda _: invented(random))


Words = tuple[list[str], list[bool]]


def _drop(words: list[str], safe: list[bool], random: Random) -> Words:
    kept = [i for i, word in enumerate(words) if word not in SMALL_WORDS or random.random() < 0.6]
    return ([words[i] for i in kept], [safe[i] for i in kept]) if len(kept) > 1 else (words, safe)


def _insert(words: list[str], safe: list[bool], random: Random) -> Words:
    place = random.randint(0, len(words))
    word = random.choice(FILLERS) if random.random() < 0.6 else invented(random)
    return [*words[:place], word, *words[place:]], [*safe[:place], True, *safe[place:]]


def _swap(words: list[str], safe: list[bool], random: Random) -> Words:
    place = random.randrange(len(words))
    order = [
        *range(place),
        *reversed(range(place, min(place + 2, len(words)))),
        *range(place + 2, len(words)),
    ]
    return [words[i] for i in order], [safe[i] for i in order]


def _replace(words: list[str], safe: list[bool], random: Random) -> Words:
    """An unknown word in the place of a small one: the reader must lean on the others."""
    places = [i for i, word in enumerate(words) if word in SMALL_WORDS]
    if places:
        words = list(words)
        words[random.choice(places)] = invented(random)
    return words, safe


def _hide(words: list[str], safe: list[bool], random: Random) -> Words:
    """An unknown word in the place of a longer one: the reader must not depend on any single word."""
    places = [i for i, word in enumerate(words) if safe[i] and word not in SMALL_WORDS]
    if len(places) > 3:
        words = list(words)
        words[random.choice(places)] = invented(random)
    return words, safe


def _misspell(words: list[str], safe: list[bool], random: Random) -> Words:
    places = [i for i, word in enumerate(words) if safe[i] and len(word) > 3 and word.isalpha()]
    for i in random.sample(places, min(len(places), random.choice((1, 1, 1, 2)))):
        words = [*words[:i], _typo(words[i], random), *words[i + 1 :]]
    return words, safe


def _typo(word: str, random: Random) -> str:
    i = random.randrange(len(word) - 1)
    kind = random.randrange(5)
    if kind == 0:
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    if kind == 1:
        return word[:i] + word[i + 1 :]
    if kind == 2:
        return word[: i + 1] + word[i:]
    row = next((row for row in NEIGHBOURS if word[i] in row), LETTERS)
    near = (
        row[max(0, min(len(row) - 1, row.index(word[i]) + random.choice((-1, 1))))] if word[i] in row else "e"
    )
    return word[:i] + near + word[i + 1 :] if kind == 3 else word[: i + 1] + near + word[i + 1 :]


def _dress(words: list[str], safe: list[bool], random: Random) -> str:
    style = random.random()
    if style < 0.5:
        words = [_sentence_case(word, first=i == 0) if safe[i] else word for i, word in enumerate(words)]
    elif style < 0.54:
        words = [word.upper() if safe[i] else word for i, word in enumerate(words)]
    elif style < 0.57:
        words = [word.capitalize() if safe[i] else word for i, word in enumerate(words)]
    text = " ".join(words)
    if random.random() < 0.15:
        text = text.replace("'", "")
    return (
        text + random.choice(("?", "?", "?", "", "", "", ".", "!", "??", " ?", "..."))
        if text[-1].isalnum()
        else text
    )


def _sentence_case(word: str, *, first: bool) -> str:
    if word.startswith("i'") or word == "i":
        return "I" + word[1:]
    return word[:1].upper() + word[1:] if first and word[0].islower() else word
