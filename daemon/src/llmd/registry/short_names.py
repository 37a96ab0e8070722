"""Short names of repositories on the public hub, from a curated list that comes with llmd."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

import msgspec

from llmd.api.decoding import prepared

LIST = Path(__file__).with_name("short_names.toml")
LATEST = ":latest"
"""The end of a name that Ollama's clients add; the same model is meant without it."""


class ShortName(msgspec.Struct, frozen=True):
    """A name and the repository that it stands for."""

    name: str
    """``FAMILY`` or ``FAMILY:SIZE``, in lower case."""
    repo: str
    about: str
    added: date
    """When the entry was written."""


class _Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the list."""

    about: str
    added: date
    repositories: Mapping[str, str]
    """By size; the one without a size is the family's default."""


@functools.cache
def short_names() -> Mapping[str, ShortName]:
    """Return the list by name, in its order."""
    families = msgspec.convert(tomllib.loads(LIST.read_text(encoding="utf-8")), prepared(dict[str, _Family]))
    return {one.name: one for one in _entries(families)}


def short_name(text: str) -> ShortName | None:
    """Return the entry of a name, in any case and with or without ``:latest``; None: it is not a short name.

    Only names without a slash are short, so that reading other names does not read the list.
    """
    if "/" in text or "@" in text:
        return None
    return short_names().get(text.strip().lower().removesuffix(LATEST))


def repository_of(text: str) -> str:
    """Return the repository that a short name stands for, or the text itself."""
    entry = short_name(text)
    return text if entry is None else entry.repo


def spellings(name: str) -> Iterator[str]:
    """Yield what a name may be in full, the likeliest first. The list is read for the last one only."""
    yield name
    yield name.removesuffix(LATEST)
    yield repository_of(name)


def _entries(families: Mapping[str, _Family]) -> Iterator[ShortName]:
    for family, entry in families.items():
        for size, repo in entry.repositories.items():
            yield ShortName(f"{family}:{size}" if size else family, repo, entry.about, entry.added)
