"""The field ``samplers``: which samplers run, and in which order."""

from __future__ import annotations

from typing import Literal, get_args

from llmd.api.samplers import SamplerName
from llmd.requests.fields import BadRequestError, RequestFields

StageName = Literal["penalties", "dry", SamplerName]
"""What a list of samplers may contain, by llama.cpp's names."""

ALIASES: dict[str, StageName] = {
    "top-n-sigma": "top_n_sigma",
    "top-k": "top_k",
    "typical_p": "typ_p",
    "typical-p": "typ_p",
    "typical": "typ_p",
    "typ-p": "typ_p",
    "typ": "typ_p",
    "top-p": "top_p",
    "nucleus": "top_p",
    "min-p": "min_p",
    "temp": "temperature",
}
LETTERS: dict[str, StageName] = {
    "e": "penalties",
    "d": "dry",
    "s": "top_n_sigma",
    "k": "top_k",
    "y": "typ_p",
    "p": "top_p",
    "m": "min_p",
    "x": "xtc",
    "t": "temperature",
}
STAGES: tuple[StageName, ...] = ("penalties", "dry", *get_args(SamplerName))


def read_order(fields: RequestFields, name: str) -> tuple[StageName, ...] | None:
    """Read a list of names, or a string of llama.cpp's letters; None: not given.

    Raises:
        BadRequestError: a name is unknown or repeated, or the order is not possible.
    """
    value = fields.value(name)
    if value is None:
        return None
    if isinstance(value, str):
        found = [LETTERS.get(letter) for letter in value]
    elif isinstance(value, list):
        found = [_stage(item) for item in value]
    else:
        found = [None]
    stages = tuple(stage for stage in found if stage is not None)
    if len(stages) < len(found) or len(set(stages)) < len(stages):
        raise fields.invalid(name, f"a list of {', '.join(STAGES)}, each at most once")
    edits = [stage for stage in stages if stage in ("penalties", "dry")]
    if edits != sorted(edits, reverse=True) or list(stages[: len(edits)]) != edits:
        raise BadRequestError(
            f"{name}: penalties and dry edit logits before all other samplers, in this order",
            code="unsupported_value",
            param=name,
            hint="put penalties first and dry second, or leave them out to switch them off",
        )
    return stages


def _stage(name: object) -> StageName | None:
    if not isinstance(name, str):
        return None
    return ALIASES.get(name) or next((stage for stage in STAGES if stage == name), None)
