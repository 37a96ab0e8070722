"""Questions with known answers: the evaluation's and the development set's lines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guide import sums
from guide.slots import EXIT_CODES
from guide.topics import OUTSIDE, Book

HERE = Path(__file__).parent
RETIRED = "retired"  # an earlier evaluation, known to the authors of some of the training wordings
APART = (OUTSIDE, RETIRED)
EVALUATION = tuple(HERE / "eval" / f"{name}.jsonl" for name in ("llmd", "smalltalk", "sums", "json", *APART))
DEVELOPMENT = (HERE / "eval" / "development.jsonl",)


@dataclass(frozen=True)
class Question:
    """One wording. It asks for a topic with slot values, a sum, or a JSON object; the other two are empty."""

    kind: str
    ask: str
    topic: str = ""
    slots: dict[str, str] = field(default_factory=dict)
    sum: tuple[int, str, int] | None = None
    schema: dict[str, Any] | None = None
    object: dict[str, Any] | None = None

    def answer(self, book: Book) -> str:
        """The answer that the guide was taught to give."""
        if self.sum:
            return sums.solution(*self.sum)
        if self.object is not None:
            return json.dumps(self.object)
        topic = book.topics[self.topic]
        return topic.render(topic.answer, self.values)

    @property
    def values(self) -> dict[str, str]:
        """Slot values, with what goes with an exit code."""
        code = self.slots.get("exit.code")
        return {**self.slots, "exit.meaning": dict(EXIT_CODES)[code]} if code else self.slots


def read(paths: tuple[Path, ...]) -> list[Question]:
    """All questions of some files."""
    return [
        _question(path.stem, json.loads(line))
        for path in paths
        for line in path.read_text("utf-8").splitlines()
    ]


def _question(kind: str, line: dict[str, Any]) -> Question:
    if "sum" in line:
        a, sign, b = line.pop("sum").split()
        return Question(kind, **line, sum=(int(a), sign, int(b)))
    if kind == OUTSIDE:
        return Question(kind, **line, topic=OUTSIDE)
    return Question(kind, **line)
