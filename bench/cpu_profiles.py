"""The named configurations of `bench.cpu`, and warnings for overrides."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from bench.quiet import MOST_THROWN_OUT


@dataclass(frozen=True)
class Profile:
    """A pinned configuration. Every field can be overridden on the command line; the page then says so."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    """Formats of llmd with types of llama.cpp. The first is also measured with each of ``isas`` on both
    sides.
    """
    builds: tuple[str, ...]
    """Builds of llama.cpp to compare with llmd at its best."""
    isas: tuple[str, ...]
    prompt: int
    depths: tuple[int, ...]
    batches: tuple[int, ...]
    rounds: int
    steps: int
    """Tokens per sequence in a decode round."""
    threads: int
    kv: str = "f16"
    """KV dtype: f16, or int8, which is Q8_0 in llama.cpp."""

    @property
    def grown(self) -> int:
        """Tokens that a sequence may grow by: the first, then all counted, warm-up and repeated rounds."""
        return 1 + self.steps * (1 + self.rounds + MOST_THROWN_OUT)

    def beside_work(self) -> Profile:
        """Return the profile for one sequence next to a busy process: few rounds, as a side may be 100 times
        slower.
        """
        return replace(self, depths=(), batches=(1,), rounds=min(self.rounds, 3))

    def without_depth(self) -> Profile:
        """Return the profile without long sequences, with only the smallest and the largest batch."""
        return replace(self, depths=(), batches=tuple(sorted({min(self.batches), max(self.batches)})))


def processors() -> int:
    """Return the number of CPUs that this process may use."""
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
"""llama.cpp's names of KV dtypes."""
PROFILES = {profile.name: profile for profile in (QUICK, FULL)}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--profile`` and an option for each field of a profile."""
    parser.add_argument("--profile", default=QUICK.name, choices=PROFILES)
    group = parser.add_argument_group("overrides of the profile, lists with commas")
    for field in fields(Profile)[1:]:
        group.add_argument(f"--{field.name}", help=f"quick: {shown(getattr(QUICK, field.name))}")


def chosen(arguments: argparse.Namespace) -> tuple[Profile, list[str]]:
    """Return the profile and a warning for each override.

    Raises:
        ValueError: an override has the wrong form for its field.
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
    """Format a field of a profile as on the command line."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return str(value)
    return ",".join(":".join(item) if isinstance(item, tuple) else str(item) for item in value) or "none"
