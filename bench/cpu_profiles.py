"""What `bench.cpu` measures under a name, and what it says when that was changed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from bench.quiet import MOST_THROWN_OUT


@dataclass(frozen=True)
class Profile:
    """A pinned configuration. Every field may be overridden on the command line, and the page then says so.

    ``pairs`` are a format of llmd and a type of llama.cpp; the first is also measured with each of ``isas`` on both sides.
    ``builds`` are those of llama.cpp that llmd at its best is measured beside. A round of decoding has ``steps`` tokens of
    each sequence. Keys and values are kept as ``kv`` says, f16 or int8, which to llama.cpp is Q8_0.
    """

    name: str
    pairs: tuple[tuple[str, str], ...]
    builds: tuple[str, ...]
    isas: tuple[str, ...]
    prompt: int
    depths: tuple[int, ...]
    batches: tuple[int, ...]
    rounds: int
    steps: int
    threads: int
    kv: str = "f16"

    @property
    def grown(self) -> int:
        """Tokens that a sequence may grow by while it is measured, after its first: in rounds that count, in the one that warms
        up, and in those that are repeated.
        """
        return 1 + self.steps * (1 + self.rounds + MOST_THROWN_OUT)

    def beside_work(self) -> Profile:
        """The same for one sequence beside another process: few rounds, since a side may take a hundred times as long."""
        return replace(self, depths=(), batches=(1,), rounds=min(self.rounds, 3))

    def without_depth(self) -> Profile:
        """The same without long sequences, and with one and the most at once alone."""
        return replace(self, depths=(), batches=tuple(sorted({min(self.batches), max(self.batches)})))


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


QUICK = Profile(
    name="quick",
    pairs=(("q4", "Q4_0"),),
    builds=("native",),
    isas=(),
    prompt=512,
    depths=(4096,),
    batches=(1, 2, 4, 8, 16),
    rounds=5,
    steps=8,
    threads=processors(),
)
FULL = replace(
    QUICK,
    name="full",
    pairs=(("q4", "Q4_0"), ("q4", "Q4_K_M"), ("q8_wide", "Q8_0"), ("bf16", "BF16")),
    builds=("native", "no-amx"),
    isas=("avx2",),
    depths=(4096, 16384),
    rounds=9,
)
KV_TYPES = {"f16": "F16", "int8": "Q8_0"}
"""How keys and values are kept, and what llama.cpp calls that."""
PROFILES = {profile.name: profile for profile in (QUICK, FULL)}


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--profile``, and an option for each field of one."""
    parser.add_argument("--profile", default=QUICK.name, choices=PROFILES)
    group = parser.add_argument_group("overrides of the profile, lists with commas")
    for field in fields(Profile)[1:]:
        group.add_argument(f"--{field.name}", help=f"quick: {shown(getattr(QUICK, field.name))}")


def chosen(arguments: argparse.Namespace) -> tuple[Profile, list[str]]:
    """The profile, and a warning for each override.

    Raises:
        ValueError: an override is not of the form that its field has.
    """
    profile, warnings = PROFILES[arguments.profile], []
    for field in fields(Profile)[1:]:
        text = getattr(arguments, field.name)
        if text is None:
            continue
        pinned = getattr(profile, field.name)
        changed: dict[str, Any] = {field.name: _parsed(field.name, text)}
        profile = replace(profile, **changed)
        warnings.append(f"--{field.name} {text}: profile `{profile.name}` has {shown(pinned)}")
    return profile, warnings


def _parsed(name: str, text: str) -> object:
    words = [word for word in text.split(",") if word]
    if name == "pairs":
        pairs = [tuple(word.split(":")) for word in words]
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError(f"--pairs {text}: write FORMAT:TYPE, such as q8:Q8_0")
        return tuple(pairs)
    if name in {"builds", "isas"}:
        return tuple(words)
    if name == "kv":
        if text not in KV_TYPES:
            raise ValueError(f"--kv {text}: choose one of {', '.join(KV_TYPES)}")
        return text
    numbers = [int(word) for word in words]
    return tuple(numbers) if name in {"depths", "batches"} else numbers[0]


def shown(value: object) -> str:
    """A field of a profile as it is written on the command line."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return str(value)
    return ",".join(":".join(item) if isinstance(item, tuple) else str(item) for item in value) or "none"
