"""Who may do what: API keys, and what needs none."""

from __future__ import annotations

from collections.abc import Mapping

from llmd.api.plugins import Right
from llmd.config.keys import ApiKey, KeyFile, find_key
from llmd.server.errors import ForbiddenError, UnauthorizedError
from llmd.server.http.guards import Peer

BEARER = "bearer "


class Access:
    """The keys of the daemon.

    The Unix socket and, unless ``require_key``, loopback need none; everyone else does, unless ``no_auth``. Managing
    needs this machine or a key with that right, whatever ``no_auth`` says.
    """

    def __init__(self, file: KeyFile, *, no_auth: bool, require_key: bool) -> None:
        """Raises `ConfigError` for a file that cannot be read."""
        self._file = file
        self._no_auth = no_auth
        self._require_key = require_key
        self._keys = file.load()

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    def reload(self) -> None:
        """Take the keys as they are in the file now.

        Raises:
            ConfigError: it cannot be read; the keys stay as they were.
        """
        self._keys = self._file.load()

    def admit(self, peer: Peer, headers: Mapping[str, str], right: Right) -> str:
        """The name of the key that was given; empty where none was needed.

        Where the daemon has no keys, any key will do: clients that insist on one send a dummy.

        Raises:
            UnauthorizedError: a key is missing or unknown.
            ForbiddenError: the key, or its lack, does not allow this.
        """
        if right == "none":
            return ""
        key = self._given(peer, headers)
        trusted = peer.is_unix or (peer.is_this_machine and not self._require_key)
        if key is None and not trusted and not self._no_auth:
            raise UnauthorizedError(
                "an API key is needed",
                code="missing_api_key",
                hint="send it as `Authorization: Bearer KEY` or `x-api-key: KEY`; `llmd keys add` makes one",
            )
        if right == "manage" and not trusted and not (key and key.manages):
            raise _may_not_manage(key)
        return key.name if key else ""

    def _given(self, peer: Peer, headers: Mapping[str, str]) -> ApiKey | None:
        secret = secret_of(headers)
        key = find_key(self._keys, secret) if secret else None
        if key is None and secret and self._keys and not peer.is_unix:
            raise UnauthorizedError(
                "this API key is not known",
                code="invalid_api_key",
                hint="`llmd keys list` shows the names of keys",
            )
        return key


def secret_of(headers: Mapping[str, str]) -> str:
    """The key in a request's headers, as OpenAI's or as Anthropic's clients send it; empty without one."""
    bearer = headers.get("Authorization", "")
    if bearer.lower().startswith(BEARER):
        return bearer[len(BEARER) :].strip()
    return headers.get("x-api-key", "").strip()


def _may_not_manage(key: ApiKey | None) -> ForbiddenError:
    if key is None:
        return ForbiddenError(
            "managing is for this machine alone",
            code="local_only",
            hint="use the Unix socket, or a key that manages",
        )
    return ForbiddenError(
        f"the key {key.name} may not manage",
        code="key_lacks_right",
        hint="make one with `llmd keys add NAME --manage`",
    )
