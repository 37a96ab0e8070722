"""Score the built-in model on wordings that it was not trained on: ``python -m guide.evaluate``.

Prints each score with its counts and writes guide/evaluation.json.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from guide.questions import APART, EVALUATION, Question, read
from guide.scoring import is_right, refuses
from guide.tool_questions import ToolQuestion, read_tool_questions
from guide.topics import Book, load
from llmd import Engine
from llmd.builtin.guide import guide_directory

RESULT = Path(__file__).parent / "evaluation.json"
MAX_TOKENS = 160


@dataclass(frozen=True)
class Score:
    """Right answers out of all."""

    right: int
    asked: int

    def __str__(self) -> str:
        return f"{self.right} of {self.asked}, {100 * self.right / max(1, self.asked):.1f} %"


@dataclass(frozen=True)
class Wrong:
    """A question that was answered wrongly."""

    kind: str
    ask: str
    expected: str
    answer: str


def score(
    questions: Sequence[Question], answers: Sequence[str], book: Book
) -> tuple[dict[str, Score], list[Wrong]]:
    """Scores by kind, "total" of all but those scored apart, and "timid"; and the wrong answers."""
    rights = [is_right(question, answer, book) for question, answer in zip(questions, answers, strict=True)]

    def over(chosen: Callable[[Question], bool]) -> Score:
        picked = [right for question, right in zip(questions, rights, strict=True) if chosen(question)]
        return Score(sum(picked), len(picked))

    kinds = dict.fromkeys(question.kind for question in questions)
    scores = {kind: over(lambda question, kind=kind: question.kind == kind) for kind in kinds}  # type: ignore[misc]
    scores["total"] = over(lambda question: question.kind not in APART)
    scores["timid"] = _timid(questions, answers, book)
    triples = zip(questions, answers, rights, strict=True)
    return scores, [Wrong(q.kind, q.ask, q.answer(book), answer) for q, answer, right in triples if not right]


def _timid(questions: Sequence[Question], answers: Sequence[str], book: Book) -> Score:
    """Of the questions that have another answer, those that were answered by a refusal."""
    known = [
        answer
        for question, answer in zip(questions, answers, strict=True)
        if question.topic and not question.refuse and not book.topics[question.topic].refuses
    ]
    return Score(sum(refuses(answer, book) for answer in known), len(known))


def score_tools(
    questions: Sequence[ToolQuestion], answers: Sequence[str]
) -> tuple[dict[str, Score], list[Wrong]]:
    """Scores of requests with tools by kind, and the wrong answers. They are not in the total."""
    rights = [question.is_right(answer) for question, answer in zip(questions, answers, strict=True)]
    scores: dict[str, Score] = {}
    for kind in dict.fromkeys(question.kind for question in questions):
        picked = [right for question, right in zip(questions, rights, strict=True) if question.kind == kind]
        scores[kind] = Score(sum(picked), len(picked))
    triples = zip(questions, answers, rights, strict=True)
    return scores, [Wrong(q.kind, q.ask, q.expected, answer) for q, answer, right in triples if not right]


def report(scores: dict[str, Score], wrong: list[Wrong], weights: Path) -> None:
    """Print the scores and save them with the digest of the weights that they belong to."""
    for kind, counts in scores.items():
        print(f"{kind:>12}: {counts}")
    content = {
        "weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "scores": {kind: asdict(counts) for kind, counts in scores.items()},
        "wrong": [asdict(answer) for answer in wrong],
    }
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    questions, tool_questions, book = read(EVALUATION), read_tool_questions(), load()
    with Engine.load("guide") as engine, ThreadPoolExecutor(max_workers=8) as pool:

        def ask(prompt: str | list[dict[str, str]]) -> str:
            return engine.generate(prompt, max_tokens=MAX_TOKENS, temperature=0.0).text

        answers = list(pool.map(ask, [question.ask for question in questions]))
        tool_answers = list(pool.map(ask, [question.messages for question in tool_questions]))
    scores, wrong = score(questions, answers, book)
    tool_scores, tool_wrong = score_tools(tool_questions, tool_answers)
    report({**scores, **tool_scores}, [*wrong, *tool_wrong], guide_directory() / "model.safetensors")


if __name__ == "__main__":
    main()
