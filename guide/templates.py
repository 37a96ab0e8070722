"""Which training template, if any, could have made a wording."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from guide.candidates import Candidates
from guide.grammar import SLOT_REGEX, Pattern, normal, parse
from guide.tools import POLITE, load_families
from guide.topics import KINDS, Book
from guide.unreal import UNREAL_REGEX

HOLE = "\0"
# An unreal name is one word in the expressions, which replaces it in a text: the lists of names are long.
STAND_INS = {kind: f"zz{kind}" for kind in UNREAL_REGEX}
SLOTS = SLOT_REGEX | {kind: f" ?{word} ?" for kind, word in STAND_INS.items()}


class Templates:
    """All templates of a book and of the tools, which match normal forms."""

    def __init__(self, book: Book) -> None:
        self._unreal = {kind: re.compile(regex) for kind, regex in UNREAL_REGEX.items()}
        self._kinds = [_of_topics(book, kind) for kind in KINDS]
        self._kinds.append(_of_tools())

    def match(self, text: str) -> str | None:
        """Name of a topic one of whose templates can make the text, whatever its capitals and marks."""
        plains = list(self._named(normal(text)))
        found = (kind.match(plain) for kind in self._kinds for plain in plains)
        return next((name for name in found if name), None)

    def _named(self, plain: str) -> Iterator[str]:
        """The text, and the text with a stand-in for each part that may be an unreal name."""
        yield plain
        words = plain.split()
        for start in range(len(words)):
            for end in range(start + 1, min(start + 4, len(words)) + 1):
                name = " ".join(words[start:end])
                for kind, expression in self._unreal.items():
                    if expression.fullmatch(name):
                        yield " ".join([*words[:start], STAND_INS[kind], *words[end:]])


class _Kind:
    """Patterns of one kind, each with its topic and its slots, and the frames that they are put in."""

    def __init__(
        self, words: Sequence[tuple[str, Pattern, Mapping[str, str]]], frames: Iterable[Pattern]
    ) -> None:
        self._words = words
        self._candidates = Candidates([pattern for _, pattern, _ in words], [slots for _, _, slots in words])
        self._compiled = cache(self._compile)
        self._frames = [_Frame(frame) for frame in frames]

    def match(self, text: str) -> str | None:
        """The topic of the first words that make the text, in a frame or, without frames, alone."""
        holes = {hole for frame in self._frames for hole in frame.holes(text)} if self._frames else {text}
        found = (number for hole in sorted(holes) for number in self._that_match(hole))
        number = next(found, None)
        return None if number is None else self._words[number][0]

    def _that_match(self, text: str) -> Iterator[int]:
        candidates = self._candidates.of(text)
        return (number for number in candidates if self._compiled(number).fullmatch(text))

    def _compile(self, number: int) -> re.Pattern[str]:
        _, pattern, slots = self._words[number]
        return re.compile(pattern.regex(slots=slots))


class _Frame:
    """A sentence around a hole: what may stand before it, and what after it."""

    def __init__(self, frame: Pattern) -> None:
        source = frame.regex(HOLE, SLOTS).removeprefix("(?:").removesuffix(")")
        before, hole, after = source.partition(HOLE)
        if not hole or HOLE in after:
            raise ValueError(f"a frame needs one @ outside of choices: {source}")
        self._before, self._after = re.compile(before), re.compile(after)

    def holes(self, text: str) -> Iterator[str]:
        """Each part of the text that this frame may surround."""
        cuts = [0, *(space.end() for space in re.finditer(" ", text)), len(text)]
        starts = [cut for cut in cuts if self._before.fullmatch(text[:cut])]
        ends = [cut for cut in cuts if self._after.fullmatch(text[cut:])]
        yield from (text[start:end].strip() for start in starts for end in ends if start < end)


def _of_topics(book: Book, kind: str) -> _Kind:
    words = [
        (topic.name, pattern, SLOTS)
        for topic in book.topics.values()
        for pattern in topic.wordings.get(kind, ())
    ]
    return _Kind(words, dict.fromkeys(book.frames.get(kind, ())))


def _of_tools() -> _Kind:
    words = [
        (family.id, pattern, family.slot_regexes()) for family in load_families() for pattern in family.asks
    ]
    return _Kind(words, [parse(form.replace("{}", "@"), {}) for form in ("{}", *POLITE)])
