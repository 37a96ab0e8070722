"""What the beam search of transformers found: searches over tiny models, and the committed answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

FILE = Path(__file__).parent / "expectations" / "beams.json"


Early = bool | Literal["never"]
EARLY: tuple[Early, ...] = (False, True, "never")


@dataclass(frozen=True)
class BeamCase:
    """A search after the prompt of a tiny model; fields as in `llmd.api.messages`.
    ``biases`` are summands of logits by id.
    """

    model: str
    width: int
    best: int
    max_tokens: int
    length_penalty: float = 1.0
    early_stopping: Early = False
    stop_ids: tuple[int, ...] = ()
    biases: tuple[tuple[int, float], ...] = ()


CASES = (
    BeamCase("llama3-gqa-tied", 4, 4, 40),
    BeamCase("llama3-gqa-tied", 5, 5, 24, stop_ids=(41, 96, 141)),
    BeamCase("llama3-gqa-tied", 5, 2, 24, length_penalty=-0.5, stop_ids=(41, 96, 141)),
    BeamCase("smollm", 2, 1, 60, length_penalty=0.0),
    BeamCase("phi3-window", 16, 16, 30),
    *(
        BeamCase("mistral-window", width, width, 30, penalty, early, (94, 127, 59))
        for width, penalty in ((3, 1.0), (5, 1.0), (5, 2.0), (5, 0.0))
        for early in EARLY
    ),
    *(BeamCase("gemma2", 5, 5, 20, 1.0, early, (75, 98)) for early in EARLY),
    BeamCase("glm-moe-dsa-shared", 3, 3, 24),
    BeamCase("qwen3-tied", 5, 3, 24, 1.0, "never", (97, 86), ((58, 1.5), (81, -100.0), (26, -2.0))),
    BeamCase("deepseek-v3", 4, 4, 24),
    BeamCase("qwen3-next", 4, 4, 24),
    BeamCase("kimi-linear", 3, 3, 24),
)


@dataclass(frozen=True)
class Found:
    """The answers of a case, best first: their tokens, a stop id included, and their scores."""

    tokens: list[list[int]]
    scores: list[float]


def read_found() -> tuple[list[Found], dict[str, str]]:
    """The committed answers, one for each of `CASES`, and the versions of the programs that found them."""
    content = json.loads(FILE.read_text())
    return [Found(**found) for found in content["found"]], content["versions"]


def write_found(found: list[Found], versions: dict[str, str]) -> None:
    """Commit answers."""
    lines = ",\n".join(json.dumps(asdict(one)) for one in found)
    FILE.write_text(f'{{"versions": {json.dumps(versions)}, "found": [\n{lines}\n]}}\n')
