"""What tools return, and the short answer that the guide makes of it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from guide import records
from guide.record_words import WORDS

DONE = (
    "ok", "OK", "done", "Done.", "success", "sent", "saved", "true", '{"status": "ok"}', '{"ok": true}', '{"success": true}', '{"status": "done"}', '{"status": "success"}', '{"done": true}', '{"result": "ok"}',
)  # fmt: skip
ERRORS = (
    "not found", "no connection", "timeout", "access denied", "{} not found", "unknown {}", "no {} available", "the {} is full", "invalid {}", "out of {}", "too many requests", "{} is locked", "service unavailable", "no such {}",
)  # fmt: skip
TEXTS = ("{number} degrees", "{number} km", "{word}", "{word} and {other}", "{number} {word}", "{word}, {number} degrees", "the {word} is {other}", "{place}", "{name}", "{number} euros", "{time}", "in {number} minutes", "{number}", "{number}")  # fmt: skip


def draw(random: Random) -> tuple[str, str]:
    """One result, and the sentence that tells it."""
    kind = random.choices((_object, _text, _done, _error, _list), (45, 25, 15, 8, 7))[0]
    return kind(random)


def _object(random: Random) -> tuple[str, str]:
    fields = records.draw(random)[:3]
    told = [f"the {field.key.replace('_', ' ')} is {field.shown}" for field in fields]
    sentence = _listed(told)
    return json.dumps({field.key: field.value for field in fields}), f"T{sentence[1:]}."


def _text(random: Random) -> tuple[str, str]:
    value = records.VALUES
    text = random.choice(TEXTS).format(
        number=random.choice((value["integer"], value["number"]))(random),
        word=random.choice(WORDS),
        other=random.choice(WORDS),
        place=value["place"](random),
        name=value["name"](random),
        time=value["time"](random),
    )
    return text + random.choice(("", "", ".")), f"The result is {text}."


def _done(random: Random) -> tuple[str, str]:
    return random.choice(DONE), "Done."


def _error(random: Random) -> tuple[str, str]:
    reason = random.choice(ERRORS).format(random.choice(WORDS))
    forms: tuple[Any, ...] = (
        {"error": reason},
        f"error: {reason}",
        f"Error: {reason}",
        {"status": "error", "message": reason},
    )
    form = random.choice(forms)
    return form if isinstance(form, str) else json.dumps(form), f"That failed: {reason}."


def _list(random: Random) -> tuple[str, str]:
    kind = random.choice((records.VALUES["name"], records.VALUES["place"], lambda r: r.choice(WORDS)))
    items = [kind(random) for _ in range(random.randint(2, 4))]
    return json.dumps(items), f"The results are {_listed(items)}."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
