"""The result of a check, and what checks look at."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from llmd.api.errors import ConfigError
from llmd.config import Directories, Settings, load_settings

TEST_ROOT = "LLMD_TEST_ROOT"
"""Environment variable for tests: a directory with the ``proc`` and ``sys`` of another machine."""

Status = Literal["ok", "warn", "fail"]


class Check(msgspec.Struct, frozen=True):
    """The result of one check."""

    id: str
    status: Status
    seen: str
    fix: str = ""
    """What to do; commands that can be typed as they are stand between backticks."""


class Surroundings(msgspec.Struct, frozen=True):
    """What checks look at: this process's environment, and the settings as far as they are right."""

    environ: Mapping[str, str]
    settings: Settings
    errors: tuple[ConfigError, ...]
    """What is wrong with other settings."""
    root: Path = Path("/")
    """Directory that contains ``proc`` and ``sys``."""
    now: float = 0.0
    """Seconds since 1970."""

    @property
    def directories(self) -> Directories:
        return self.settings.directories


def surroundings(environ: Mapping[str, str] = os.environ) -> Surroundings:
    """Return those of this process. Wrong settings are no error: the others are used."""
    errors: list[ConfigError] = []
    settings = load_settings(environ=environ, report=errors.append)
    root = Path(environ.get(TEST_ROOT) or "/")
    return Surroundings(environ, settings, tuple(errors), root, time.time())


def quoted(path: Path) -> str:
    """Write a path for a shell."""
    return shlex.quote(str(path))


def worst(checks: Iterator[Check], otherwise: Check) -> Iterator[Check]:
    """Yield the checks, or another one if there are none."""
    found = list(checks)
    yield from found or [otherwise]
