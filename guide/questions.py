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
REFUSED = ("lacks", "unknown")  # what llmd lacks; names that it does not have
# Written after training by someone who was shown only the README: about llmd, and about what it lacks.
STRANGERS = ("strangers", "strangers-lacks")
APART = (OUTSIDE, *REFUSED, *STRANGERS, RETIRED)
EVALUATION = tuple(
    path
    for name in ("llmd", "smalltalk", "sums", "json", *APART)
    if (path := HERE / "eval" / f"{name}.jsonl").exists()
)
DEVELOPMENT = (HERE / "eval" / "development.jsonl",)
UNFAMILIAR = (HERE / "eval" / "unfamiliar.jsonl",)  # refusals of kinds that no training text has


@dataclass(frozen=True)
class Question:
    """One wording. It asks for a topic with slot values, a sum, or a JSON object; the other two are empty.

    ``accept`` names further topics whose answers are right, too. With ``refuse`` each refusal is right.
    """

    kind: str
    ask: str
    topic: str = ""
    accept: tuple[str, ...] = ()
    refuse: bool = False
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
    def topics(self) -> tuple[str, ...]:
        """Every topic whose answer is right."""
        return (self.topic, *self.accept)

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
    line["accept"] = tuple(line.get("accept", ()))
    if kind in (*REFUSED, "strangers-lacks", "unfamiliar"):
        line = {"topic": "lacks-other", **line, "refuse": True}
    if kind == OUTSIDE:
        return Question(kind, **line, topic=OUTSIDE)
    return Question(kind, **line)
