"""Asks servers that may not answer, or be no daemon, without waiting for long."""

from __future__ import annotations

import contextlib

import msgspec

from llmd.api.errors import LlmdError
from llmd.client import Client
from llmd.client_connection import connected
from llmd.client_errors import EXIT_REFUSED
from llmd.config import Address, Settings, TcpAddress

ANSWER_LIMIT_S = 3.0


def is_refused(address: Address) -> bool:
    """Whether nobody accepts connections at an address."""
    try:
        connected(address).close()
    except OSError:
        return True
    return False


def answer_of(address: Address) -> str | None:
    """Return the version of the daemon at an address; None if no daemon answers, in time.

    The certificate of an encrypted address is not checked: it is for other names than that of the address.
    """
    if isinstance(address, TcpAddress) and address.tls:
        return _encrypted_answer(address)
    try:
        return patient_client(str(address)).version()
    except LlmdError as error:
        return "" if is_refusal(error) else None


def _encrypted_answer(address: TcpAddress) -> str | None:
    """Ask for the version, without a key."""
    from http.client import UNAUTHORIZED, HTTPException, HTTPSConnection

    from llmd.client_tls import trusting_all

    connection = HTTPSConnection(address.host, address.port, timeout=ANSWER_LIMIT_S, context=trusting_all())
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/version")
            reply = connection.getresponse()
            body = msgspec.json.decode(reply.read(), type=dict[str, object])
        except (OSError, HTTPException, msgspec.DecodeError):
            return None
    if reply.status == UNAUTHORIZED and "error" in body:
        return ""
    return str(body["version"]) if body.get("name") == "llmd" else None


def is_refusal(error: LlmdError) -> bool:
    """Whether a daemon answered, and wants another key."""
    return error.exit_code == EXIT_REFUSED


def patient_client(host: str | None = None, settings: Settings | None = None) -> Client:
    """Return a client that gives up after `ANSWER_LIMIT_S`."""
    from llmd.config import load_settings

    known = settings or load_settings(environ={}, report=lambda _error: None)
    client = msgspec.structs.replace(known.config.client, timeout_s=ANSWER_LIMIT_S)
    config = msgspec.structs.replace(known.config, client=client)
    return Client(host, settings=msgspec.structs.replace(known, config=config))
