"""The running daemon: whether it answers, accepts the key, has this version; and its log."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from llmd.api.byte_size import format_bytes
from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.cli.doctor.check import Check, Surroundings, quoted
from llmd.cli.doctor.listening_process import Listening, on_port, on_socket
from llmd.cli.doctor.patience import ANSWER_LIMIT_S, is_refusal, patient_client
from llmd.client import Client
from llmd.client_connection import EXIT_TIMEOUT
from llmd.config import Address, UnixAddress

LARGE_LOG_BYTES = 100 << 20


def checks(around: Surroundings) -> Iterator[Check]:
    origin = around.settings.origins["client.api_key"]
    try:
        client = patient_client(settings=around.settings)
    except LlmdError as error:
        yield Check("daemon", "fail", error.message, error.hint)
    else:
        key = origin.removal("client.api_key") if origin.value else ""
        daemon = daemon_check(client, version("llmd-daemon"), key)
        yield daemon
        if daemon.status == "ok":
            yield from loaded_models(client)
    yield log_check(around.directories.log)


def daemon_check(client: Client, mine: str, key_removal: str) -> Check:
    """Check the daemon that commands use. ``key_removal`` is the command that removes a key."""
    try:
        address = client.address
    except DaemonUnreachableError:
        return Check("daemon", "ok", "none is running")
    try:
        its = client.version()
    except LlmdError as error:
        return _unanswered(error, address, key_removal)
    if its != mine:
        seen = f"version {its} runs at {address}, this is {mine}"
        return Check("daemon", "warn", seen, "stop it; commands start a new one: `llmd stop --daemon`")
    return Check("daemon", "ok", f"version {its} at {address}")


def loaded_models(client: Client) -> Iterator[Check]:
    """Report the models of a running daemon that have failed, or do not run as they should."""
    try:
        rows = client.ps()
    except LlmdError:  # no daemon runs, or the key may not ask
        return
    for row in rows:
        name = row["name"]
        if row["status"] == "failed":
            yield Check(f"loaded:{name}", "fail", row["error"], f"start it again: `llmd load {quoted(name)}`")
        for verdict in row["verdicts"]:
            if verdict["state"] and verdict["level"] == "warn":
                yield Check(f"loaded:{name}", "warn", verdict["text"], verdict["fix"])


def _unanswered(error: LlmdError, address: Address, key_removal: str) -> Check:
    if error.exit_code == EXIT_TIMEOUT:
        owner = owner_of(address)
        fix = f"end it: `kill -KILL {owner.pid}`" if owner and owner.pid else "end its process"
        seen = f"it accepts connections at {address}, but did not answer within {ANSWER_LIMIT_S:g} s"
        return Check("daemon", "fail", f"{seen} ({owner})" if owner else seen, fix)
    if is_refusal(error) and key_removal:
        fix = f"send none, `{key_removal}`, or another one, which `llmd keys add NAME` makes"
        return Check("daemon", "fail", f"the daemon at {address} refuses the key: {error.message}", fix)
    fix = (
        "make a key with `llmd keys add NAME`, and set LLMD_API_KEY to it"
        if is_refusal(error)
        else error.hint
    )
    return Check("daemon", "fail", f"{address}: {error.message}", fix)


def owner_of(address: Address) -> Listening | None:
    """Return the process that listens at an address, if that is known."""
    return on_socket(address.path) if isinstance(address, UnixAddress) else on_port(address.port)


def log_check(log: Path) -> Check:
    """Check that the log of a background daemon has not grown large."""
    size = log.stat().st_size if log.exists() else 0
    seen = f"{log}, {format_bytes(size)}"
    if size < LARGE_LOG_BYTES:
        return Check("log", "ok", seen)
    return Check(
        "log", "warn", seen, f"empty it; a running daemon goes on writing: `truncate -s 0 {quoted(log)}`"
    )
