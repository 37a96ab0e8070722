"""The list of known plugins: a TOML file that comes with llmd, or another one in the same format."""

from __future__ import annotations

import datetime as dt
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import msgspec

from llmd.api.errors import ConfigError, NotFoundError

SHIPPED = Path(__file__).with_name("known_plugins.toml")
TIMEOUT_S = 20.0
MAX_BYTES = 4 << 20


class IndexEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One known plugin."""

    name: str
    """Its distribution."""
    summary: str
    provides: tuple[str, ...]
    """Kinds."""
    install: str
    """What to give to `llmd plugins install`."""
    added: dt.date
    """Day on which someone installed and checked it."""
    source: str = ""
    """Where its source is."""

    def matches(self, word: str) -> bool:
        """Whether a word is part of the entry; upper and lower case are the same."""
        text = " ".join((self.name, self.summary, *self.provides))
        return word.lower() in text.lower()


class PluginIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    plugins: tuple[IndexEntry, ...] = ()


def read_index(where: str = "") -> PluginIndex:
    """Read the list from a path or an ``http(s)`` URL; empty: the list that comes with llmd.

    Raises:
        NotFoundError: there is no such file, or the URL cannot be fetched.
        ConfigError: it has another format; the message names the field.
    """
    place = where or str(SHIPPED)
    content = _fetched(place) if place.startswith(("http://", "https://")) else _read(place)
    try:
        return msgspec.toml.decode(content, type=PluginIndex)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{place} is not a list of plugins: {error}",
            hint=f"write it like {SHIPPED}, with [[plugins]] for each",
        ) from error


def search(index: PluginIndex, words: Iterable[str]) -> list[IndexEntry]:
    """Return the entries that contain all words, by name."""
    wanted = tuple(words)
    found = (one for one in index.plugins if all(one.matches(word) for word in wanted))
    return sorted(found, key=lambda one: one.name)


def _read(path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}", hint="check the path") from error


def _fetched(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:  # noqa: S310 - http and https only
            content: bytes = reply.read(MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise NotFoundError(f"{url} cannot be fetched: {reason}", hint="check the URL") from error
    return content
