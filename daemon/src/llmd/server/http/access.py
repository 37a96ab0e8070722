"""API keys and the rights that requests need."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from llmd.api.errors import ConfigError
from llmd.api.plugins import Right
from llmd.config.keys import ApiKey, KeyFile, find_key
from llmd.server.errors import ForbiddenError, UnauthorizedError
from llmd.server.http.guards import Peer

BEARER = "bearer "

logger = logging.getLogger(__name__)


class Access:
    """The daemon's API keys.

    The Unix socket and, unless ``require_key``, loopback need no key; other clients need one unless
    ``no_auth``. Management needs a local client or a key with that right, even with ``no_auth``.

    A changed file is read before the next request; if it is damaged, the keys stay as they were.
    """

    def __init__(self, file: KeyFile, *, no_auth: bool, require_key: bool) -> None:
        """Raises `ConfigError` if the key file cannot be read."""
        self._file = file
        self._no_auth = no_auth
        self._require_key = require_key
        self._stamp = file.stamp()
        self._keys = file.load()

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    def change(self, *, no_auth: bool, require_key: bool) -> None:
        """Change who needs a key."""
        self._no_auth, self._require_key = no_auth, require_key

    def reload(self) -> None:
        """Read the keys from the file again.

        Raises:
            ConfigError: the file cannot be read; the keys stay as they were.
        """
        self._stamp = self._file.stamp()
        before, self._keys = self._keys, self._file.load()
        _log_changes(before, self._keys)

    def admit(self, peer: Peer, headers: Mapping[str, str], right: Right) -> str:
        """Check a request's key and return its name; empty if no key was needed.

        If the daemon has no keys, any key is accepted: some clients insist on sending a dummy.

        Raises:
            UnauthorizedError: the key is missing or unknown.
            ForbiddenError: the key, or a request without one, lacks the right.
        """
        if right == "none":
            return ""
        key = self._given(peer, headers)
        trusted = self._trusts(peer)
        if key is None and not trusted and not self._no_auth:
            raise UnauthorizedError(
                "an API key is required",
                code="missing_api_key",
                hint="send it as `Authorization: Bearer KEY` or `x-api-key: KEY`; create one with `llmd keys add`",
            )
        if right == "manage" and not trusted and not (key and key.manages):
            raise _may_not_manage(key)
        return key.name if key else ""

    def may_manage(self, peer: Peer, name: str) -> bool:
        """Return whether an admitted request may manage. ``name`` is that of its key, or empty."""
        return self._trusts(peer) or any(key.manages and key.name == name for key in self._keys)

    def _trusts(self, peer: Peer) -> bool:
        return peer.is_unix or (peer.is_this_machine and not self._require_key)

    def _follow_file(self) -> None:
        """Use the keys of the file if it was changed: one that was revoked is refused at once."""
        if self._file.stamp() == self._stamp:
            return
        try:
            self.reload()
        except ConfigError as error:
            logger.warning("keys_not_reloaded", extra={"reason": error.message})

    def _given(self, peer: Peer, headers: Mapping[str, str]) -> ApiKey | None:
        self._follow_file()
        secret = secret_of(headers)
        key = find_key(self._keys, secret) if secret else None
        if key is None and secret and self._keys and not peer.is_unix:
            raise UnauthorizedError(
                "this API key is unknown",
                code="invalid_api_key",
                hint="list the names of valid keys with `llmd keys list`",
            )
        return key


def _log_changes(before: Collection[ApiKey], after: Collection[ApiKey]) -> None:
    """Log the names of keys that were added, removed, or replaced under the same name."""
    added = [key.name for key in after if key not in before]
    removed = [key.name for key in before if key not in after]
    if added or removed:
        logger.info("keys_changed", extra={"added": added, "removed": removed})


def secret_of(headers: Mapping[str, str]) -> str:
    """Return the key in a request's headers, in OpenAI's or Anthropic's form; empty if there is none."""
    bearer = headers.get("Authorization", "")
    if bearer.lower().startswith(BEARER):
        return bearer[len(BEARER) :].strip()
    return headers.get("x-api-key", "").strip()


def _may_not_manage(key: ApiKey | None) -> ForbiddenError:
    if key is None:
        return ForbiddenError(
            "management requests are accepted from this machine only",
            code="local_only",
            hint="use the Unix socket, or a key created with `llmd keys add NAME --manage`",
        )
    refused = ForbiddenError(
        f"the key {key.name} does not allow management requests",
        code="key_lacks_right",
        hint="create one that does with `llmd keys add NAME --manage`",
    )
    refused.key = key.name
    return refused
