"""Keeps evaluation wordings out of the training text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from guide.grammar import normal

RUN = 5  # words in a row that training text may not share with an evaluation wording
_SCHEMA = re.compile(r'\{\s*"type".*\}', re.DOTALL)
QUESTIONS = Path(__file__).parent / "eval"


def wordings() -> list[str]:
    """Every question of the evaluation and of the development set."""
    lines = (
        line
        for path in sorted(QUESTIONS.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    return [json.loads(line)["ask"] for line in lines]


def runs(text: str) -> Iterable[str]:
    """Every run of five words; a JSON Schema is notation, not wording, and is passed over."""
    words = normal(_SCHEMA.sub(" ", text)).split()
    return (" ".join(words[i : i + RUN]) for i in range(len(words) - RUN + 1))


class Heldout:
    """Rejects a training wording that equals a held-out one or shares five words in a row with it."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        self._whole = {normal(text) for text in texts}
        self._runs = {run for text in texts for run in runs(text)}

    def admits(self, text: str) -> bool:
        """Whether training may show this wording."""
        return normal(text) not in self._whole and not any(run in self._runs for run in runs(text))
