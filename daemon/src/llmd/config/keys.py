"""API keys: kept as digests in a file of the configuration folder, shown to their owner once."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from llmd.api.errors import ConfigError, NotFoundError
from llmd.config.private_file import replace_private_file

PREFIX = "llmd-"
SECRET_BYTES = 32
MIN_LEN, MAX_LEN, MIN_DIFFERENT = 24, 512, 8
STRENGTH = (
    f"a key has {MIN_LEN} to {MAX_LEN} letters, digits and other visible ASCII characters, "
    f"{MIN_DIFFERENT} of them different"
)
"""What a key that a user chooses must be. Its digest is as easy to compute as that of a random one: only a key that nobody
guesses is safe.
"""

EXIT_CONFLICT = 9


class ApiKey(Struct, frozen=True):
    """What is kept of a key. ``sha256`` suffices: a key is 256 random bits, or what `STRENGTH` asks for, so that nobody can
    try them all.

    ``manages``: it may also load, pull, remove and stop. ``created`` is RFC 3339.
    """

    name: str
    sha256: str
    manages: bool = False
    created: str = ""


class KeyFile(Struct, frozen=True):
    """The keys of one daemon, in a file that its owner alone may read."""

    path: Path

    def load(self) -> tuple[ApiKey, ...]:
        """Every key; none where there is no file.

        Raises:
            ConfigError: the file is not what `add` writes.
        """
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=tuple[ApiKey, ...])
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(
                f"{self.path} cannot be read: {error}", hint="fix it, or move it away and make new keys"
            ) from error

    def add(self, name: str, *, manages: bool = False, secret: str | None = None) -> str:
        """Add ``secret``, or a key that is made here, and return it: it is not kept.

        Raises:
            ConfigError: the name is taken or has unprintable characters, or ``secret`` is too weak or there already.
        """
        keys = self.load()
        if not name.isprintable() or not name.strip():
            raise ConfigError(f"{name!r} is no name for a key", hint="use letters and digits")
        if any(key.name == name for key in keys):
            raise _conflict(f"there is a key {name} already", f"`llmd keys rm {name}` takes it back")
        if secret is None:
            secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        check_strength(secret)
        if (same := find_key(keys, secret)) is not None:
            raise _conflict(f"this key is there already, as {same.name}", "choose another one for each name")
        created = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self._write([*keys, ApiKey(name, digest(secret), manages, created)])
        return secret

    def remove(self, name: str) -> None:
        """Take a key back.

        Raises:
            NotFoundError: there is none of that name.
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
    """Refuse a key that could be guessed, or that no header can carry. It is not shown: errors end up in logs.

    Raises:
        ConfigError: it is not what `STRENGTH` says.
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
    raise ConfigError(problem, hint=f"{STRENGTH}; `openssl rand -hex 32` makes one")


def _conflict(message: str, hint: str) -> ConfigError:
    error = ConfigError(message, hint=hint)
    error.exit_code = EXIT_CONFLICT
    return error


def digest(secret: str) -> str:
    """What is kept of a key; characters that no key has are no error."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def find_key(keys: Iterable[ApiKey], secret: str) -> ApiKey | None:
    """The key that was given, in a time that does not tell how much of it was right."""
    given, found = digest(secret), None
    for key in keys:
        if hmac.compare_digest(key.sha256, given):
            found = key
    return found
