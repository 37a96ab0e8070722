"""API keys, stored as digests in the configuration folder. A generated key is shown once."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import secrets
from collections.abc import Hashable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from llmd.api.decoding import prepared
from llmd.api.errors import ConfigError, NotFoundError
from llmd.config.private_file import replace_private_file

NAME_MARKS = "._-@+"
"""Characters that names of keys may have besides letters and digits: logs and headers stay readable."""

PREFIX = "llmd-"
SECRET_BYTES = 32
MIN_LEN, MAX_LEN, MIN_DIFFERENT = 24, 512, 8
STRENGTH = (
    f"a key has {MIN_LEN} to {MAX_LEN} letters, digits and other visible ASCII characters, "
    f"{MIN_DIFFERENT} of them different"
)
"""The rule for a key that a user chooses. Digests are fast to compute: only an unguessable key is safe."""

EXIT_CONFLICT = 9


class ApiKey(Struct, frozen=True):
    """The stored part of a key."""

    name: str
    sha256: str
    """A plain digest is enough: keys have 256 random bits or satisfy `STRENGTH`, too many to try them all."""
    manages: bool = False
    """Whether the key may also load, pull, remove and stop."""
    created: str = ""
    """RFC 3339."""


class KeyFile(Struct, frozen=True):
    """The keys of one daemon, in a file that only its owner can read."""

    path: Path

    def load(self) -> tuple[ApiKey, ...]:
        """Return every key; none if there is no file.

        Raises:
            ConfigError: the file cannot be read or is not in the format that `add` writes.
        """
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=prepared(tuple[ApiKey, ...]))
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(
                f"{self.path} cannot be read: {error}", hint="fix it, or move it away and create new keys"
            ) from error

    def stamp(self) -> Hashable:
        """Return what changes whenever the file is replaced or written; None if it cannot be looked at."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def add(self, name: str, *, manages: bool = False, secret: str | None = None) -> str:
        """Add ``secret``, or a newly generated key, and return it. Only its digest is stored.

        Raises:
            ConfigError: the name is taken or has other characters than letters, digits and `NAME_MARKS`, or
            ``secret`` is too weak or already added.
        """
        keys = self.load()
        if not name or not all(one.isalnum() or one in NAME_MARKS for one in name):
            raise ConfigError(
                f"{name!r} is not a valid name for a key",
                hint=f"use letters, digits and {' '.join(NAME_MARKS)}",
            )
        if any(key.name == name for key in keys):
            raise _conflict(
                f"there is already a key {name}",
                f"revoke it with `llmd keys rm {name}` or choose another name",
            )
        if secret is None:
            secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        check_strength(secret)
        if (same := find_key(keys, secret)) is not None:
            raise _conflict(f"this key already exists as {same.name}", "choose a different key for each name")
        created = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self._write([*keys, ApiKey(name, digest(secret), manages, created)])
        return secret

    def remove(self, name: str) -> None:
        """Revoke a key.

        Raises:
            NotFoundError: there is no key of that name.
        """
        keys = self.load()
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            known = ", ".join(key.name for key in keys) or "none"
            raise NotFoundError(f"there is no key {name}; keys: {known}", hint="`llmd keys list` shows them")
        self._write(left)

    def _write(self, keys: Iterable[ApiKey]) -> None:
        content = msgspec.json.format(msgspec.json.encode(list(keys)), indent=2)
        replace_private_file(self.path, content)


def check_strength(secret: str) -> None:
    """Refuse a key that could be guessed or that a header cannot carry. Errors end up in logs and omit the
    key.

    Raises:
        ConfigError: the key does not satisfy `STRENGTH`.
    """
    if not all("!" <= character <= "~" for character in secret):
        problem = "the key has spaces or characters that are not ASCII"
    elif len(secret) > MAX_LEN:
        problem = f"the key has more than {MAX_LEN} characters"
    elif len(secret) < MIN_LEN:
        problem = f"the key has {len(secret)} characters"
    elif len(set(secret)) < MIN_DIFFERENT:
        problem = f"the key has only {len(set(secret))} different characters"
    else:
        return
    raise ConfigError(problem, hint=f"{STRENGTH}; `openssl rand -hex 32` generates one")


def _conflict(message: str, hint: str) -> ConfigError:
    error = ConfigError(message, hint=hint)
    error.exit_code = EXIT_CONFLICT
    return error


def digest(secret: str) -> str:
    """Return the stored digest of a key. Invalid characters are not an error."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def find_key(keys: Iterable[ApiKey], secret: str) -> ApiKey | None:
    """Return the entry of a key, or None, in a time that does not depend on the key."""
    given, found = digest(secret), None
    for key in keys:
        if hmac.compare_digest(key.sha256, given):
            found = key
    return found
